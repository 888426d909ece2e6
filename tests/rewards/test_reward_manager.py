"""Rewards: terms by hand, weights that never jump, an account that adds up bit for bit, and clear errors."""

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.rewards.manager import GRID, RewardManager, resolve_weights
from ludus.rewards.plugins import load_plugin
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import event_term, reward_term, terms_of
from ludus.rewards.weights import RewardConfig, WeightPath

EVENTS = ("goals", "fouls")


def step_info(goals: list[float], fouls: list[float]) -> StepInfo:
    return StepInfo({"goals": torch.tensor(goals), "fouls": torch.tensor(fouls)}, {"x": torch.zeros(len(goals))}, 0.5)


def manager(*configs: dict[str, object]) -> RewardManager:
    return RewardManager("pitch", EVENTS, tuple(RewardConfig.model_validate(config) for config in configs), {})


def test_contributions_by_hand() -> None:
    rewards = manager({"weights": {"goals": 2.0, "fouls": -0.25}})
    parts = rewards.contributions(step_info([1.0, 0.0, 3.0], [0.0, 2.0, 1.0]))
    assert rewards.names == ("goals", "fouls")
    assert parts.tolist() == [[2.0, 0.0, 6.0], [0.0, -0.5, -0.25]]


def test_a_term_of_weight_zero_is_left_out_and_a_set_can_be_changed() -> None:
    sets = {"usual": {"goals": 1.0, "fouls": -1.0}}
    config = RewardConfig.model_validate({"base": "usual", "weights": {"fouls": 0.0}})
    assert set(resolve_weights(config, "pitch", sets)) == {"goals"}
    with pytest.raises(UnknownNameError, match="did you mean 'usual'"):
        resolve_weights(RewardConfig(base="usuall"), "pitch", sets)


@given(
    values=st.lists(st.tuples(st.floats(-3, 3, width=32), st.floats(-3, 3, width=32)), min_size=1, max_size=300),
    weights=st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
)
def test_the_account_adds_up_bit_for_bit_in_any_order(
    values: list[tuple[float, float]], weights: tuple[float, float]
) -> None:
    goals, fouls = (list(column) for column in zip(*values, strict=True))
    config = RewardConfig.model_validate({"weights": {"goals": weights[0], "fouls": weights[1]}})
    try:
        rewards = RewardManager("pitch", EVENTS, (config,), {})
    except ConfigError:
        assert weights == (0.0, 0.0)
        return
    parts = rewards.contributions(step_info(goals, fouls))
    per_step = parts.sum(0)
    if len(rewards.names) > 1:
        total = per_step.double().sum().item()
        assert total == parts.double().sum().item() == parts.flip(1).double().sum((1, 0)).item()
    else:  # a single term is not rounded: the account is the reward itself
        assert torch.equal(per_step, parts[0])
    exact = sum(rewards.weights[name] * torch.tensor(v).double() for name, v in (("goals", goals), ("fouls", fouls))
                if name in rewards.weights)  # fmt: skip
    assert isinstance(exact, torch.Tensor)
    assert (per_step.double() - exact).abs().max().item() <= 2 * GRID


def test_weights_go_through_their_points() -> None:
    path = WeightPath(points=((100, 1.0), (300, 0.0)))
    assert [path.value(step) for step in (0, 100, 150, 200, 300, 900)] == [1.0, 1.0, 0.75, 0.5, 0.0, 0.0]
    smooth = WeightPath(points=((0, 0.0), (100, 1.0)), kind="cosine")
    assert smooth.value(50) == pytest.approx(0.5)
    assert smooth.value(1) < 0.001
    assert smooth.value(99) > 0.999
    with pytest.raises(ValidationError, match="must rise, got 5, 5"):
        WeightPath(points=((5, 1.0), (5, 2.0)))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(-5, 5)), min_size=2, max_size=6, unique_by=lambda p: p[0]))
def test_no_path_jumps(points: list[tuple[int, float]]) -> None:
    points.sort()
    path = WeightPath(points=tuple(points))
    steepest = max(abs(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points))
    values = [path.value(step) for step in range(0, 10_001, 50)]
    assert max(abs(b - a) for a, b in itertools.pairwise(values)) <= 50 * steepest + 1e-9


def test_stages_glide_from_the_old_weights_to_the_new() -> None:
    rewards = manager({"weights": {"goals": 1.0, "fouls": -1.0}}, {"weights": {"goals": 3.0}, "glide_env_steps": 1000})
    rewards.set_time(500)
    rewards.set_phase(1, 600)
    assert rewards.weights == {"goals": 1.0, "fouls": -1.0}
    rewards.set_time(1100)
    assert rewards.weights == {"goals": 2.0, "fouls": -0.5}
    again = manager({"weights": {"goals": 1.0, "fouls": -1.0}}, {"weights": {"goals": 3.0}, "glide_env_steps": 1000})
    again.load_state(rewards.state(), 1100)
    assert again.weights == rewards.weights
    rewards.set_time(9000)
    assert rewards.weights == {"goals": 3.0, "fouls": 0.0}
    with pytest.raises(StateError, match=r"course\.rewards\.stage is 1; valid: 0 to 0"):
        manager({"weights": {"goals": 1.0}}).load_state(rewards.state(), 0)


def test_unknown_and_empty_rewards_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'goals'"):
        manager({"weights": {"goal": 1.0}})
    with pytest.raises(ConfigError, match=r"reward term.*goals, fouls"):
        manager({})


def test_a_term_of_the_wrong_shape_is_refused_by_name() -> None:
    @reward_term("pitch", "lopsided")
    def _(info: StepInfo) -> torch.Tensor:
        return info.events["goals"].sum()

    with pytest.raises(ConfigError, match=r"'lopsided' gave shape \(\) for \(2,\)"):
        manager({"weights": {"lopsided": 1.0}}).contributions(step_info([1.0, 2.0], [0.0, 0.0]))


def test_a_plugin_adds_a_term_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from ludus.rewards import reward_term\n\n"
        "@reward_term('pitch')\n"
        "def own_goals(info):\n"
        "    return -info.events['goals']\n"
    )
    load_plugin(file)
    load_plugin(file)
    assert "own_goals" in terms_of("pitch")
    parts = manager({"weights": {"own_goals": 2.0}}).contributions(step_info([1.0, 3.0], [0.0, 0.0]))
    assert parts.tolist() == [[-2.0, -6.0]]


def test_an_event_is_a_term_with_its_own_name_and_bound() -> None:
    event_term("pitch", "few_goals", "goals", "Goals, at most two.", 2.0)
    assert terms_of("pitch")["few_goals"].__doc__ == "Goals, at most two."
    parts = manager({"weights": {"few_goals": 3.0}}).contributions(step_info([1.0, 5.0, -5.0], [0.0, 0.0, 0.0]))
    assert parts.tolist() == [[3.0, 6.0, -6.0]]
    with pytest.raises(ConfigError, match="already"):
        event_term("pitch", "few_goals", "fouls", "Fouls.")


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("absent.py", None, "not a Python file"),
        ("words.txt", "x = 1", "not a Python file"),
        ("broken.py", "raise RuntimeError('oh')", r"RuntimeError: oh \(.*broken\.py:1\)"),
        ("twice.py", "from ludus.rewards import reward_term\nreward_term('brawl', 'damage')(lambda m: m)", "already"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_refused(tmp_path: Path, name: str, text: str | None, fault: str) -> None:
    import ludus.worlds.brawl.rewards  # noqa: F401 - registers brawl's terms

    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=fault):
        load_plugin(tmp_path / name)
