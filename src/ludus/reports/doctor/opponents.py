"""What matches say: good against itself and poor against others, or beaten by what it once beat."""

import re
from dataclasses import dataclass

import numpy as np

from ludus.core.intervals import Interval, wilson_interval
from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict
from ludus.reports.doctor.measures import SELF, late_part
from ludus.reports.run_data import RunData, Table

GAP = 0.25  # of the win rate against past selves above that against bots
LOST = 0.4  # win rate against an old snapshot below which it counts as one that beats the learner
FEWEST_MATCHES = 20
OLD = 0.5  # of the snapshots that the learner met; the older ones

_NUMBER = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class Score:
    """How matches went; a draw counts half.

    Attributes:
        rate: Share of points with its 95 % interval.
        matches: How many.
    """

    rate: Interval
    matches: int

    def text(self) -> str:
        """Returns it in words."""
        return f"{self.rate.estimate:.0%} ({self.rate.low:.0%} to {self.rate.high:.0%}, {self.matches} matches)"


def score_of(table: Table) -> Score:
    """Adds up rows with `matches`, `wins` and `draws`."""
    matches = int(np.nansum(table.numbers("matches")))
    points = float(np.nansum(table.numbers("wins")) + 0.5 * np.nansum(table.numbers("draws")))
    return Score(wilson_interval(min(round(points), matches), matches), matches)


def overfitting_to_self_play(data: RunData) -> Verdict:
    """It beats its past selves far more often than it beats bots."""
    late = late_part(data.opponents)
    is_self = late.texts("kind") == SELF
    against_self, file = score_of(late.rows(is_self)), "opponents.csv"
    against_bots = score_of(late.rows(~is_self))
    if len(data.evaluations):
        steps = data.evaluations.numbers("env_steps")
        last = data.evaluations.rows(steps == steps[-1])
        if "wins" in last:
            against_bots, file = score_of(last), "evaluation_results.csv"
    if min(against_self.matches, against_bots.matches) < FEWEST_MATCHES:
        return Unknown(f"fewer than {FEWEST_MATCHES} late matches against past selves, or against bots")
    if against_self.rate.low - against_bots.rate.high < 0 or (
        against_self.rate.estimate - against_bots.rate.estimate < GAP
    ):
        return []
    evidence = (
        f"late win rate against past selves {against_self.text()} (opponents.csv)",
        f"against bots {against_bots.text()} ({file})",
    )
    changes = _more_kinds(data)
    if data.setting("league.sampler") not in ("uniform", "pfsp"):
        changes.append(Change("league.sampler", data.setting("league.sampler"), "pfsp"))
    remedy = "let it meet more kinds of opponents: more bots in the mix, and past selves of all ages"
    return [Finding("it is overfitted to self-play", evidence, remedy, tuple(changes))]


def _more_kinds(data: RunData) -> list[Change]:
    """Returns how bots get more of the matches; nothing for a curriculum, whose stages have mixes of their own."""
    mix = data.setting("opponents")
    if not mix:
        return []
    weight = float(mix.get(SELF, 1.0))
    if any(share for name, share in mix.items() if name != SELF):
        return [Change("opponents.self", weight, 0.5 * weight)]
    names = list(dict.fromkeys(name for name in data.evaluations.texts("opponent").tolist() if name))[:3]
    paths = [name if name.replace("-", "").isalnum() else f'"{name}"' for name in names]
    return [
        Change(f"opponents.{path}", mix.get(name, "not set"), round(0.3 * weight / len(names), 4))
        for path, name in zip(paths, names, strict=True)
    ]


def _age(name: str) -> int:
    """Returns the number in a snapshot's name, by which older ones come first; `start` has none and is the oldest."""
    number = _NUMBER.search(name)
    return int(number.group()) if number is not None else 0


def forgetting(data: RunData) -> Verdict:
    """It loses to snapshots of itself that are old."""
    late = late_part(data.opponents)
    selves = late.rows(late.texts("kind") == SELF)
    names = selves.texts("opponent")
    met = sorted(set(data.opponents.texts("opponent")[data.opponents.texts("kind") == SELF].tolist()), key=_age)
    old = met[: int(len(met) * OLD)]
    scores = {name: score_of(selves.rows(names == name)) for name in old}
    judged = {name: score for name, score in scores.items() if score.matches >= FEWEST_MATCHES}
    if not judged:
        return Unknown(f"fewer than {FEWEST_MATCHES} late matches against any old past self")
    beaten_by = {name: score for name, score in judged.items() if score.rate.estimate < LOST and score.rate.high < 0.5}
    if not beaten_by:
        return []
    worst = sorted(beaten_by, key=lambda name: beaten_by[name].rate.estimate)[:3]
    evidence = (
        f"late in the run it loses to {len(beaten_by)} of {len(judged)} old past selves (opponents.csv)",
        *(f"win rate against {name} {beaten_by[name].text()}" for name in worst),
    )
    sampler = data.setting("league.sampler")
    if sampler == "pfsp":
        power = data.setting("league.pfsp_power", 2.0)
        change = Change("league.pfsp_power", power, 2.0 * power)
    else:
        change = Change("league.sampler", sampler, "pfsp")
    remedy = "let past selves that beat it play more often, so that it stays able to beat them all"
    return [Finding("it forgets: it loses to old snapshots of itself", evidence, remedy, (change,))]
