"""Readiness: each number of a benchmark against what the tiers ask for, and the highest tier that is reached."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ludus.evaluation.estimates import Estimate
from ludus.evaluation.suite import Suite, SuiteRow

Word: TypeAlias = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One number of one row against all tiers that ask for it.

    Attributes:
        row: Name of the row.
        number: Name of the number.
        estimate: What was measured.
        more_is_better: Whether the tiers ask for at least, or at most, their target.
        targets: What each tier asks for, the lowest tier first.
    """

    row: str
    number: str
    estimate: Estimate
    more_is_better: bool
    targets: Mapping[str, float]

    def meets(self, tier: str) -> bool:
        """Says whether the number reaches the target of a tier; one that has none is met."""
        target = self.targets.get(tier)
        return target is None or self._margin(self.estimate.value, target) >= 0.0

    def within_reach(self, tier: str) -> bool:
        """Says whether the interval reaches the target, so that more matches might show that it is met."""
        low, high = self.estimate.interval()
        end = high if self.more_is_better else low
        return math.isfinite(end) and self._margin(end, self.targets[tier]) >= 0.0

    @property
    def reached(self) -> str | None:
        """The highest of the tiers with a target up to which all targets are met."""
        best = None
        for tier in self.targets:
            if not self.meets(tier):
                break
            best = tier
        return best

    @property
    def missed(self) -> str | None:
        """The lowest tier whose target is not met."""
        return next((tier for tier in self.targets if not self.meets(tier)), None)

    @property
    def word(self) -> Word:
        """OK if all targets are met, FAIL if the lowest one is surely missed, WARN between."""
        if self.missed is None:
            return "OK"
        return "FAIL" if self.reached is None and not self.within_reach(self.missed) else "WARN"

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "row": self.row,
            "number": self.number,
            **self.estimate.as_json(),
            "at_least" if self.more_is_better else "at_most": dict(self.targets),
            "reached": self.reached,
            "missed": self.missed,
            "verdict": self.word,
        }

    def _margin(self, value: float, target: float) -> float:
        return value - target if self.more_is_better else target - value


@dataclass(frozen=True, slots=True)
class Readiness:
    """How far an agent is.

    Attributes:
        tiers: All tiers, the lowest first.
        judgements: Every number that a tier asks for, in the order of the suite.
    """

    tiers: tuple[str, ...]
    judgements: tuple[Judgement, ...]

    @property
    def reached(self) -> str | None:
        """The highest tier all of whose targets, and those of all tiers below it, are met; None if there is none."""
        best = None
        for tier in self.tiers:
            if not all(judgement.meets(tier) for judgement in self.judgements):
                break
            best = tier
        return best

    @property
    def next_tier(self) -> str | None:
        """The lowest tier that is not reached."""
        place = 0 if self.reached is None else self.tiers.index(self.reached) + 1
        return self.tiers[place] if place < len(self.tiers) else None

    def missing(self, tier: str) -> tuple[Judgement, ...]:
        """Returns what keeps the agent from a tier."""
        return tuple(judgement for judgement in self.judgements if not judgement.meets(tier))

    def reaches(self, tier: str) -> bool:
        """Says whether a tier is reached."""
        return self.reached is not None and self.tiers.index(self.reached) >= self.tiers.index(tier)

    @property
    def word(self) -> Word:
        """OK at the highest tier, FAIL below the lowest, WARN between."""
        if self.next_tier is None:
            return "OK"
        return "FAIL" if self.reached is None else "WARN"

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        counts = {
            tier: {
                "targets": sum(tier in judgement.targets for judgement in self.judgements),
                "missed": len(self.missing(tier)),
            }
            for tier in self.tiers
        }
        return {
            "tiers": counts,
            "reached": self.reached,
            "verdict": self.word,
            "judgements": [judgement.as_json() for judgement in self.judgements],
        }


def judge(suite: Suite, numbers: Sequence[tuple[SuiteRow, Mapping[str, Estimate]]]) -> Readiness | None:
    """Holds the numbers of all rows against the suite's tiers; None if it has none."""
    if not suite.tiers:
        return None
    judgements = tuple(judgement for row, found in numbers for judgement in _judge_row(suite, row, found))
    return Readiness(suite.tiers, judgements)


def _judge_row(suite: Suite, row: SuiteRow, found: Mapping[str, Estimate]) -> Iterator[Judgement]:
    for more_is_better, asked in ((True, row.at_least), (False, row.at_most)):
        for number, targets in asked.items():
            in_order = {tier: targets[tier] for tier in suite.tiers if tier in targets}
            yield Judgement(row.name, number, found[number], more_is_better, in_order)
