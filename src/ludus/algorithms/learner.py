"""What the training loop asks of a learner, whichever its algorithm."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from ludus.algorithms.ppo.seats import Rows


class Part(NamedTuple):
    """A tensor in which all numbers must be finite.

    Attributes:
        kind: observation, reward, policy output, loss, gradient or parameter.
        place: More exactly, in words.
        tensor: The numbers.
    """

    kind: str
    place: str
    tensor: Tensor


class Rollout(Protocol):
    """What was collected last.

    Attributes:
        steps: Of every row.
        rows: Learner seats of all games.
        observations: `(steps, rows, ...)` an entry.
        rewards: `(steps, rows)`.
    """

    steps: int
    rows: int
    observations: dict[str, Tensor]
    rewards: Tensor


class Learner(Protocol):
    """Collects and updates; an iteration is `collect`, `update` and one reading of the metrics.

    Attributes:
        iterations: Iterations done.
        env_steps: Steps of learner rows done.
    """

    iterations: int
    env_steps: int

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of tensors that `state` gives."""

    @property
    def rows(self) -> Rows:
        """Which seats of which games are learned from."""

    @property
    def rollout(self) -> Rollout:
        """The last rollout."""

    def iterate(self, progress: float = 0.0) -> dict[str, float]:
        """Does a whole iteration and returns the metrics."""

    def collect(self, progress: float = 0.0) -> None:
        """Collects one rollout; `progress` is the share of the training that is done."""

    def update(self, progress: float = 0.0) -> None:
        """Learns; `progress` is the share of the training that is done."""

    def metrics(self) -> dict[str, float]:
        """Reads the metrics of the last iteration."""

    def times_s(self) -> dict[str, float]:
        """Returns where the time since the last call went."""

    def outputs(self) -> list[Part]:
        """Returns what the last rollout consists of beside observations and rewards, causes before effects."""

    def learned(self) -> list[Part]:
        """Returns everything that an update changes, the parameters first."""

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Metrics of the last update that must be finite."""

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Returns everything but the games: tensors and what JSON can hold."""

    def load_state(
        self, tensors: Mapping[str, Tensor], counters: Mapping[str, Any], observations: dict[str, Tensor]
    ) -> None:
        """Takes what `state` gave, and the observations that restoring the games' snapshot gave."""
