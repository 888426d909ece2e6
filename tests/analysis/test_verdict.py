"""The verdict in words: it follows the intervals, and says what is not known."""

from dataclasses import replace

import pytest
import torch
from tests.strategies import MINIMAL

from ludus.analysis.ablation import compare
from ludus.analysis.summary import Analysis, analyse
from ludus.analysis.verdict import Finding, judge
from ludus.core.intervals import Interval, wilson_interval
from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import Evaluation
from ludus.policies.agent import Agent
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """The analysis of an untrained agent."""
    with make_env("duel") as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        agent = Agent(Policy(env.spec, PolicyConfig.model_validate({"strategy": MINIMAL})))
    return analyse(agent, matches=6, ablation=False)


def answer(analysis: Analysis, word: str) -> Finding:
    (found,) = [finding for finding in judge(analysis) if word in finding.question]
    return found


def known(analysis: Analysis, trained: Interval, untrained: Interval, observation: Interval) -> Analysis:
    frames = {"trained": trained, "untrained": untrained, "observation": observation}
    return replace(analysis, probes={name: replace(analysis.probes[name], frames=frames[name]) for name in frames})


def test_recognition_is_judged_against_chance_and_the_controls(analysis: Analysis) -> None:
    high, middle, low = Interval(0.9, 0.88, 0.92), Interval(0.6, 0.55, 0.65), Interval(0.35, 0.3, 0.4)
    assert answer(known(analysis, high, middle, low), "recognise").answer == "yes"
    partly = answer(known(analysis, middle, middle, low), "recognise")
    assert partly.answer == "partly"
    assert "not clearly above the untrained networks:" in partly.text
    nothing = known(analysis, low, low, low)
    assert answer(nothing, "recognise").level == "bad"  # chance is a third
    assert answer(nothing, "soon").answer == "not known"
    assert "35.0 % (30.0 to 40.0)" in answer(nothing, "recognise").text
    assert "Chance is 33.3 %" in answer(nothing, "recognise").text


def test_use_is_judged_by_the_ablation(analysis: Analysis) -> None:
    def won(count: int) -> Evaluation:
        rate = wilson_interval(count, 40)
        row = {"opponent": "one", "win_rate": rate.estimate, "win_rate_low": rate.low, "win_rate_high": rate.high}
        return Evaluation("duel-v1", (row,), 0.0)

    def judged(*wins: int) -> str:
        ablation = compare([won(count) for count in wins], 40)
        return answer(replace(analysis, ablation=ablation), "win matches").answer

    assert answer(analysis, "win matches").answer == "not known"
    assert judged(30, 10, 12) == "yes"
    assert judged(30, 10, 28) == "partly"
    assert judged(10, 30, 10) == "it harms"
    assert judged(20, 19, 21) == "not seen"


def test_acting_is_judged_by_what_the_style_alone_changes(analysis: Analysis) -> None:
    def judged(effect: Interval) -> str:
        return answer(replace(analysis, behaviour=replace(analysis.behaviour, mean_style_effect=effect)), "act").answer

    assert judged(Interval(0.1, 0.08, 0.12)) == "yes"
    assert judged(Interval(0.002, 0.001, 0.003)) == "barely"
    assert judged(Interval(0.0, -0.001, 0.001)) == "no"
    assert judged(Interval(0.03, -0.01, 0.07)) == "not seen"


def test_certainty_is_compared_with_accuracy(analysis: Analysis) -> None:
    right = Interval(0.5, 0.4, 0.6)
    too_sure = replace(analysis, belief=replace(analysis.belief, said=0.9, right=right, calibration_error=0.4))
    found = answer(too_sure, "sure")
    assert (found.answer, found.level) == ("says 90 %, right 50 %", "mixed")
    assert "too sure" in found.text
    uneven = replace(analysis, belief=replace(analysis.belief, said=0.55, right=right, calibration_error=0.2))
    assert "too sure at some times and too doubtful at others" in answer(uneven, "sure").text
    exact = replace(analysis, belief=replace(analysis.belief, said=0.5, right=right, calibration_error=0.02))
    assert answer(exact, "sure").level == "good"
