"""`duel-v1`: rock-paper-scissors between two seats, with bots. The smallest world for self-play."""

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

BOTS = ("rock", "cycle", "random")


class DuelSettings(EnvSettings):
    """Settings of `duel-v1`.

    Attributes:
        rounds: Rounds in a match.
    """

    rounds: int = Field(default=10, ge=1)


class DuelEnv(TinyEnv):
    """Two seats play rock-paper-scissors; more rounds won is the match won.

    Observation of a seat, entry `vector`, float32, with the blocks `self` and `opponent`:

    | index | block | field | range |
    |---|---|---|---|
    | 0 | self | rounds left / rounds | 0 ... 1 |
    | 1 | self | (rounds won - rounds lost) / rounds | -1 ... 1 |
    | 2 ... 4 | self | own last move, one-hot; zeros before the first round | 0 or 1 |
    | 5 ... 7 | opponent | the opponent's last move, likewise | 0 or 1 |

    Action, `Discrete(3)`: 0 rock, 1 paper, 2 scissors.

    Events: `reward` (1 for a round won, -1 for a round lost, 0 for a tie) and, in the last round, `wins`, `losses`
    and `draws` of the match.

    Measures: `lead`, rounds won minus rounds lost.

    Start: no moves yet, 0 to 0.

    End: terminated after `rounds` rounds.

    Bots: `rock` plays rock, `cycle` plays rock, paper, scissors in turn, `random` plays anything.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(DuelSettings, request.config, "duel-v1")
        self._rounds = settings.rounds
        low = np.array([0, -1, 0, 0, 0, 0, 0, 0], dtype=np.float32)
        spec = EnvSpec(
            name="duel",
            version=1,
            teams=(0, 1),
            observation_space=spaces.Dict({"vector": spaces.Box(low, np.ones(8, dtype=np.float32))}),
            action_space=spaces.Discrete(3),
            rate_hz=10.0,
            step_limit=settings.rounds,
            events=("reward", "wins", "losses", "draws"),
            measures=("lead",),
            bots=BOTS,
            blocks=MappingProxyType({"vector": MappingProxyType({"self": (0, 5), "opponent": (5, 8)})}),
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        moves = torch.full((self.num_games, 2), -1, device=self.device)
        return {"moves": moves, "lead": torch.zeros(self.num_games, device=self.device)}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        difference = (actions[:, 0] - actions[:, 1]) % 3
        gain = torch.where(difference == 2, -1.0, difference.to(torch.float32))
        self._state["moves"] = actions.to(torch.int64, copy=True)
        self._state["lead"] = self._state["lead"] + gain
        last_round = self._counters["frame"] + 1 >= self._rounds
        lead = self._lead()
        events = {"wins": lead > 0, "losses": lead < 0, "draws": lead == 0}
        results = {name: (last_round.unsqueeze(1) & event).to(torch.float32) for name, event in events.items()}
        return {"reward": torch.stack([gain, -gain], dim=1)} | results, torch.zeros_like(last_round)

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

    def bots(self, names: Sequence[str]) -> "DuelBots":
        """Makes scripted players of the given names."""
        return DuelBots(self, names)

    def bot_moves(self) -> Tensor:
        """Returns what each bot would play now, `(games, seats, bots)` int64 in the order of `BOTS`."""
        frame = self._counters["frame"]
        rock = torch.zeros_like(frame)
        randoms = (self._hash(2) % 3).unbind(1)  # one stream a seat
        return torch.stack([torch.stack([rock, frame % 3, random], dim=1) for random in randoms], dim=1)


class DuelBots:
    """Scripted players of `duel-v1`; they remember nothing, the game's counters are enough."""

    def __init__(self, env: DuelEnv, names: Sequence[str]) -> None:
        for name in names:
            if name not in BOTS:
                raise UnknownNameError("bot of duel-v1", name, BOTS)
        self.names = tuple(names)
        self._env = env
        self._columns = torch.tensor([BOTS.index(name) for name in names], dtype=torch.int64, device=env.device)

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions; see `ludus.envs.base.Bots`."""
        played = assignment >= 0
        columns = self._columns[assignment.clamp(min=0).to(torch.int64)]
        moves = self._env.bot_moves().gather(2, columns.unsqueeze(2)).squeeze(2)
        actions.copy_(torch.where(played, moves.to(actions.dtype), actions))


def make(request: EnvRequest) -> DuelEnv:
    """Makes a batch of `duel-v1`."""
    return DuelEnv(request)
