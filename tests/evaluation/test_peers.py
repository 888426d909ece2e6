"""`benchmarks/peers.py`: both sides are processes that take turns, and what is wrong with a peer is said."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.train

ROOT = Path(__file__).parents[2]


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.peers")


def test_a_workload_beside_itself(peers: ModuleType) -> None:
    row = peers.compare(peers.Comparison("pufferlib", "cartpole", "cartpole"), sys.executable, 3, 0.1)
    assert 0.2 < row["ratio"] < 5.0
    for side in (row["ours"], row["theirs"]):
        assert 0.0 < side["steps_per_s_low"] <= side["steps_per_s"] <= side["steps_per_s_high"]
        assert set(side["packages"]) == {"gymnasium", "numpy"}


def test_our_side_of_the_bodies_says_what_it_counts(peers: ModuleType) -> None:
    options = peers.COMPARISONS["loco_mujoco_same_steps"].our_options | {"games": 2}
    with peers.side(sys.executable, "ludus_sim", options) as ours:
        measured = ours.measure(0.01)
    assert (ours.about["joints"], ours.about["physics_steps"], ours.about["control_hz"]) == (13, 10, 100)
    assert measured["steps"] % 2 == 0


def test_rates_are_medians_of_cpu_time(peers: ModuleType) -> None:
    windows = [{"steps": steps, "cpu_s": 2.0, "seconds": 4.0} for steps in (10, 30, 20)]
    found = peers.rates(windows)
    assert found == {"steps_per_s": 10.0, "steps_per_s_low": 5.0, "steps_per_s_high": 15.0, "share_of_core": 0.5}


def test_a_peer_that_fails_is_named(peers: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="nonsense ended with status 1"):
        peers.compare(peers.Comparison("rlgym", "nonsense", "rlgym"), sys.executable, 1, 0.1)
    assert "KeyError" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"), [("gym=/bin/sh", "unknown peer 'gym'"), ("rlgym=/nowhere/python", "rlgym: no interpreter")]
)
def test_wrong_interpreters(peers: ModuleType, word: str, said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        peers.interpreters([word])
