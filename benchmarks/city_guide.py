"""How often the guide of a run was asked, answered and followed, and whether following it paid.

    python -m benchmarks.city_guide RUN

A correlation: the agent chose when to follow, so other things than the advice may explain the difference.
"""

import argparse
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ludus.cli.console import print_table
from ludus.core.errors import ConfigError
from ludus.core.intervals import Interval, mean_interval, wilson_interval
from ludus.core.tables import Table
from ludus.reports.run_data import read_run
from ludus.worlds.city.guide import CAUSES

COUNTS = (
    *("guide_questions", "guide_answers", "guide_cached", "guide_failures", *(f"guide_no_{cause}" for cause in CAUSES)),
    *("guide_advised", "guide_followed"),
)


class GuideReport(TypedDict):
    """What a run says about its guide."""

    counts: dict[str, float]  # totals over all finished cities, by the names of the episode metrics
    followed_share: Interval | None  # of all advice; None without any
    gain_followed: Interval | None  # people who came from followed advice to the next question
    gain_ignored: Interval | None  # the same of advice that was not followed
    difference: Interval | None  # the former minus the latter; None unless there was advice of both sorts


def guide_report(table: Table) -> GuideReport:
    """Return the report from the episode metrics of a run, with intervals of 95 %.

    The independent samples of the gains are the rows of the table, each of which is about the cities that ended in one
    iteration: what comes of the advice in one city is not independent. The share takes every advice for a sample.

    Raises:
        ConfigError: The run had no guide, or no city has ended yet.
    """
    if "guide_questions" not in table or not len(table):
        raise ConfigError("no city of this run has ended with a guide; train with world.settings.guide")
    rows = np.isfinite(table.numbers("guide_questions"))

    def totals(name: str) -> NDArray[np.float64]:
        return (table.numbers(name) * table.numbers("episodes"))[rows]

    followed, ignored = totals("guide_followed"), totals("guide_ignored")
    advised = round(followed.sum() + ignored.sum())
    paid = _samples(totals("guide_people_followed"), followed)
    unpaid = _samples(totals("guide_people_ignored"), ignored)
    return {
        "counts": {name: float(totals(name).sum()) for name in COUNTS},
        "followed_share": wilson_interval(round(followed.sum()), advised) if advised else None,
        "gain_followed": _interval(paid),
        "gain_ignored": _interval(unpaid),
        "difference": _interval(None if paid is None or unpaid is None else paid - unpaid),
    }


def _samples(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return values `(rows,)` whose mean is the ratio r of the totals and that vary as it does; None without any.

    Delta method: r + (above - r * below) / mean(below); see `ratio_estimate`.
    """
    if below.sum() <= 0.0:
        return None
    ratio = above.sum() / below.sum()
    samples: NDArray[np.float64] = ratio + (above - ratio * below) / below.mean()
    return samples


def _interval(samples: NDArray[np.float64] | None) -> Interval | None:
    return None if samples is None else mean_interval(samples.tolist())


def main() -> None:
    """Print the report of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder")
    report = guide_report(read_run(parser.parse_args().run).episode_metrics)
    print_table(("count", "total"), [(name, f"{total:,.0f}") for name, total in report["counts"].items()])
    estimates = {
        "share of advice that was followed": report["followed_share"],
        "people until the next question, followed": report["gain_followed"],
        "people until the next question, ignored": report["gain_ignored"],
        "difference": report["difference"],
    }
    rows = [
        (name, "none", "") if found is None else (name, f"{found.estimate:.3g}", f"{found.low:.3g} to {found.high:.3g}")
        for name, found in estimates.items()
    ]
    print_table(("estimate", "value", "95 % interval"), rows)


if __name__ == "__main__":
    main()
