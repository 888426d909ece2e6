"""How far a run is in its curriculum: the present phase, and the matches that decide about it."""

from collections.abc import Iterable
from typing import Any

from ludus.core.state import Count, StateModel, check_index
from ludus.curriculum.config import PhaseConfig, PromotionConfig


class CurriculumState(StateModel):
    """What `Curriculum` saves as JSON.

    Attributes:
        index: The present phase.
        since: Env steps at which it began.
        results: Whether each of the last matches that count was won.
    """

    index: Count
    since: Count
    results: list[bool]


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
        self._results: list[bool] = []

    @property
    def phase(self) -> PhaseConfig:
        """The present phase."""
        return self.phases[self.index]

    def win_rate(self) -> float | None:
        """Return the share of the matches that count for promotion that were won; None without any."""
        return sum(self._results) / len(self._results) if self._results else None

    def record(self, matches: Iterable[tuple[str, bool]], env_steps: int, rating: float | None = None) -> str | None:
        """Record the matches of an iteration; promote if the rules are met.

        Args:
            matches: Opponent and whether it was beaten, in the order in which the matches ended.
            env_steps: Env steps of the run so far.
            rating: The learner's live rating in the phase's mode; None before its first match there.

        Returns:
            Why it moved, in words; None if it stays.
        """
        rule = self.phase.promotion
        if rule is None:
            return None
        counted = [won for opponent, won in matches if rule.against is None or opponent in rule.against]
        self._results = [*self._results, *counted][-rule.matches :]
        reason = self._passed(rule, env_steps - self._since, rating)
        if reason is None or self.index + 1 == len(self.phases):
            return None
        old, self.index, self._since, self._results = self.phase.name, self.index + 1, env_steps, []
        return f"from phase {old!r} to {self.phase.name!r}: {reason}"

    def _passed(self, rule: PromotionConfig, inside: int, rating: float | None) -> str | None:
        """Return why the phase is passed after so many env steps inside it, or None."""
        if rule.after_env_steps is not None and inside < rule.after_env_steps:
            return None
        reasons = []
        if rule.rating is not None:
            if rating is None or rating < rule.rating:
                return None
            reasons.append(f"is rated {rating:.0f}")
        if rule.win_rate is not None:
            rate = sum(self._results) / rule.matches
            if len(self._results) < rule.matches or rate < rule.win_rate:
                return None
            reasons.append(f"won {rate:.0%} of the last {rule.matches} matches")
        return " and ".join(reasons) or f"{inside:,} env steps are over"

    def state(self) -> dict[str, Any]:
        """Return where it stands, for JSON."""
        return {"index": self.index, "since": self._since, "results": list(self._results)}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is not of these phases.
        """
        saved = CurriculumState.read(state, "course.curriculum")
        check_index(saved.index, len(self.phases), "course.curriculum.index")
        self.index, self._since, self._results = saved.index, saved.since, list(saved.results)
