"""What is known of a run: speed, time left, shares of time, means, the best score, messages."""

from collections.abc import Callable
from typing import Any

import pytest

from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.loggers.progress import Watch

Clock = Any  # the class of the fixture, which tests move by its attribute `now_s`


@pytest.fixture
def watch(clock: Clock) -> Watch:
    watch = Watch("duel", 100_000, clock)
    watch.start(Counters(20_000, 20, 160))
    return watch


def test_speed_time_left_and_progress(watch: Watch, clock: Clock, make_iteration: Callable[..., Iteration]) -> None:
    assert not watch.left_s
    clock.now_s += 10.0
    watch.iteration(make_iteration(25, seconds=10.0))  # 5,000 steps in 10 s
    assert (watch.speed_now, watch.speed_average) == (500.0, 500.0)
    for number in (35, 45):  # 10,000 steps in 5 s, twice
        clock.now_s += 5.0
        watch.iteration(make_iteration(number, seconds=5.0))
    assert watch.speed_now == 2000.0  # over the last 10 s
    assert watch.speed_average == 25_000 / 20.0
    assert watch.left_s == 55_000 / 2000.0
    assert watch.progress == 0.45
    assert watch.elapsed_s == 20.0


def test_an_evaluation_changes_no_speed_and_is_expected_again(
    watch: Watch, clock: Clock, make_iteration: Callable[..., Iteration], make_evaluated: Callable[..., Evaluated]
) -> None:
    clock.now_s += 10.0
    watch.iteration(make_iteration(40, seconds=10.0))
    assert (watch.speed_now, watch.left_s) == (2000.0, 30.0)
    clock.now_s += 60.0  # an evaluation, and a checkpoint
    watch.evaluated(make_evaluated(40, 0.5, seconds=55.0, every_env_steps=40_000))
    watch.saved("best")
    assert (watch.speed_now, watch.speed_average) == (2000.0, 2000.0)
    assert watch.left_s == 30.0 + 2 * 55.0  # at 80,000 steps and at the end
    clock.now_s += 1.0
    watch.iteration(make_iteration(42, seconds=1.0))
    assert (watch.speed_now, watch.speed_average) == (2000.0, 2000.0)
    assert (watch.elapsed_s, watch.training_s) == (71.0, 11.0)
    watch.iteration(make_iteration(100, seconds=29.0))
    assert watch.left_s == 0.0


def test_times_are_shares_and_means_are_of_the_last_episodes(
    watch: Watch, make_iteration: Callable[..., Iteration]
) -> None:
    assert watch.time_shares == {}
    assert not watch.mean_reward
    watch.iteration(make_iteration(21, (1, -1, 1, 1), (0, 0, 0, 0)))
    assert watch.time_shares == pytest.approx({"simulation": 0.4, "inference": 0.2, "update": 0.3, "other": 0.1})
    assert list(watch.time_shares) == ["simulation", "inference", "update", "other"]
    assert (watch.mean_reward, watch.mean_length) == (0.5, 100.0)
    watch.iteration(make_iteration(22, [1] * 300, [0] * 300))
    assert watch.mean_reward == 1.0


def test_without_episodes_the_metrics_tell_the_means(watch: Watch, make_iteration: Callable[..., Iteration]) -> None:
    watch.iteration(make_iteration(21, (), (), metrics={"episode_return": 3.0, "entropy": 1.0}))
    watch.iteration(make_iteration(22, (), (), metrics={"episode_return": None, "entropy": 2.0}))
    assert watch.mean_reward == 3.0
    assert watch.metrics == {"episode_return": 3.0, "entropy": 2.0}


def test_the_best_score_and_messages(watch: Watch, make_evaluated: Callable[..., Evaluated]) -> None:
    for number, score, is_best in ((30, 0.5, True), (40, 0.9, True), (50, 0.7, False)):
        watch.evaluated(make_evaluated(number, score, is_best=is_best))
    assert watch.best_score == 0.9
    assert watch.evaluation is not None
    assert watch.evaluation.score == 0.7
    for index in range(6):
        watch.message("info" if index == 5 else "warning", f"text {index}", Counters(index))
    assert [text for _, text, _ in watch.messages] == ["text 1", "text 2", "text 3", "text 4"]


def test_resident_memory_is_that_of_this_process(watch: Watch) -> None:
    assert 2**24 < watch.resident_bytes < 2**37
