"""The verdict of an analysis in plain words: what is known, by how much, and what is not known."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ludus.analysis.ablation import CONDITIONS, HARMFUL, NEEDED
from ludus.analysis.actions import OTHER_STYLE, SAME_STYLE
from ludus.analysis.drift import difference
from ludus.core.intervals import Interval

if TYPE_CHECKING:
    from ludus.analysis.behaviour import Behaviour
    from ludus.analysis.summary import Analysis

Level = Literal["good", "mixed", "bad", "unknown"]

_NOT_KNOWN = "not known"
_CALIBRATED = 0.05  # mean distance of certainty from accuracy up to which it is called well calibrated
_BARELY = 0.01  # share of decisions below which a difference hardly matters
_CONTROLS = {"untrained": "the same networks untrained give {}", "observation": "the current frame alone gives {}"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question."""

    question: str
    answer: str
    level: Level
    text: str


def judge(analysis: "Analysis") -> tuple[Finding, ...]:
    """Answer what people ask of an agent that is meant to recognise its opponent."""
    return tuple(_findings(analysis))


def _findings(analysis: "Analysis") -> Iterator[Finding]:
    recognition = _recognition(analysis)
    yield recognition
    yield _speed(analysis, recognises=recognition.level != "bad")
    yield _certainty(analysis)
    yield _action(analysis)
    yield _use(analysis)
    yield _switches(analysis)


def _recognition(analysis: "Analysis") -> Finding:
    probes, styles = analysis.probes, len(analysis.recording.styles)
    own, chance = probes["trained"].frames, probes["trained"].chance
    gains = {name: difference(own, probes[name].frames) for name in _CONTROLS if name in probes}
    beaten = [name for name, gain in gains.items() if gain.low > 0.0]
    shown = ", ".join(_CONTROLS[name].format(_share(probes[name].frames)) for name in gains)
    text = (
        f"A linear probe of its {analysis.features} names the opponent's style, one of {styles}, in {_share(own)} of "
        f"the frames of held-out matches. Chance is {100 * chance:.1f} %; {shown}."
    )
    if analysis.belief.source == "head":
        text += f" Its own classification head is right in {_share(analysis.belief.right)} of the frames."
    if own.low <= chance:
        return Finding("Does it recognise its opponent?", "not seen", "bad", f"{text} That is not above chance.")
    if len(beaten) == len(gains):
        return Finding("Does it recognise its opponent?", "yes", "good", f"{text} It knows more than all of these.")
    names = " and ".join("the untrained networks" if name == "untrained" else "the current frame"
                         for name in gains if name not in beaten)  # fmt: skip
    text += f" It is above chance, but not clearly above {names}: training is not seen to have added to that."
    return Finding("Does it recognise its opponent?", "partly", "mixed", text)


def _speed(analysis: "Analysis", *, recognises: bool) -> Finding:
    question = "How soon?"
    if not recognises:
        return Finding(
            question, _NOT_KNOWN, "unknown", "It does not recognise its opponent, so there is no time to tell."
        )
    probe, times_s = analysis.probes["trained"], analysis.recording.times_s
    known = [(time_s, each.estimate) for time_s, each in zip(times_s, probe.so_far, strict=True) if each.low > 0.0]
    best = max((estimate for _, estimate in known), default=probe.chance)
    half = probe.chance + 0.5 * (best - probe.chance)
    reached = next((float(time_s) for time_s, estimate in known if estimate >= half), None)
    if reached is None:
        return Finding(question, _NOT_KNOWN, "unknown", "Accuracy does not rise during the seconds that were recorded.")
    text = (
        f"From all frames so far, the probe names the style of {_percent(half)} of matches after {reached:.1f} s, "
        f"which is half way from chance to its best, {_percent(best)}."
    )
    return Finding(question, f"{reached:.1f} s", "good", text)


def _certainty(analysis: "Analysis") -> Finding:
    belief = analysis.belief
    who = "Its classification head" if belief.source == "head" else f"The probe that reads its {analysis.features}"
    gap = belief.said - belief.right.estimate
    text = (
        f"{who} gives the likeliest style {_percent(belief.said)} on average and is right in {_share(belief.right)} of "
        f"the frames. What it says is {100 * belief.calibration_error:.0f} points from how often it is right, on "
        "average over all frames"
    )
    if belief.calibration_error <= _CALIBRATED:
        level: Level = "good"
        text += ": a probability of it can be taken at its word."
    elif abs(gap) < 0.5 * belief.calibration_error:
        level = "mixed"
        text += ": it is too sure at some times and too doubtful at others."
    else:
        level = "mixed"
        text += f": it is too {'sure' if gap > 0.0 else 'doubtful'}."
    return Finding(
        "How sure is it?", f"says {_percent(belief.said)}, right {_percent(belief.right.estimate)}", level, text
    )


