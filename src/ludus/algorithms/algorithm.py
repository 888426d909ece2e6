"""Algorithms register themselves: config, learner, preflight and summary come from here; the loop never asks which.

An algorithm of your own is one class, in a plugin file (`ludus train ... --plugin my_algorithm.py`) or in a package
that names its module in the entry-point group `ludus.algorithms`:

    @register_algorithm("mine")
    class Mine(Algorithm[MyConfig, MyLearner]):
        config = MyConfig

        def make_learner(self, settings, parts): ...

`algorithm: mine` chooses it then, and the section `mine:` of the run's configuration holds its settings. The algorithms
that come with Ludus are found in the packages beside this file and use the same decorator.
"""

import logging
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel
from torch import Tensor

from ludus.algorithms.learner import Learner
from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.envs.base import BatchedEnv, EnvSpec
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.learner_batch import Opponents
from ludus.rollout.rewards import RolloutReward

GROUP = "ludus.algorithms"  # of entry points
Feature: TypeAlias = Literal["opponents", "curriculum", "adaptive_curriculum", "distributed"]
ConfigT = TypeVar("ConfigT", bound=BaseModel)
LearnerT = TypeVar("LearnerT", bound=Learner)
ClassT = TypeVar("ClassT", bound="type[Algorithm[Any, Any]]")

_ALGORITHMS: "dict[str, Algorithm[Any, Any]]" = {}
_LISTENERS: "list[Callable[[Algorithm[Any, Any]], None]]" = []

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LearnerParts:
    """What a learner is made of."""

    env: BatchedEnv  # the games
    policy: Policy  # what is learned, made from `Algorithm.policy_config`, on the device of the games
    policy_config: PolicyConfig  # the run's own settings of the policy
    reward: RolloutReward  # computes the rewards of a rollout
    seed: int = 0  # of exploration and minibatches
    learner: Tensor | None = None  # `(envs, seats)` bool, the seats that the learner plays; None for all
    opponents: Opponents | None = None  # who plays the other seats; None if the learner plays all


@dataclass(frozen=True, slots=True)
class DryRun:
    """What an algorithm found out about a small copy of a run."""

    lines: tuple[str, ...] = ()  # what it checked, for people
    activation_bytes: int = 0  # memory that a backward pass over the copy's whole rollout needs


