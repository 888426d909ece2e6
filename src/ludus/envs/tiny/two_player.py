"""Toy worlds with opponents.

- `rps-v1`: rock-paper-scissors against a hidden style. Winning takes recognising the opponent.
- `duel-v1`: rock-paper-scissors between two seats, with bots. The smallest world for self-play.
- `tug-v1`: a tug of war between two teams of any size, with bots. The smallest world for teams.
"""

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.core.random import uniform
from ludus.envs.base import EnvRequest, Observations
from ludus.envs.settings import EnvSettings, EpisodeSteps, MatchSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv, numbered, one_hot, toy_spec
from ludus.envs.world_parts import StyleLabels

_RESULTS = ("wins", "losses", "draws")
_OPPONENT_MOVE = ("opponent.rock", "opponent.paper", "opponent.scissors")
STYLES = StyleLabels(action_names=("rock", "paper", "scissors"))  # of `rps-v1` and `duel-v1`
_STREAMS = 4  # style, first move, whether it slips, what it plays then


class RpsSettings(EnvSettings):
    """Settings of `rps-v1`."""

    rounds: EpisodeSteps = Field(default=16, ge=3)  # rounds in an episode
    # Chance that the opponent slips and plays a random move, from which its style then continues.
    noise: float = Field(default=0.0, ge=0.0, le=1.0)


class RpsEnv(TinyEnv):
    """Rock-paper-scissors against an opponent whose style is redrawn every episode and never shown.

    The three styles are: repeat the last move, climb (rock, paper, scissors, rock ...), descend. The first move is
    drawn evenly, so the last move alone says nothing about the next one: two moves in a row give the style away.

    Observation, entry `vector`, float32, with the blocks `self` and `opponent`:

    | index | block | field | range |
    |---|---|---|---|
    | 0 | self | `rounds_left` / rounds | 0 ... 1 |
    | 1 ... 3 | opponent | `rock`, `paper`, `scissors`: its last move, one-hot; zeros before the first round | 0 or 1 |

    - Action, `Discrete(3)`: 0 rock, 1 paper, 2 scissors.
    - Events: `reward`, 1 for a win, -1 for a loss, 0 for a tie.
    - Measures: `style`, the opponent's hidden style (0 repeat, 1 climb, 2 descend), for analysis only.
    - Start: style and first move drawn evenly.
    - End: terminated after `rounds` rounds.
    - Best play: the first two rounds are open (0 on average), then every round is won: `rounds - 2` without noise.
      Without memory: 0 on average, whatever is played.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(RpsSettings, request.config, "rps-v1")
        self._rounds, self._noise = settings.rounds, settings.noise
        vector = spaces.Box(0.0, 1.0, (4,), np.float32)
        fields = ("self.rounds_left", *_OPPONENT_MOVE)
        spec = toy_spec(
            "rps", vector, spaces.Discrete(3), settings.rounds, fields=fields, state_metrics=("style",), own=1
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        style, first = (self._hash(_STREAMS) % 3)[:, :2].unbind(1)
        return {"style": style, "next": first, "last": torch.full_like(first, -1)}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        state = self._state
        hashes = self._hash(_STREAMS)
        move = torch.where(uniform(hashes[:, 2]) < self._noise, hashes[:, 3] % 3, state["next"])
        # actions - move is 1 for a win, 2 for a loss and 0 for a tie, modulo 3.
        difference = (actions[:, 0] - move) % 3
        reward = torch.where(difference == 2, -1.0, difference.to(torch.float32))
        # Style s (0 repeat, 1 climb, 2 descend) plays its last move + s, modulo 3.
        state["last"], state["next"] = move, (move + state["style"]) % 3
        return {"reward": reward.unsqueeze(1)}, torch.zeros_like(difference, dtype=torch.bool)

    def _observe(self) -> Observations:
        left = 1.0 - self._counters["frame"].to(torch.float32) / self._rounds
        return {"vector": torch.cat([left.unsqueeze(1), one_hot(self._state["last"], 3)], dim=1).unsqueeze(1)}

    def _measure(self) -> dict[str, Tensor]:
        return {"style": self._state["style"].to(torch.float32).unsqueeze(1)}


def _results(lead: Tensor, last_round: Tensor) -> dict[str, Tensor]:
    """Return the match's events of seats that lead by `(games, seats)`, where the round `(games,)` is the last."""
    outcomes = zip(_RESULTS, (lead > 0, lead < 0, lead == 0), strict=True)
    return {name: (last_round.unsqueeze(1) & outcome).to(torch.float32) for name, outcome in outcomes}


