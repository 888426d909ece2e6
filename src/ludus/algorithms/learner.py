"""The interface between the training loop and the learner of any algorithm."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.core.state import Count, StateModel
from ludus.envs.base import Observations
from ludus.policies.config import ExplorationConfig
from ludus.rollout.learner_batch import LearnerBatch

Groups: TypeAlias = Mapping[str, Mapping[str, Tensor]]  # tensors by group, as a checkpoint stores them
Gather: TypeAlias = Callable[[Sequence[float]], Sequence[Sequence[float]]]  # numbers of a process -> of all, by rank


class LearnerCounters(StateModel):
    """What every learner saves as JSON; each adds its own."""

    iterations: Count  # iterations done
    env_steps: Count  # steps of learner rows done


class Part(NamedTuple):
    """A tensor in which all numbers must be finite."""

    kind: str  # observation, reward, policy output, loss, gradient or parameter
    place: str  # details as text
    tensor: Tensor  # the numbers


@dataclass(frozen=True, slots=True)
class Fault:
    """Where the first NaN or Inf was found; see `Part` for kind and place."""

    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.place})"


class Rollout(Protocol):
    """What was collected last."""

    steps: int  # of every row
    rows: int  # learner seats of all games
    observations: dict[str, Tensor]  # one `(steps, rows, ...)` tensor per entry
    rewards: Tensor  # `(steps, rows)`


class Learner(ABC):
    """Collects and updates; an iteration is `collect`, `update` and one reading of the metrics."""

    iterations: int = 0  # iterations done
    env_steps: int = 0  # steps of learner rows done
    # How the policy explores while it collects, where the algorithm lets it be changed.
    exploration: ExplorationConfig | None = None

    @property
    @abstractmethod
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` returns."""

    @property
    def live_groups(self) -> tuple[str, ...]:
        """Groups of `state` that show the learner's own tensors, too large to copy: a run waits while it saves them."""
        return ()

    @property
    @abstractmethod
    def rows(self) -> LearnerBatch:
        """Which seats of which games are learned from."""

    @property
    @abstractmethod
    def rollout(self) -> Rollout:
        """The last rollout."""

    @abstractmethod
    def collect(self, progress: float = 0.0) -> None:
        """Collect one rollout; `progress` is the share of the training that is done, 0 to 1."""

    @abstractmethod
    def update(self, progress: float = 0.0) -> None:
        """Learn; `progress` is the share of the training that is done, 0 to 1."""

    @abstractmethod
    def metrics(self) -> dict[str, float]:
        """Read the metrics of the last iteration, `updates` among them: the optimiser's steps."""

    @abstractmethod
    def learned(self) -> list[Part]:
        """Return everything that an update changes, the parameters first."""

    @abstractmethod
    def state(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """Return everything but the games: groups of tensors, `policy` among them, and what JSON can hold."""

    @abstractmethod
    def load_state(
        self, groups: Groups, counters: Mapping[str, Any], observations: Observations, *, games_restarted: bool = False
    ) -> None:
        """Restore the state returned by `state()`, with the observations of the restored games; or raise StateError.

        With `games_restarted` the world could not restore its games, so all episodes restart.
        """

    def load_learned(self, groups: Groups, counters: Mapping[str, Any]) -> None:
        """Restore all but the games, to continue in other games; raise StateError if something does not fit."""
        raise UnsupportedError(f"{type(self).__name__} cannot continue in other games")

    def iterate(self, progress: float = 0.0) -> dict[str, float]:
        """Do a whole iteration and return the metrics."""
        self.collect(progress)
        self.update(progress)
        return self.metrics()

    def times_s(self) -> dict[str, float]:
        """Return where the time since the last call went."""
        return {}

    def outputs(self) -> list[Part]:
        """Return what the last rollout consists of besides observations and rewards, causes before effects."""
        return []

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Metrics of the last update that must be finite."""
        return ()

    def join_metrics(self, metrics: Mapping[str, float], gather: Gather) -> dict[str, float]:
        """Return the metrics of the whole batch where several processes collected a part of it each."""
        raise UnsupportedError(f"{type(self).__name__} learns in one process")
