"""A trial as Ray Tune sees it: an actor that trains the runs of a trial and reports their evaluations."""

import json
import math
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray.tune import Trainable

from ludus.core.errors import StateError, WorkerError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object, write_text_atomic
from ludus.rewards.plugins import load_plugin
from ludus.scale.config import SweepPlan, read_sweep
from ludus.scale.runs import Progress, TrialRuns, note_error
from ludus.scale.search import EVALUATIONS, VALUE
from ludus.scale.space import Code

_FORK_FILE = "fork.json"


class SweepTrial(Trainable):  # type: ignore[misc] # Ray is not followed
    """Trains one trial up to the scheduler's next decision, then reports one evaluation per step.

    A checkpoint of Tune names a snapshot in the sweep folder; the state itself is in checkpoints of ours.
    """

    def setup(
        self, config: dict[str, Any], sweep: str = "", plugins: Sequence[str] = (), ends_at_s: float = math.inf
    ) -> None:
        """Open the trial that Tune has given this actor."""
        self._sweep, self._ends_at_s = Path(sweep), ends_at_s
        try:
            for plugin in plugins:
                load_plugin(plugin)
            self._plan: SweepPlan = read_sweep(self._sweep)
            self.reset_config(config)
        except Exception as error:
            raise WorkerError(note_error(self._sweep, str(self.trial_name), error)) from None

    def reset_config(self, new_config: Mapping[str, Code]) -> bool:
        """Open another trial in the same process: importing torch again would take seconds."""
        self._runs = TrialRuns(self._plan, self._sweep, str(self.trial_name), self._plan.decode(new_config))
        self._reported = 0
        self._queue: deque[int] = deque()
        self._progress: Progress | None = None
        return True

    def step(self) -> dict[str, Any]:
        """Return the next evaluation of all seeds; train until the scheduler's next decision if there is none yet."""
        try:
            return self._step()
        except Exception as error:  # of users' code too; most of our own errors cannot be pickled
            raise WorkerError(note_error(self._sweep, self._runs.name, error)) from None

    def _step(self) -> dict[str, Any]:
        if not self._runs.is_current:
            raise StateError(f"{self._runs.name} has other values than its runs, and no checkpoint to fork from")
        if not self._queue:
            self._advance()
        progress = self._progress
        assert progress is not None  # noqa: S101 - set by `_advance`
        if self._queue:
            self._reported = self._queue.popleft()
        count = self._reported
        is_last = not self._queue
        values = [points[count - 1].value for points in progress.points] if count else [math.nan]
        return {
            VALUE: sum(values) / len(values),
            EVALUATIONS: count,
            "points": [[tuple(point) for point in points[:count]] for points in progress.points],
            "values": self._runs.values,
            "forks": self._runs.forks(),
            "wall_s": progress.wall_s,
            "reason": progress.reason if is_last else "",
            "is_interrupted": is_last and progress.is_interrupted,
            "is_finished": is_last and progress.is_finished,
            "done": is_last and bool(progress.is_finished or progress.reason),
        }

    def _advance(self) -> None:
        progress = self._runs.progress()  # a resumed trial has evaluations that this scheduler has not seen
        config, known = self._plan.config, min(map(len, progress.points))
        if known <= self._reported and not progress.is_finished:
            progress = self._runs.advance(config.next_decision(self._reported), self._ends_at_s)
            known = min(map(len, progress.points))
        new = range(self._reported + 1, known + 1)
        # A population is forked from the state that was reported last: the runs themselves must not be further.
        self._queue = deque(new[-1:] if config.is_population else new)
        self._progress = progress

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Keep the state for forks, or to continue after a pause."""
        snapshot = str(self._runs.snapshot().relative_to(self._sweep)) if self._plan.config.is_population else ""
        document = {"trial": self._runs.name, "snapshot": snapshot}
        write_text_atomic(Path(checkpoint_dir, _FORK_FILE), json.dumps(document))

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Continue after a pause, or from the state of another trial."""
        document = read_json_object(Path(checkpoint_dir, _FORK_FILE), limit=MAX_DOCUMENT_BYTES)
        if document["trial"] != self._runs.name:
            self._runs.fork(self._sweep / document["snapshot"], document["trial"])
        self._reported = min(map(len, self._runs.progress().points))