DUEL_BOTS = ("rock", "cycle", "random")


class DuelSettings(MatchSettings):
    """Settings of `duel-v1`."""

    rounds: EpisodeSteps = 10  # rounds in a match


class DuelEnv(TinyEnv):
    """Two seats play rock-paper-scissors; more rounds won is the match won.

    Observation of a seat, entry `vector`, float32, with the blocks `self` and `opponent`:

    | index | block | field | range |
    |---|---|---|---|
    | 0 | self | `rounds_left` / rounds | 0 ... 1 |
    | 1 | self | `lead`: (rounds won - rounds lost) / rounds | -1 ... 1 |
    | 2 ... 4 | self | `rock`, `paper`, `scissors`: own last move, one-hot; zeros before the first round | 0 or 1 |
    | 5 ... 7 | opponent | the opponent's last move, likewise | 0 or 1 |

    - Action, `Discrete(3)`: 0 rock, 1 paper, 2 scissors.
    - Events: `reward` (1 for a round won, -1 for a round lost, 0 for a tie) and, in the last round, `wins`, `losses`
      and `draws` of the match.
    - Measures: `lead`, rounds won minus rounds lost.
    - Start: no moves yet, 0 to 0.
    - End: terminated after `rounds` rounds.
    - Bots: `rock` plays rock, `cycle` plays rock, paper, scissors in turn, `random` plays anything.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(DuelSettings, request.config, "duel-v1")
        self._rounds = settings.rounds
        low = np.array([0, -1, 0, 0, 0, 0, 0, 0], dtype=np.float32)
        spec = toy_spec(
            "duel",
            spaces.Box(low, np.ones(8, dtype=np.float32)),
            spaces.Discrete(3),
            settings.rounds,
            fields=("self.rounds_left", "self.lead", "self.rock", "self.paper", "self.scissors", *_OPPONENT_MOVE),
            teams=(0, 1),
            events=("reward", *_RESULTS),
            state_metrics=("lead",),
            bots=DUEL_BOTS,
            own=5,
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        moves = torch.full((self.num_envs, 2), -1, device=self.device)
        return {"moves": moves, "lead": torch.zeros(self.num_envs, device=self.device)}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        difference = (actions[:, 0] - actions[:, 1]) % 3
        gain = torch.where(difference == 2, -1.0, difference.to(torch.float32))
        self._state["moves"] = actions.to(torch.int64, copy=True)
        self._state["lead"] = self._state["lead"] + gain
        last_round = self._counters["frame"] + 1 >= self._rounds
        reward = torch.stack([gain, -gain], dim=1)
        return {"reward": reward} | _results(self._lead(), last_round), torch.zeros_like(last_round)

    def _lead(self) -> Tensor:
        lead = self._state["lead"]
        return torch.stack([lead, -lead], dim=1)

    def _observe(self) -> Observations:
        left = 1.0 - self._counters["frame"].to(torch.float32) / self._rounds
        clock = left.view(-1, 1, 1).expand(-1, 2, 1)
        moves = one_hot(self._state["moves"], 3)
        return {"vector": torch.cat([clock, self._lead().unsqueeze(2) / self._rounds, moves, moves.flip(1)], dim=2)}

    def _measure(self) -> dict[str, Tensor]:
        return {"lead": self._lead()}

    def bot_actions(self) -> tuple[Tensor, ...]:
        """Return what the bots would play now, `(games, seats)` int64 each, in the order of `DUEL_BOTS`."""
        cycle = (self._counters["frame"] % 3).unsqueeze(1).expand(-1, 2)
        return torch.zeros_like(cycle), cycle, self._hash(2) % 3  # one stream per seat


TUG_BOTS = ("idle", "random", "strong")
MOST = 3  # seats of a team
_CALLS = 3
_OTHER_TEAM = ("opponent.seats", "opponent.pull")


class TugSettings(MatchSettings):
    """Settings of `tug-v1`."""

    blue: int = Field(default=1, ge=1, le=MOST)  # seats of the first team
    orange: int = Field(default=1, ge=1, le=MOST)  # seats of the second team
    rounds: EpisodeSteps = 10  # rounds in a match


class TugEnv(TinyEnv):
    """Two teams pull a rope; the team on whose side it is at the end has won.

    In every round a call is drawn for each seat, which alone hears it. A seat that answers its call pulls with one
    unit; a team pulls with the sum of its seats, so that a pair that answers well beats any single.

    Observation of a seat, entry `vector`, float32, with the blocks `self` and `opponent`; it is the same for all sizes:

    | index | block | field | range |
    |---|---|---|---|
    | 0 | self | `rounds_left` / rounds | 0 ... 1 |
    | 1 | self | `rope` on the own side / (3 rounds) | -1 ... 1 |
    | 2 | self | `seats` of the own team / 3 | 0 ... 1 |
    | 3 ... 5 | self | `call_0` ...: the call, one-hot | 0 or 1 |
    | 6 | opponent | `seats` of the other team / 3 | 0 ... 1 |
    | 7 | opponent | `pull` of the other team in the last round / 3 | 0 ... 1 |

    - Action, `Discrete(3)`: the answer.
    - Events: `reward` (pull of the own team less that of the other), `pulls` (1 if the seat itself pulled) and, in the
      last round, `wins`, `losses` and `draws` of the match, the same for all seats of a team.
    - Measures: `rope`, how far it is on the own side.
    - Start: the rope is in the middle, calls are drawn evenly.
    - End: terminated after `rounds` rounds.
    - Bots: `idle` never pulls, `random` answers anything, `strong` always pulls.
    - Best play: answer the call; against `random` a single is 2/3 ahead a round on average.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(TugSettings, request.config, "tug-v1")
        self._rounds = settings.rounds
        teams = (0,) * settings.blue + (1,) * settings.orange
        low = np.array([0, -1, 0, 0, 0, 0, 0, 0], dtype=np.float32)
        spec = toy_spec(
            "tug",
            spaces.Box(low, np.ones(8, dtype=np.float32)),
            spaces.Discrete(_CALLS),
            settings.rounds,
            fields=("self.rounds_left", "self.rope", "self.seats", *numbered("self.call", _CALLS), *_OTHER_TEAM),
            teams=teams,
            events=("reward", "pulls", *_RESULTS),
            state_metrics=("rope",),
            bots=TUG_BOTS,
            own=6,
        )
        super().__init__(spec, request)
        self._members = one_hot(torch.tensor(teams, device=self.device), 2)  # (seats, teams)

    def _begin(self) -> State:
        pulls = torch.zeros((self.num_envs, self.spec.seats), device=self.device)
        return {"rope": torch.zeros(self.num_envs, device=self.device), "pulls": pulls}

    def calls(self) -> Tensor:
        """Return the calls of the present round, `(games, seats)` int64."""
        return self._hash(2 * self.spec.seats)[:, : self.spec.seats] % _CALLS

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        pulled = (actions == self.calls()).to(torch.float32)
        self._state["pulls"] = pulled
        gain = self._by_seat(torch.ones(1, device=self.device)).mul(pulled).sum(1)
        self._state["rope"] = self._state["rope"] + gain
        last_round = self._counters["frame"] + 1 >= self._rounds
        events = {"reward": self._by_seat(gain), "pulls": pulled}
        return events | _results(self._by_seat(self._state["rope"]), last_round), torch.zeros_like(last_round)

    def _by_seat(self, blue: Tensor) -> Tensor:
        """Return what is good for blue `(games,)` as each seat sees it, `(games, seats)`."""
        return blue.unsqueeze(1) * (self._members[:, 0] - self._members[:, 1])

    def _observe(self) -> Observations:
        games, seats = self.num_envs, self.spec.seats
        left = (1.0 - self._counters["frame"].to(torch.float32) / self._rounds).unsqueeze(1).expand(games, seats)
        rope = self._by_seat(self._state["rope"]) / (MOST * self._rounds)
        sizes = self._members.sum(0) / MOST
        own, other = ((members @ sizes).expand(games, seats) for members in (self._members, self._members.flip(1)))
        pull = self._state["pulls"] @ self._members @ self._members.flip(1).T / MOST
        vector = [left, rope, own, *one_hot(self.calls(), _CALLS).unbind(2), other, pull]
        return {"vector": torch.stack(vector, dim=2)}

    def _measure(self) -> dict[str, Tensor]:
        return {"rope": self._by_seat(self._state["rope"])}

    def bot_actions(self) -> tuple[Tensor, ...]:
        """Return what the bots would answer now, `(games, seats)` int64 each, in the order of `TUG_BOTS`."""
        calls, seats = self.calls(), self.spec.seats
        return (calls + 1) % _CALLS, self._hash(2 * seats)[:, seats:] % _CALLS, calls
