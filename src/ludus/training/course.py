"""The course of a run: after every iteration, what its episodes change in rewards, stages and opponents."""

from collections.abc import Mapping
from typing import Any

from ludus.core.errors import StateError
from ludus.curriculum.progress import Curriculum
from ludus.training.callbacks import Counters, Episodes
from ludus.training.config import TrainConfig
from ludus.training.workbench import Workbench


class Course:
    """Decides between iterations; all its decisions follow from the episodes, so equal runs take equal courses.

    Attributes:
        curriculum: The stages, or None if the learner plays every seat.
    """

    def __init__(self, config: TrainConfig, bench: Workbench) -> None:
        self._bench = bench
        stages = config.stages()
        self.curriculum = Curriculum(stages) if stages else None
        self._has_stages = bool(config.curriculum)

    @property
    def stage(self) -> str:
        """Name of the present stage; empty without a curriculum."""
        return self.curriculum.stage.name if self.curriculum is not None and self._has_stages else ""

    def before(self, env_steps: int) -> None:
        """Prepares the next rollout."""
        self._bench.rewards.set_time(env_steps)

    def after(self, episodes: Episodes, counters: Counters) -> list[str]:
        """Takes the episodes of an iteration and returns what has changed, in words."""
        curriculum, opponents = self.curriculum, self._bench.opponents
        if curriculum is None or opponents is None:
            return []
        names = [episodes.names[index] for index in episodes.opponents]
        reason = curriculum.record(zip(names, (episodes.outcomes > 0).tolist(), strict=True), counters.env_steps)
        if reason is None:
            return []
        self._bench.rewards.set_stage(curriculum.index, counters.env_steps)
        opponents.set_mix(curriculum.stage.opponents)
        return [reason]

    def state(self) -> dict[str, Any]:
        """Returns where everything stands, for JSON."""
        state: dict[str, Any] = {"rewards": self._bench.rewards.state()}
        if self.curriculum is not None:
            state["curriculum"] = self.curriculum.state()
        return state

    def load_state(self, state: Mapping[str, Any], env_steps: int) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: A part is missing or does not fit.
        """
        try:
            self._bench.rewards.load_state(state["rewards"], env_steps)
            if self.curriculum is not None:
                self.curriculum.load_state(state["curriculum"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state of the run's course is incomplete ({error!r}); use the same config") from error
