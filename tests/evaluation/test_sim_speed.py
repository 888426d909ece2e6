"""The measurement of a world's speed: what counts as a step, and beside what."""

import importlib.util

import pytest
from benchmarks.sim_speed import run_sim_bench


def test_cars_are_measured_in_decisions_beside_rocketsim_or_cartpole() -> None:
    measured = run_sim_bench("rocket", games=4, threads=1, seconds=0.2)
    assert measured["unit"] == "step of a seat"
    has_rocketsim = importlib.util.find_spec("RocketSim") is not None
    assert measured["yardstick"].startswith("RocketSim 1v1" if has_rocketsim else "Gymnasium CartPole-v1")
    assert measured["ratio"] == pytest.approx(measured["steps_per_s"] / measured["yardstick_steps_per_s"])


def test_other_worlds_are_measured_in_steps_of_games() -> None:
    measured = run_sim_bench("duel", games=4, seconds=0.1)
    assert measured["unit"] == "step of a game"
    assert measured["yardstick"] == "Gymnasium CartPole-v1, one environment"
