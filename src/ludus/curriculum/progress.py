"""How far a run is in its curriculum: the present phase, and the matches that decide about it."""

from collections.abc import Iterable
from typing import Any, Literal

from ludus.core.state import Count, StateModel, check_index, check_names
from ludus.curriculum.config import DemotionConfig, PhaseConfig, PromotionConfig


class CurriculumState(StateModel):
    """What `Curriculum` saves as JSON.

    Attributes:
        index: The present phase.
        since: Env steps at which it began.
        results: 1 for every match won and 0 for every other one, by the rule that it counts for.
    """

    index: Count
    since: Count
    results: dict[Literal["promotion", "demotion"], list[Literal[0, 1]]]


class Curriculum:
    """Counts matches and moves between phases.

    Attributes:
        phases: All phases.
        index: The present one.
    """

    def __init__(self, phases: tuple[PhaseConfig, ...]) -> None:
        self.phases = phases
        self.index = 0
        self._since = 0
        self._results: dict[str, list[int]] = {"promotion": [], "demotion": []}

    @property
    def phase(self) -> PhaseConfig:
        """The present phase."""
        return self.phases[self.index]

    def win_rate(self) -> float | None:
        """Return the share of the matches that count for promotion that were won; None without any."""
        results = self._results["promotion"]
        return sum(results) / len(results) if results else None

    def record(self, matches: Iterable[tuple[str, bool]], env_steps: int, rating: float | None = None) -> str | None:
        """Record the matches of an iteration; promote or demote if the rules are met.

        Args:
            matches: Opponent and whether it was beaten, in the order in which the matches ended.
            env_steps: Env steps of the run so far.
            rating: The learner's live rating in the phase's mode; None before its first match there.

        Returns:
            Why it moved, in words; None if it stays.
        """
        phase = self.phase
        rules = {"promotion": phase.promotion, "demotion": phase.demotion}
        for opponent, won in matches:
            for kind, rule in rules.items():
                if rule is not None and (rule.against is None or opponent in rule.against):
                    results = self._results[kind]
                    results.append(int(won))
                    del results[: -rule.matches]
        if self.index + 1 < len(self.phases) and phase.promotion is not None:
            reason = self._passed(phase.promotion, env_steps - self._since, rating)
            if reason is not None:
                return self._move(self.index + 1, env_steps, reason)
        if phase.demotion is not None and self.index > 0:
            reason = self._failed(phase.demotion)
            if reason is not None:
                return self._move(self.index - 1, env_steps, reason)
        return None

    def _passed(self, rule: PromotionConfig, inside: int, rating: float | None) -> str | None:
        """Return why the phase is passed after so many env steps inside it, or None."""
        if rule.at_latest_env_steps is not None and inside >= rule.at_latest_env_steps:
            return f"{inside:,} env steps are its longest time"
        if rule.after_env_steps is not None and inside < rule.after_env_steps:
            return None
        reasons = []
        if rule.rating is not None:
            if rating is None or rating < rule.rating:
                return None
            reasons.append(f"is rated {rating:.0f}")
        if rule.win_rate is not None:
            results = self._results["promotion"]
            rate = sum(results) / rule.matches
            if len(results) < rule.matches or rate < rule.win_rate:
                return None
            reasons.append(f"won {rate:.0%} of the last {rule.matches} matches")
        if not reasons and rule.after_env_steps is not None:
            reasons.append(f"{inside:,} env steps are over")
        return " and ".join(reasons) or None

    def _failed(self, rule: DemotionConfig) -> str | None:
        results = self._results["demotion"]
        rate = sum(results) / rule.matches
        if len(results) < rule.matches or rate >= rule.win_rate:
            return None
        return f"won only {rate:.0%} of the last {rule.matches} matches"

    def _move(self, index: int, env_steps: int, reason: str) -> str:
        old, self.index, self._since = self.phase.name, index, env_steps
        self._results = {"promotion": [], "demotion": []}
        return f"from phase {old!r} to {self.phase.name!r}: {reason}"

    def state(self) -> dict[str, Any]:
        """Return where it stands, for JSON."""
        results = {kind: list(values) for kind, values in self._results.items()}
        return {"index": self.index, "since": self._since, "results": results}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is not of these phases.
        """
        saved = CurriculumState.read(state, "course.curriculum")
        check_index(saved.index, len(self.phases), "course.curriculum.index")
        check_names(saved.results, self._results, "course.curriculum.results")
        self.index, self._since = saved.index, saved.since
        self._results = {kind: list(values) for kind, values in saved.results.items()}
