"""`dig-v1`: kinds of action, cells that only one of them needs, a mask, and kinds for exploring."""

from collections.abc import Sequence

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.envs.base import EnvRequest, EnvSpec, Observations
from ludus.envs.choices import draw_actions
from ludus.envs.settings import EnvSettings, read_settings
from ludus.envs.tiny.base import State, TinyEnv, one_hot

KINDS = ("rest", "dig", "listen", "shout")
BOTS = ("best", "random")
_REST, _DIG, _LISTEN, _SHOUT = range(4)
_LISTENING = 0.5  # reward of listening


class DigSettings(EnvSettings):
    """Settings of `dig-v1`.

    Attributes:
        columns: Of the field.
        rows: Of the field.
        steps: Steps in an episode.
    """

    columns: int = Field(default=3, ge=2, le=64)
    rows: int = Field(default=3, ge=2, le=64)
    steps: int = Field(default=8, ge=1)


class DigEnv(TinyEnv):
    """A treasure lies in a field, in another cell every frame; digging there is worth 1.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 ... columns-1 | column of the treasure, one-hot | 0 or 1 |
    | ... +rows | row of the treasure, one-hot | 0 or 1 |
    | last | whether there is strength to dig: in every second frame, from the first on | 0 or 1 |

    Entry `mask`, bool: which of the 4 kinds, of the columns and of the rows are allowed. Digging takes strength; one
    column and one row, never those of the treasure, are closed in each frame.

    Action, `MultiDiscrete([4, columns, rows])`: the kind (0 rest, 1 dig, 2 listen, 3 shout), column and row, which
    count for digging alone. Listening and shouting are for exploring (`EnvSpec.exploratory_kinds`).

    Events: `reward`, 1 for digging where the treasure is, 0.5 for listening in a frame without strength, -0.5 for
    shouting, -1 for anything that is not allowed, else 0; `forbidden`, 1 for what is not allowed.

    Start: a cell drawn evenly. Every later frame draws a new one.

    End: terminated after `steps` steps.

    Best play: 1 in frames with strength, 0.5 in the others, 6 in an episode of 8.

    Bots: `best` plays best, `random` plays anything that is allowed.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(DigSettings, request.config, "dig-v1")
        self._columns, self._rows = settings.columns, settings.rows
        choices = len(KINDS) + self._columns + self._rows
        spec = EnvSpec(
            name="dig",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict(
                {
                    "vector": spaces.Box(0.0, 1.0, (self._columns + self._rows + 1,), np.float32),
                    "mask": spaces.Box(0, 1, (choices,), np.bool_),
                }
            ),
            action_space=spaces.MultiDiscrete([len(KINDS), self._columns, self._rows]),
            rate_hz=10.0,
            step_limit=settings.steps,
            events=("reward", "forbidden"),
            bots=BOTS,
            action_mask="mask",
            action_uses=tuple((kind == _DIG, kind == _DIG) for kind in range(len(KINDS))),
            exploratory_kinds=(_LISTEN, _SHOUT),
        )
        super().__init__(spec, request)

    def _begin(self) -> State:
        return {}

    def treasure(self) -> tuple[Tensor, Tensor]:
        """Returns column and row of the treasure, `(games,)` each."""
        drawn = self._hash(2)
        return drawn[:, 0] % self._columns, drawn[:, 1] % self._rows

    def has_strength(self) -> Tensor:
        """Says in which games there is strength to dig, `(games,)` bool."""
        return self._counters["frame"] % 2 == 0

    def mask(self) -> Tensor:
        """Returns what is allowed now, `(games, choices)` bool."""
        kinds = torch.ones(self.num_games, len(KINDS), dtype=torch.bool, device=self.device)
        kinds[:, _DIG] = self.has_strength()
        parts, drawn = [kinds], self._hash(4)
        for i, (place, count) in enumerate(zip(self.treasure(), (self._columns, self._rows), strict=True)):
            closed = (place + 1 + drawn[:, 2 + i] % (count - 1)) % count
            parts.append(one_hot(closed, count) == 0)
        return torch.cat(parts, dim=1)

    def draws(self, first_stream: int, count: int) -> Tensor:
        """Returns numbers in [0, 1) for scripted players, `(games, count)`, from streams behind the world's own."""
        return (self._hash(first_stream + count)[:, first_stream:] % (1 << 24)).to(torch.float32) / float(1 << 24)

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        kind, column, row = actions[:, 0].unbind(1)
        mask = self.mask()
        places = torch.stack((kind, len(KINDS) + column, len(KINDS) + self._columns + row), dim=1)
        taken = mask.gather(1, places.long())
        forbidden = ~torch.where(kind == _DIG, taken.all(1), taken[:, 0])
        at = self.treasure()
        found = (kind == _DIG) & (column == at[0]) & (row == at[1])
        heard = (kind == _LISTEN) & ~self.has_strength()
        reward = found.float() + _LISTENING * heard.float() - _LISTENING * (kind == _SHOUT).float()
        reward = torch.where(forbidden, -1.0, reward)
        events = {"reward": reward.unsqueeze(1), "forbidden": forbidden.float().unsqueeze(1)}
        return events, torch.zeros_like(forbidden)

    def _observe(self) -> Observations:
        column, row = self.treasure()
        strength = self.has_strength().float().unsqueeze(1)
        vector = torch.cat((one_hot(column, self._columns), one_hot(row, self._rows), strength), dim=1)
        return {"vector": vector.unsqueeze(1), "mask": self.mask().unsqueeze(1)}

    def bots(self, names: Sequence[str]) -> "DigBots":
        """Makes scripted players of the given names."""
        return DigBots(self, names)


class DigBots:
    """Scripted players of `dig-v1`; they remember nothing."""

    def __init__(self, env: DigEnv, names: Sequence[str]) -> None:
        for name in names:
            if name not in BOTS:
                raise UnknownNameError("bot of dig-v1", name, BOTS)
        self.names, self._env = tuple(names), env

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions; see `ludus.envs.base.Bots`."""
        played = {"best": self._best(), "random": self._random()}
        for index, name in enumerate(self.names):
            chosen = (assignment[:, 0] == index).unsqueeze(1)
            actions[:, 0] = torch.where(chosen, played[name].to(actions.dtype), actions[:, 0])

    def _best(self) -> Tensor:
        (column, row), digs = self._env.treasure(), self._env.has_strength()
        return torch.stack((torch.where(digs, _DIG, _LISTEN), column * digs, row * digs), dim=1)

    def _random(self) -> Tensor:
        return draw_actions(self._env.spec.choices, self._env.mask(), self._env.draws(4, 3))


def make(request: EnvRequest) -> DigEnv:
    """Makes a batch of `dig-v1`."""
    return DigEnv(request)
