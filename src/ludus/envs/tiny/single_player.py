"""Toy worlds for one player.

- `identity-v1`: see a cue, answer it. The first thing that any learner must manage.
- `recall-v1`: see a cue once, answer it later. Only an agent with memory can do better than guessing.
- `point-v1`: push a point mass to a target. Continuous control whose step limit cuts off, not ends.
- `endless-v1`: a reward of 1 per step for ever, cut off now and then. Its value is known in closed form.
- `dig-v1`: kinds of action, cells that only one of them needs, a mask, and kinds for exploring.
"""

from dataclasses import replace

import numpy as np
import torch
from gymnasium import spaces
from pydantic import Field
from torch import Tensor

from ludus.core.random import uniform
from ludus.envs.base import ActionKinds, EnvRequest, EnvSpec, Mirror, Observations, Reflection
from ludus.envs.settings import EnvSettings, EpisodeSteps, read_settings
from ludus.envs.spaces import draw_actions
from ludus.envs.tiny.base import State, TinyEnv, numbered, one_hot, toy_spec


class IdentitySettings(EnvSettings):
    """Settings of `identity-v1`."""

    cues: int = Field(default=4, ge=2, le=1024)  # number of different cues, and of answers
    steps: EpisodeSteps = 4  # cues in an episode


class IdentityEnv(TinyEnv):
    """Every frame shows a random cue; the answer that names it is worth 1.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 ... cues-1 | `cue_0` ...: the cue of this frame, one-hot | 0 or 1 |

    - Action, `Discrete(cues)`: the answer.
    - Events: `reward`, 1 for the right answer, else 0.
    - Start: a cue drawn evenly. Every later frame draws a new one.
    - End: terminated after `steps` answers.
    - Best play: return = `steps`. Blind play: `steps / cues`.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(IdentitySettings, request.config, "identity-v1")
        self._cues = settings.cues
        vector = spaces.Box(0.0, 1.0, (settings.cues,), np.float32)
        answers, fields = spaces.Discrete(settings.cues), numbered("cue", settings.cues)
        super().__init__(toy_spec("identity", vector, answers, settings.steps, fields=fields), request)

    def _cue(self) -> Tensor:
        """Return the cue of this frame, `(games,)`; it is a pure function of the counters, so there is no state."""
        return self._hash(1)[:, 0] % self._cues

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        right = actions[:, 0] == self._cue()
        return {"reward": right.to(torch.float32).unsqueeze(1)}, torch.zeros_like(right)

    def _observe(self) -> Observations:
        return {"vector": one_hot(self._cue(), self._cues).unsqueeze(1)}


class RecallSettings(EnvSettings):
    """Settings of `recall-v1`."""

    cues: int = Field(default=3, ge=2, le=1024)  # number of different cues, and of answers
    delay: EpisodeSteps = 5  # frames from the cue to the question; an episode has `delay + 1` steps


class RecallEnv(TinyEnv):
    """The first frame shows a cue; the last frame asks for it.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 ... cues-1 | `cue_0` ...: the cue, one-hot, in the first frame; zeros later | 0 or 1 |
    | cues | `asked`: 1 in the frame whose action is the answer | 0 or 1 |

    - Action, `Discrete(cues)`: the answer; before the last frame it does nothing.
    - Events: `reward`, 1 for the right answer in the last frame, else 0.
    - Start: a cue drawn evenly.
    - End: terminated by the answer, after `delay + 1` steps. The observation after it shows nothing.
    - Best play: return = 1. Without memory: `1 / cues`.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(RecallSettings, request.config, "recall-v1")
        self._cues, self._delay = settings.cues, settings.delay
        vector = spaces.Box(0.0, 1.0, (settings.cues + 1,), np.float32)
        answers, fields = spaces.Discrete(settings.cues), (*numbered("cue", settings.cues), "asked")
        super().__init__(toy_spec("recall", vector, answers, settings.delay + 1, fields=fields), request)

    def _begin(self) -> State:
        return {"cue": self._hash(1)[:, 0] % self._cues}

    def _asked(self) -> Tensor:
        return self._counters["frame"] == self._delay

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        right = self._asked() & (actions[:, 0] == self._state["cue"])
        return {"reward": right.to(torch.float32).unsqueeze(1)}, torch.zeros_like(right)

    def _observe(self) -> Observations:
        shown = self._state["cue"].masked_fill(self._counters["frame"] != 0, -1)
        asked = self._asked().to(torch.float32).unsqueeze(1)
        return {"vector": torch.cat([one_hot(shown, self._cues), asked], dim=1).unsqueeze(1)}