def _action(analysis: "Analysis") -> Finding:
    question, behaviour = "Does it act on what it knows?", analysis.behaviour
    effect, other, same = (
        behaviour.mean_style_effect, behaviour.effects[OTHER_STYLE].mean, behaviour.effects[SAME_STYLE].mean
    )  # fmt: skip
    if not behaviour.are_shares:
        form, what = _plain, "its expected action moves by"
    else:
        form, what = _share, "the share of decisions that change is"
    text = (
        f"On the same observations, with the {analysis.features} of a match against another style, {what} "
        f"{form(other)}; with that of another match against the same style {form(same)}. The style alone makes "
        f"{form(effect)}."
    )
    if behaviour.are_shares and effect.high < _BARELY and not effect.low > 0.0:
        return Finding(question, "no", "bad", text)
    if not effect.low > 0.0:
        return Finding(question, "not seen", "unknown", text)
    text += _largest_shift(analysis, behaviour)
    if behaviour.are_shares and effect.estimate < _BARELY:
        return Finding(question, "barely", "mixed", text)
    return Finding(question, "yes", "good", text)


def _largest_shift(analysis: "Analysis", behaviour: "Behaviour") -> str:
    """Return the action that another style's features change most, among those whose interval excludes 0."""
    clear = [
        (abs(shift.estimate), style, name, shift)
        for style, row in zip(analysis.recording.styles, behaviour.effects[OTHER_STYLE].shifts, strict=True)
        for name, shift in zip(behaviour.names, row, strict=True)
        if shift.low > 0.0 or shift.high < 0.0
    ]
    if not clear:
        return ""
    _, style, name, shift = max(clear, key=lambda each: each[0])
    more = "more" if shift.estimate > 0.0 else "less"
    size = f"{100 * abs(shift.estimate):.1f} points" if behaviour.are_shares else f"{abs(shift.estimate):.3f}"
    return f" The largest: against {style} it does '{name}' {more} by {size} than if it took it for another."


def _use(analysis: "Analysis") -> Finding:
    question, ablation = "Does that win matches?", analysis.ablation
    if ablation is None:
        return Finding(question, _NOT_KNOWN, "unknown", "The ablation was left out; run again without --no-ablation.")
    mean, others = ablation.mean, CONDITIONS[1:]
    form, unit = (_share, "matches won") if ablation.score == "win_rate" else (_plain, "mean return")
    losses = _points if ablation.score == "win_rate" else _plain
    without = " and ".join(f"{form(mean.scores[name])} with it {name}" for name in others)
    lost = " and ".join(losses(mean.losses[name]) for name in others)
    text = (
        f"{unit.capitalize()}: {form(mean.scores[CONDITIONS[0]])} with its {analysis.features} as it is, {without}. "
        f"The loss without it is {lost}."
    )
    verdicts = [mean.verdict(name) for name in others]
    if verdicts == [NEEDED] * len(others):
        return Finding(question, "yes", "good", text)
    if HARMFUL in verdicts:
        return Finding(question, "it harms", "bad", text)
    if NEEDED in verdicts:
        return Finding(question, "partly", "mixed", text)
    return Finding(question, "not seen", "unknown", f"{text} No interval excludes 0; more matches make them narrower.")


def _switches(analysis: "Analysis") -> Finding:
    question, drift = "Does it notice a switch of style?", analysis.drift
    if drift is None:
        reason = "; ".join(analysis.notes) or "no drift was measured"
        return Finding(question, _NOT_KNOWN, "unknown", f"There is {reason}.")
    before, after = (float(drift.new_style[part].mean()) for part in (drift.times_s < 0.0, drift.times_s >= 3.0))
    text = (
        f"Over {drift.switches} switches, the probe's probability of the new style goes from {_percent(before)} before "
        f"to {_percent(after)} in the fourth second after."
    )
    if drift.probe_time_constant_s is None:
        return Finding(question, "not seen", "unknown", text)
    text += f" Time constant {drift.probe_time_constant_s:.1f} s."
    return Finding(question, "yes", "good", text)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _share(interval: Interval) -> str:
    value, low, high = (100.0 * part for part in interval)
    return f"{value:.1f} % ({low:.1f} to {high:.1f})"


def _points(interval: Interval) -> str:
    value, low, high = (100.0 * part for part in interval)
    return f"{value:.1f} points ({low:.1f} to {high:.1f})"


def _plain(interval: Interval) -> str:
    return f"{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})"
