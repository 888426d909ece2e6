"""What a world declares beside its games, and how the engine finds it.

- `World(rewards="mygame.rewards:SETS")`: importing the module registers its reward terms (see `ludus.rewards.terms`);
  `SETS` maps names to weights. A world without sets is rewarded by its events.
- `World(metrics="mygame.metrics:METRICS")`: what the world reports about how a seat played an episode.
- `World(scenarios="mygame.scenarios:SCENARIOS")`: the settings under which an agent is evaluated where it has no
  opponent, by name, each as what it overrides of the run: `{"walk": {}, "pushes": {"pushes": {"every_s": 2.0}}}`.
  The first one decides which agent is the best. A world without scenarios is evaluated with the run's own settings.
- `World(styles=...)`: what the strategy analysis knows: bots that switch styles, fields that show what a seat does, and
  names of actions.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.base import BatchedEnv, EnvSpec
from ludus.envs.world import Settings, find_world, known_world, resolve
from ludus.rewards.manager import Sets
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import RewardConfig

_RESULTS: Mapping[str, float] = MappingProxyType({"wins": 5.0, "losses": -5.0})

Numbers: TypeAlias = Mapping[str, NDArray[np.float64]]
PerStep: TypeAlias = Callable[[StepInfo], dict[str, Tensor]]
PerEpisode: TypeAlias = Callable[[Numbers, NDArray[np.int64], float], dict[str, NDArray[np.float64]]]
Extreme: TypeAlias = Literal["min", "max", "sum"]

_EXTREMES: Mapping[str, Callable[[NDArray[np.float64]], np.float64]] = {"min": np.min, "max": np.max, "sum": np.sum}


def reward_sets(world: str) -> Sets:
    """Register a world's reward terms and return its sets of weights; raise UnknownNameError if it is unknown."""
    return resolve(find_world(world).rewards)


def default_rewards(spec: EnvSpec) -> RewardConfig:
    """Return the reward that `ludus train` and every adapter use unless told otherwise.

    It is the world's default set; in a world without sets its event `reward`, or else its results.
    """
    sets = reward_sets(spec.id)
    if sets:
        return RewardConfig(base=find_world(spec.id).default_reward or next(iter(sets)))
    weights = {"reward": 1.0} if "reward" in spec.events else _RESULTS
    return RewardConfig.model_validate({"weights": {name: weights[name] for name in weights if name in spec.events}})


@dataclass(frozen=True, slots=True)
class EpisodeMetrics:
    """The episode metrics of a world.

    Attributes:
        per_step: Return the quantities whose sums over an episode are wanted, element by element in any leading shape.
            It may return the tensors that it was given: read them, do not write.
        per_episode: Compute the metrics of each episode from those sums, the lengths in steps and the rate in Hz.
        ratios: Metrics that are a quotient of two others: `{"damage_ratio": ("damage_dealt", "damage_taken")}`.
        extremes: The lowest, highest or total metric of many episodes besides its mean:
            `{"distance_min_m": ("distance_m", "min"), "stable_walks": ("stable", "sum")}`.

    Raises:
        ConfigError: An extreme is made in a way that does not exist.
    """

    per_step: PerStep = lambda _: {}
    per_episode: PerEpisode = lambda _sums, _lengths, _rate_hz: {}
    ratios: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    extremes: Mapping[str, tuple[str, Extreme]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, (_, how) in self.extremes.items():
            if how not in _EXTREMES:
                raise ConfigError(f"the extreme {name!r} is made by {how!r}; valid: {', '.join(_EXTREMES)}")

    def ratios_of(self, names: Container[str]) -> dict[str, tuple[str, str]]:
        """Return the ratios of metrics in `names`; some settings of a world leave metrics out."""
        return {name: pair for name, pair in self.ratios.items() if pair[0] in names and pair[1] in names}

    def summarise(self, episodes: Numbers) -> dict[str, float]:
        """Return one number for many episodes `(episodes,)` per metric; nothing if there are none.

        It is their mean, but for ratios the quotient of the totals: a mean of quotients would be ruled by the few
        episodes in which the lower number is near 0. As in an episode, what is below the line counts at least 1.
        Extremes come beside it.
        """
        if not episodes or len(next(iter(episodes.values()))) == 0:
            return {}
        summary = {name: float(values.mean()) for name, values in episodes.items()}
        for name, (above, below) in self.ratios_of(episodes).items():
            summary[name] = float(episodes[above].sum() / max(episodes[below].sum(), 1.0))
        for name, (source, how) in self.extremes.items():
            summary[name] = float(_EXTREMES[how](episodes[source]))
        return summary


def metrics_of(world: str) -> EpisodeMetrics:
    """Return the episode metrics of a world; one that is unknown, or declares none, has none."""
    record = known_world(world)
    return EpisodeMetrics() if record is None or record.metrics is None else resolve(record.metrics)


def scenarios_of(world: str) -> Mapping[str, Settings]:
    """Return the scenarios of a world by name; one that is unknown, or declares none, has none."""
    record = known_world(world)
    return MappingProxyType({}) if record is None else resolve(record.scenarios)


def choose_scenarios(world: str, names: Sequence[str] | None) -> dict[str, Settings]:
    """Return the named scenarios of a world, or all; raise UnknownNameError, or ConfigError if a name comes twice."""
    known = scenarios_of(world)
    if names is None:
        return dict(known)
    if names and not known:
        raise ConfigError(f"{world} has no scenarios, got {', '.join(names)}; leave them out")
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ConfigError(f"named more than once: {', '.join(twice)}; name every scenario once")
    for name in names:
        if name not in known:
            raise UnknownNameError("scenario", name, known)
    return {name: known[name] for name in names}


def merge_settings(settings: Settings | None, overrides: Settings) -> dict[str, Any]:
    """Return settings with overrides applied key by key, at every level: what they do not name stays."""
    merged = dict(settings or {})
    for name, value in overrides.items():
        below = merged.get(name)
        merged[name] = (
            merge_settings(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


@dataclass(frozen=True, slots=True)
class StyleLabels:
    """Labels of how opponents play.

    Attributes:
        switching_bots: Bots that change their style during a match; those of all others keep one.
        current_style: Return the style that the switching bots follow after acting on the current frame: `(games,)`
            int64, indices into `spec.bots`, for one seat of each game, `(games, seats)` bool.
        action_fields: Observation fields that show what a seat is doing: index into the entry's last axis -> name.
        action_names: Names of the keys, choices or numbers that an action is made of, in order; none by default.
    """

    switching_bots: tuple[str, ...] = ()
    current_style: Callable[[BatchedEnv, Tensor], Tensor] | None = None
    action_fields: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    action_names: tuple[str, ...] = ()


def styles_of(world: str) -> StyleLabels:
    """Return the labels of a world; one that is unknown, or declares none, has none."""
    record = known_world(world)
    return StyleLabels() if record is None or record.styles is None else resolve(record.styles)


def current_styles(env: BatchedEnv, seats: Tensor) -> Tensor:
    """Return the style that each game's switching bot follows, `(games,)` int64; -1 in worlds without such bots."""
    find = styles_of(env.spec.id).current_style
    return torch.full((env.num_envs,), -1, dtype=torch.int64, device=env.device) if find is None else find(env, seats)