_TIME_STEP_S = 0.1
_MAX_PUSH = 2.0  # units/s^2 at full action
_MAX_SPEED = 1.0  # units/s an axis
_TARGET_RANGE = 0.8  # targets lie this far inside the walls at 1
# Seen in a mirror along the diagonal from top left to bottom right, (x, y) is (-y, -x).
_MIRROR = Mirror({"vector": Reflection((1, 0, 3, 2, 5, 4), (-1.0,) * 6)}, Reflection((1, 0), (-1.0, -1.0)))


class PointSettings(EnvSettings):
    """Settings of `point-v1`."""

    step_limit: EpisodeSteps = 50  # steps after which a game is cut off


class PointEnv(TinyEnv):
    """A point mass in a square from -1 to 1 with soft walls (it stops there), pushed along both axes.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0, 1 | `position.x`, `position.y` | -1 ... 1 |
    | 2, 3 | `velocity.x`, `velocity.y` in units/s | -1 ... 1 |
    | 4, 5 | `offset.x`, `offset.y`: target minus position | -2 ... 2 |

    - Action, `Box(-1, 1, (2,))`: push along x and y, 2 units/s^2 at full action; values beyond the range are clipped.
    - Events: `reward`, minus the distance to the target after the step, in units.
    - Measures: `distance`, to the target.
    - Start: position and target drawn evenly (targets within 0.8), at rest.
    - End: never by itself; truncated after `step_limit` steps.
    - Good play: push by 2 * (target - position) - 2 * velocity; it ends nearer than 0.05.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(PointSettings, request.config, "point-v1")
        high = np.array([1, 1, 1, 1, 2, 2], dtype=np.float32)
        push = spaces.Box(-1.0, 1.0, (2,), np.float32)
        seen = spaces.Box(-high, high, dtype=np.float32)
        fields = tuple(f"{part}.{axis}" for part in ("position", "velocity", "offset") for axis in "xy")
        spec = toy_spec("point", seen, push, settings.step_limit, fields=fields, state_metrics=("distance",))
        super().__init__(replace(spec, mirror=_MIRROR), request, truncates=True)

    def _begin(self) -> State:
        drawn = 2.0 * uniform(self._hash(4)) - 1.0
        position, target = drawn[:, :2], drawn[:, 2:] * _TARGET_RANGE
        return {"position": position, "velocity": torch.zeros_like(position), "target": target}

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        state = self._state
        push = actions[:, 0].clamp(-1.0, 1.0) * _MAX_PUSH
        velocity = (state["velocity"] + push * _TIME_STEP_S).clamp(-_MAX_SPEED, _MAX_SPEED)
        position = state["position"] + velocity * _TIME_STEP_S
        state["velocity"] = velocity.masked_fill(position.abs() > 1.0, 0.0)
        state["position"] = position.clamp(-1.0, 1.0)
        over = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        return {"reward": -self._distance()}, over

    def _distance(self) -> Tensor:
        offset = self._state["target"] - self._state["position"]
        # Written out: a norm may add up in another order for another batch size, and bits would differ.
        return torch.sqrt(offset[:, 0] ** 2 + offset[:, 1] ** 2).unsqueeze(1)

    def _observe(self) -> Observations:
        state = self._state
        parts = [state["position"], state["velocity"], state["target"] - state["position"]]
        return {"vector": torch.cat(parts, dim=1).unsqueeze(1)}

    def _measure(self) -> dict[str, Tensor]:
        return {"distance": self._distance()}


class EndlessSettings(EnvSettings):
    """Settings of `endless-v1`."""

    step_limit: EpisodeSteps = 10  # steps after which a game is cut off
    terminates: bool = False  # whether the limit ends games instead of cutting them off, for comparison


class EndlessEnv(TinyEnv):
    """Nothing changes, nothing matters: every step is worth 1.

    It tells a learner that treats truncation as termination from one that does not. With discount g, the value of
    the only state is 1 / (1 - g) if the cut is bootstrapped through; if the cut counts as an end, the value is
    smaller by what would have come after it.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 | `one`: always 1 | 0 ... 1 |

    - Action, `Discrete(2)`: no effect.
    - Events: `reward`, 1.
    - Start: always the same.
    - End: truncated after `step_limit` steps; terminated there instead with `terminates`.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(EndlessSettings, request.config, "endless-v1")
        vector, limit = spaces.Box(0.0, 1.0, (1,), np.float32), settings.step_limit
        spec = toy_spec("endless", vector, spaces.Discrete(2), limit, fields=("one",))
        super().__init__(spec, request, truncates=not settings.terminates)

    def _play(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        return {"reward": torch.ones_like(actions, dtype=torch.float32)}, torch.zeros_like(actions[:, 0]).bool()

    def _observe(self) -> Observations:
        return {"vector": torch.ones(self.num_envs, 1, 1, device=self.device)}


KINDS = ("rest", "dig", "listen", "shout")
BOTS = ("best", "random")
_REST, _DIG, _LISTEN, _SHOUT = range(4)
_LISTENING = 0.5  # reward of listening


class DigSettings(EnvSettings):
    """Settings of `dig-v1`."""

    columns: int = Field(default=3, ge=2, le=64)  # of the field
    rows: int = Field(default=3, ge=2, le=64)  # of the field
    steps: EpisodeSteps = 8  # steps in an episode


class DigEnv(TinyEnv):
    """A treasure lies in a field, in another cell every frame; digging there is worth 1.

    Observation, entry `vector`, float32:

    | index | field | range |
    |---|---|---|
    | 0 ... columns-1 | `column_0` ...: column of the treasure, one-hot | 0 or 1 |
    | ... +rows | `row_0` ...: row of the treasure, one-hot | 0 or 1 |
    | last | `strength`: whether there is strength to dig: in every second frame, from the first on | 0 or 1 |

    - Entry `mask`, bool: which of the 4 kinds, of the columns and of the rows are allowed. Digging takes strength; one
      column and one row, never those of the treasure, are closed in each frame.
    - Action, `MultiDiscrete([4, columns, rows])`: the kind (0 rest, 1 dig, 2 listen, 3 shout), column and row, which
      count for digging alone. Listening and shouting are for exploring (`EnvSpec.actions.exploratory`).
    - Events: `reward`, 1 for digging where the treasure is, 0.5 for listening in a frame without strength, -0.5 for
      shouting, -1 for anything that is not allowed, else 0; `forbidden`, 1 for what is not allowed.
    - Start: a cell drawn evenly. Every later frame draws a new one.
    - End: terminated after `steps` steps.
    - Best play: 1 in frames with strength, 0.5 in the others, 6 in an episode of 8.
    - Bots: `best` plays best, `random` plays anything that is allowed.
    """

    def __init__(self, request: EnvRequest) -> None:
        settings = read_settings(DigSettings, request.config, "dig-v1")
        self._columns, self._rows = settings.columns, settings.rows
        choices = len(KINDS) + self._columns + self._rows
        vector = spaces.Box(0.0, 1.0, (self._columns + self._rows + 1,), np.float32)
        spec = EnvSpec(
            name="dig",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict({"vector": vector, "mask": spaces.Box(0, 1, (choices,), np.bool_)}),
            action_space=spaces.MultiDiscrete([len(KINDS), self._columns, self._rows]),
            rate_hz=10.0,
            step_limit=settings.steps,
            events=("reward", "forbidden"),
            bots=BOTS,
            fields={"vector": (*numbered("column", self._columns), *numbered("row", self._rows), "strength")},
            actions=ActionKinds(
                mask="mask",
                uses=tuple((kind == _DIG, kind == _DIG) for kind in range(len(KINDS))),
                exploratory=(_LISTEN, _SHOUT),
            ),
        )
        super().__init__(spec, request)

    def treasure(self) -> tuple[Tensor, Tensor]:
        """Return column and row of the treasure, `(games,)` each."""
        drawn = self._hash(2)
        return drawn[:, 0] % self._columns, drawn[:, 1] % self._rows

    def has_strength(self) -> Tensor:
        """Return in which games there is strength to dig, `(games,)` bool."""
        return self._counters["frame"] % 2 == 0

    def mask(self) -> Tensor:
        """Return what is allowed now, `(games, choices)` bool."""
        kinds = torch.ones(self.num_envs, len(KINDS), dtype=torch.bool, device=self.device)
        kinds[:, _DIG] = self.has_strength()
        parts, drawn = [kinds], self._hash(4)
        for i, (place, count) in enumerate(zip(self.treasure(), (self._columns, self._rows), strict=True)):
            closed = (place + 1 + drawn[:, 2 + i] % (count - 1)) % count
            parts.append(one_hot(closed, count) == 0)
        return torch.cat(parts, dim=1)

    def draws(self, first_stream: int, count: int) -> Tensor:
        """Return numbers in [0, 1) for scripted players, `(games, count)`, from streams behind the world's own."""
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

    def bot_actions(self) -> tuple[Tensor, ...]:
        """Return what the bots would play now, `(games, 1, 3)` each, in the order of `BOTS`."""
        (column, row), digs = self.treasure(), self.has_strength()
        best = torch.stack((torch.where(digs, _DIG, _LISTEN), column * digs, row * digs), dim=1)
        random = draw_actions(self.spec.choices, self.mask(), self.draws(4, 3))
        return best.unsqueeze(1), random.unsqueeze(1)
