"""How far a run is in its curriculum: the present stage, and the matches that decide about it."""

from collections.abc import Iterable, Mapping
from typing import Any

from ludus.core.errors import StateError
from ludus.curriculum.config import DemotionConfig, PromotionConfig, StageConfig


class Curriculum:
    """Counts matches and moves between stages.

    Attributes:
        stages: All stages.
        index: The present one.
    """

    def __init__(self, stages: tuple[StageConfig, ...]) -> None:
        self.stages = stages
        self.index = 0
        self._since = 0
        self._results: dict[str, list[int]] = {"promotion": [], "demotion": []}

    @property
    def stage(self) -> StageConfig:
        """The present stage."""
        return self.stages[self.index]

    def win_rate(self) -> float | None:
        """Returns the share of the matches that count for promotion that were won; None without any."""
        results = self._results["promotion"]
        return sum(results) / len(results) if results else None

    def record(self, matches: Iterable[tuple[str, bool]], env_steps: int, rating: float | None = None) -> str | None:
        """Takes the matches of an iteration, and moves on or back if the rules say so.

        Args:
            matches: Opponent and whether it was beaten, in the order in which the matches ended.
            env_steps: Env steps of the run so far.
            rating: The learner's live rating in the stage's mode; None before its first match there.

        Returns:
            Why it moved, in words; None if it stays.
        """
        stage = self.stage
        rules = {"promotion": stage.promotion, "demotion": stage.demotion}
        for opponent, won in matches:
            for kind, rule in rules.items():
                if rule is not None and (rule.against is None or opponent in rule.against):
                    results = self._results[kind]
                    results.append(int(won))
                    del results[: -rule.matches]
        if self.index + 1 < len(self.stages) and stage.promotion is not None:
            reason = self._passed(stage.promotion, env_steps - self._since, rating)
            if reason is not None:
                return self._move(self.index + 1, env_steps, reason)
        if stage.demotion is not None and self.index > 0:
            reason = self._failed(stage.demotion)
            if reason is not None:
                return self._move(self.index - 1, env_steps, reason)
        return None

    def _passed(self, rule: PromotionConfig, inside: int, rating: float | None) -> str | None:
        """Returns why the stage is passed after so many env steps inside it, or None."""
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
        old, self.index, self._since = self.stage.name, index, env_steps
        self._results = {"promotion": [], "demotion": []}
        return f"from stage {old!r} to {self.stage.name!r}: {reason}"

    def state(self) -> dict[str, Any]:
        """Returns where it stands, for JSON."""
        results = {kind: list(values) for kind, values in self._results.items()}
        return {"index": self.index, "since": self._since, "results": results}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It is not of these stages.
        """
        if not 0 <= int(state["index"]) < len(self.stages) or set(state["results"]) != set(self._results):
            raise StateError(f"the curriculum's state does not fit its {len(self.stages)} stages; use the same config")
        self.index, self._since = int(state["index"]), int(state["since"])
        self._results = {kind: [int(won) for won in values] for kind, values in state["results"].items()}
