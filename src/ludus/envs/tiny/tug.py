"""`tug-v1`: a tug of war between two teams of any size, with bots. The smallest world for teams."""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv, one_hot

BOTS = ("idle", "random", "strong")
MOST = 3  # seats of a team
_CALLS = 3


class TugSettings(EnvSettings):
    """Settings of `tug-v1`.

    Attributes:
        blue: Seats of the first team.
        orange: Seats of the second team.
        rounds: Rounds in a match.
    """

    blue: int = Field(default=1, ge=1, le=MOST)
    orange: int = Field(default=1, ge=1, le=MOST)
    rounds: int = Field(default=10, ge=1)


class TugEnv(TinyEnv):
    """Two teams pull a rope; the team on whose side it is at the end has won.

    In every round a call is drawn for each seat, which alone hears it. A seat that answers its call pulls with one
    unit; a team pulls with the sum of its seats, so that a pair that answers well beats any single.

    Observation of a seat, entry `vector`, float32, with the blocks `self` and `opponent`; it is the same for all sizes:

    | index | block | field | range |
    |---|---|---|---|
    | 0 | self | rounds left / rounds | 0 ... 1 |
    | 1 | self | rope on the own side / (3 rounds) | -1 ... 1 |
    | 2 | self | seats of the own team / 3 | 0 ... 1 |
    | 3 ... 5 | self | the call, one-hot | 0 or 1 |
    | 6 | opponent | seats of the other team / 3 | 0 ... 1 |
    | 7 | opponent | pull of the other team in the last round / 3 | 0 ... 1 |

    Action, `Discrete(3)`: the answer.

    Events: `reward` (pull of the own team less that of the other), `pulls` (1 if the seat itself pulled) and, in the
    last round, `wins`, `losses` and `draws` of the match, the same for all seats of a team.

    Measures: `rope`, how far it is on the own side.

    Start: the rope is in the middle, calls are drawn evenly.

    End: terminated after `rounds` rounds.

    Bots: `idle` never pulls, `random` answers anything, `strong` always pulls.

    Best play: answer the call; against `random` a single is 2/3 ahead a round on average.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(TugSettings, request.config, "tug-v1")
        self._rounds = settings.rounds
        teams = (0,) * settings.blue + (1,) * settings.orange
        low = np.array([0, -1, 0, 0, 0, 0, 0, 0], dtype=np.float32)
        spec = EnvSpec(
            name="tug",
            version=1,
            teams=teams,
            observation_space=spaces.Dict({"vector": spaces.Box(low, np.ones(8, dtype=np.float32))}),
            action_space=spaces.Discrete(_CALLS),
            rate_hz=10.0,
            step_limit=settings.rounds,
            events=("reward", "pulls", "wins", "losses", "draws"),
            measures=("rope",),
            bots=BOTS,
            blocks=MappingProxyType({"vector": MappingProxyType({"self": (0, 6), "opponent": (6, 8)})}),
        )
        super().__init__(spec, request)
        self._members = one_hot(torch.tensor(teams, device=self.device), 2)  # (seats, teams)

    def _begin(self) -> State:
        pulls = torch.zeros((self.num_games, self.spec.seats), device=self.device)
        return {"rope": torch.zeros(self.num_games, device=self.device), "pulls": pulls}

    def calls(self) -> Tensor:
        """Returns the calls of the present round, `(games, seats)` int64."""
        return self._hash(2 * self.spec.seats)[:, : self.spec.seats] % _CALLS

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        pulled = (actions == self.calls()).to(torch.float32)
        self._state["pulls"] = pulled
        gain = self._by_seat(torch.ones(1, device=self.device)).mul(pulled).sum(1)
        self._state["rope"] = self._state["rope"] + gain
        last_round = self._counters["frame"] + 1 >= self._rounds
        rope = self._by_seat(self._state["rope"])
        results = {"wins": rope > 0, "losses": rope < 0, "draws": rope == 0}
        events = {name: (last_round.unsqueeze(1) & result).to(torch.float32) for name, result in results.items()}
        return {"reward": self._by_seat(gain), "pulls": pulled} | events, torch.zeros_like(last_round)

    def _by_seat(self, blue: Tensor) -> Tensor:
        """Returns what is good for blue `(games,)` as each seat sees it, `(games, seats)`."""
        return blue.unsqueeze(1) * (self._members[:, 0] - self._members[:, 1])

    def _observe(self) -> Observations:
        games, seats = self.num_games, self.spec.seats
        left = (1.0 - self._counters["frame"].to(torch.float32) / self._rounds).unsqueeze(1).expand(games, seats)
        rope = self._by_seat(self._state["rope"]) / (MOST * self._rounds)
        sizes = self._members.sum(0) / MOST
        own, other = ((members @ sizes).expand(games, seats) for members in (self._members, self._members.flip(1)))
        pull = self._state["pulls"] @ self._members @ self._members.flip(1).T / MOST
        vector = [left, rope, own, *one_hot(self.calls(), _CALLS).unbind(2), other, pull]
        return {"vector": torch.stack(vector, dim=2)}

    def _measure(self) -> dict[str, Tensor]:
        return {"rope": self._by_seat(self._state["rope"])}

    def bots(self, names: Sequence[str]) -> "TugBots":
        """Makes scripted players of the given names."""
        return TugBots(self, names)

    def bot_answers(self) -> Tensor:
        """Returns what each bot would answer now, `(games, seats, bots)` int64 in the order of `BOTS`."""
        calls, seats = self.calls(), self.spec.seats
        random = self._hash(2 * seats)[:, seats:] % _CALLS
        return torch.stack([(calls + 1) % _CALLS, random, calls], dim=2)


class TugBots:
    """Scripted players of `tug-v1`; they remember nothing."""

    def __init__(self, env: TugEnv, names: Sequence[str]) -> None:
        for name in names:
            if name not in BOTS:
                raise UnknownNameError("bot of tug-v1", name, BOTS)
        self.names = tuple(names)
        self._env = env
        self._columns = torch.tensor([BOTS.index(name) for name in names], dtype=torch.int64, device=env.device)

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions; see `ludus.envs.base.Bots`."""
        columns = self._columns[assignment.clamp(min=0).to(torch.int64)]
        answers = self._env.bot_answers().gather(2, columns.unsqueeze(2)).squeeze(2)
        actions.copy_(torch.where(assignment >= 0, answers.to(actions.dtype), actions))


def make(request: EnvRequest) -> TugEnv:
    """Makes a batch of `tug-v1`."""
    return TugEnv(request)
