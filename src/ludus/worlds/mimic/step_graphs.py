"""A step of all walkers as CUDA graphs: the host issues three replays instead of hundreds of kernels."""

from collections.abc import Callable, Sequence

from torch import Tensor

from ludus.envs.base import StepResult
from ludus.rollout.cuda_graphs import capture


class StepGraphs:
    """Replays what comes before and after the physics; the physics keeps a graph of its own.

    What a step returns lies in the memory of the graphs, which the next one overwrites.
    """

    def __init__(
        self,
        decide: Callable[[Tensor], None],
        advance: Callable[[], None],
        conclude: Callable[[], StepResult],
        changed: Sequence[Tensor],
    ) -> None:
        """Wait for the first actions.

        Args:
            decide: Turns actions into what drives the physics.
            advance: Advances the physics.
            conclude: Returns what follows from it, and restarts games that ended.
            changed: All tensors that these change.
        """
        self._decide, self._advance, self._conclude, self._changed = decide, advance, conclude, changed
        self._actions: Tensor | None = None

    def step(self, actions: Tensor) -> StepResult:
        """Advance by actions; the first call records the graphs."""
        if self._actions is None:
            self._record(actions)
        else:
            self._actions.copy_(actions)
        self._before.replay()
        self._advance()
        self._after.replay()
        return self._result

    def _record(self, actions: Tensor) -> None:
        given = self._actions = actions.clone()
        self._before = capture(lambda: self._decide(given), self._changed)
        self._after = capture(self._run_conclude, self._changed)

    def _run_conclude(self) -> None:
        self._result = self._conclude()