@dataclass(frozen=True, slots=True)
class LearnerMemory:
    """Memory that a learner takes."""

    parts: Mapping[str, int]  # bytes, by what they are for
    state: int  # bytes of one copy of its state


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one iteration of a copy of a run took."""

    collect_s: float  # seconds of the rollout
    update_s: float  # seconds of the update
    env_steps: int  # env steps of the copy's iteration
    rows: int  # rows of the learner batch in the full run


class Algorithm(ABC, Generic[ConfigT, LearnerT]):
    """How a policy is learned; subclass it and decorate the class with `register_algorithm`.

    Only `config` and `make_learner` are required.

    Attributes:
        name: As in `algorithm: ppo`; also the section of the configuration that holds its settings.
        config: Model of its settings; every setting needs a default.
        features: What it can do besides learning from all seats of one batch: play against `opponents`, change games
            in a `curriculum` or an `adaptive_curriculum`, and share a run among processes (`distributed`).
        preflight_iterations: Iterations after which its first update has learned something.
        memory_advice: Which settings save memory, for the error of a run that needs too much.
    """

    name: str
    config: ClassVar[type[BaseModel]]
    features: ClassVar[frozenset[Feature]] = frozenset()
    preflight_iterations: ClassVar[int] = 1
    memory_advice: ClassVar[str] = "or smaller settings of the algorithm"

    @abstractmethod
    def make_learner(self, settings: ConfigT, parts: LearnerParts) -> LearnerT:
        """Make the learner and start its games."""

    def refused(self, settings: ConfigT, policy: PolicyConfig) -> list[str]:
        """Return the paths of settings that it cannot do, such as `policy.recurrent`."""
        return []

    def policy_config(self, policy: PolicyConfig) -> PolicyConfig:
        """Return the settings of the policy that plays, and that checkpoints hold."""
        return policy

    def rollout_steps(self, settings: ConfigT) -> int | None:
        """Return the steps of every row in an iteration; None if that is not fixed."""
        return None

    def update_passes(self, settings: ConfigT, rows: int) -> float:
        """Return how often the updates pass each env step through the network, forward and backward."""
        return 1.0

    def check(self, settings: ConfigT, policy: PolicyConfig, spec: EnvSpec, rows: int) -> str:
        """Describe what an iteration learns from, in a line; raise ConfigError if the settings do not fit."""
        return f"batch: {rows:,} rows"

    def summary(self, settings: ConfigT, rows: int) -> str:
        """Describe the settings in a line."""
        return f"{self.name}: {rows:,} rows, {settings}"

    def shrink(self, settings: ConfigT, policy: PolicyConfig, rows: int, steps: int) -> tuple[ConfigT, PolicyConfig]:
        """Return the settings of a copy of the run, with `rows` rows and at most `steps` steps per iteration."""
        return settings, policy

    def fit(self, settings: ConfigT, policy: PolicyConfig, rows: int) -> ConfigT:
        """Return the settings changed so that a rollout of another number of rows can be learned from."""
        return settings

    def share(self, settings: ConfigT, processes: int) -> ConfigT:
        """Return the settings of one of several processes that share a run; raise ConfigError if they cannot."""
        if "distributed" in self.features:
            return settings
        raise ConfigError(
            f"algorithm {self.name} learns in one process, not in {processes}; start it without torchrun, or use one "
            f"of {', '.join(name for name, other in algorithms().items() if 'distributed' in other.features)}"
        )

    def dry_run(self, learner: LearnerT) -> DryRun:
        """Check the learner of a small copy that has collected a rollout; raise VerificationError if it fails."""
        return DryRun()

    def memory(self, settings: ConfigT, learner: LearnerT, rows: int, dry_run: DryRun) -> LearnerMemory:
        """Scale what the learner of a small copy takes to the full run with `rows` rows."""
        learned = sum(part.tensor.nbytes for part in learner.learned())
        rollout = learner.rollout
        recorded = sum(tensor.nbytes for tensor in rollout.observations.values()) + rollout.rewards.nbytes
        recorded = recorded * rows // rollout.rows
        return LearnerMemory({"parameters and optimiser": 2 * learned, "rollout": recorded}, learned)

    def seconds_per_env_step(self, settings: ConfigT, timing: Timing) -> float:
        """Return how long the full run takes per env step, judged by an iteration of a copy."""
        return (timing.collect_s + timing.update_s) / timing.env_steps


def register_algorithm(name: str) -> Callable[[ClassT], ClassT]:
    """Register an algorithm under a name that is free and that a configuration can use; else raise ConfigError."""

    def register(algorithm_class: ClassT) -> ClassT:
        known = _ALGORITHMS.get(name)
        if not name.isidentifier():
            raise ConfigError(f"{name!r} cannot name an algorithm; use a name such as my_algorithm")
        # A plugin file that is loaded once more, by a worker or in a notebook, registers the same class again.
        if known is not None and _origin(type(known)) != _origin(algorithm_class):
            raise ConfigError(f"there is an algorithm {name!r} already ({type(known).__module__}); use another name")
        algorithm = algorithm_class()
        algorithm.name = name
        _ALGORITHMS[name] = algorithm
        for listener in _LISTENERS:
            listener(algorithm)
        return algorithm_class

    return register


def algorithms() -> "Mapping[str, Algorithm[Any, Any]]":
    """Return all algorithms by name: those of the package, of installed packages, and those registered since."""
    if not _DISCOVERED:
        _DISCOVERED.append(True)
        here = Path(__file__).parent
        for module in pkgutil.iter_modules([str(here)]):
            if module.ispkg:
                import_module(f"{__package__}.{module.name}.algorithm")
        for entry in entry_points(group=GROUP):
            try:
                entry.load()
            except BaseException as error:  # a package of others can raise anything; the other algorithms still work
                let_pass(error)
                logger.warning("[WARN] algorithm %s (%s) cannot be loaded: %s", entry.name, entry.value, blame(error))
    return _ALGORITHMS


_DISCOVERED: list[bool] = []


def find_algorithm(name: str) -> "Algorithm[Any, Any]":
    """Return an algorithm by its name; raise UnknownNameError if there is none."""
    known = algorithms()
    if name not in known:
        raise UnknownNameError("algorithm", name, tuple(sorted(known)))
    return known[name]


def on_registration(listener: "Callable[[Algorithm[Any, Any]], None]") -> None:
    """Call a function with every algorithm that is registered, now or later."""
    for algorithm in algorithms().values():
        listener(algorithm)
    _LISTENERS.append(listener)


def tensor_bytes(*tensors: Tensor) -> int:
    """Return the bytes of tensors together."""
    return sum(tensor.nbytes for tensor in tensors)


def _origin(algorithm_class: "type[Algorithm[Any, Any]]") -> tuple[str, str]:
    code = getattr(algorithm_class.make_learner, "__code__", None)
    return algorithm_class.__qualname__, "" if code is None else code.co_filename
