"""An agent's file holds the settings of its world: every number in them has bounds, and what is absurd is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.envs.adapters.worker_batch import WorkerBatch
from ludus.envs.registry import make_env, settings_model
from ludus.envs.settings import CORES, MOST_WORKERS, host_threads
from ludus.envs.warp_tools import Launcher
from ludus.envs.world import registered_envs

# Other tests register worlds of their own.
OWN = [world for world in registered_envs() if (settings_model(world) or object).__module__.startswith("ludus.")]
WORLDS = (*OWN, "gym:CartPole-v1")
NUMBERS = {"integer", "number"}
BELOW, ABOVE = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}


def numbers(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives every number that a JSON schema allows, with its path."""
    if isinstance(schema, dict):
        if schema.get("type") in NUMBERS:
            yield path, schema
        for name, part in schema.items():
            if name not in ("default", "const", "enum"):
                yield from numbers(part, f"{path}.{name}")
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from numbers(part, f"{path}.{index}")


@pytest.mark.parametrize("world", WORLDS)
def test_every_number_has_bounds(world: str) -> None:
    model = settings_model(world)
    assert model is not None
    unbounded = [
        path for path, part in numbers(model.model_json_schema()) if not (BELOW & set(part) and ABOVE & set(part))
    ]
    assert not unbounded


@pytest.mark.parametrize("value", [10**9, -1, 10**30, float("inf"), float("nan")])
@pytest.mark.parametrize(
    ("world", "setting"),
    [
        ("brawl", "step_limit"), ("brawl", "stocks"), ("brawl", "threads"),
        ("rocket", "ticks"), ("rocket", "match_s"), ("rocket", "episode_s"), ("rocket", "threads"),
        ("mimic", "height_m"), ("mimic", "episode_s"), ("mimic", "speed_change_s"), ("mimic", "threads"),
        ("city", "steps"), ("city", "wait_s"), ("city", "menu_buffer"), ("city", "workers"),
        ("dig", "steps"), ("duel", "rounds"), ("endless", "step_limit"), ("identity", "steps"), ("identity", "cues"),
        ("point", "step_limit"), ("recall", "delay"), ("rps", "rounds"), ("roshambo", "throws"),
        ("roshambo", "threads"), ("roshambo", "workers"), ("tug", "rounds"),
        ("gym:CartPole-v1", "workers"), ("gym:CartPole-v1", "timeout_s"), ("gym:CartPole-v1", "start_timeout_s"),
        ("gym:CartPole-v1", "max_faults_in_row"), ("gym:CartPole-v1", "progress_steps"),
    ],
)  # fmt: skip
def test_absurd_values_are_refused_by_name(world: str, setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=setting):
        make_env(world, config={setting: value})


@pytest.mark.parametrize(
    ("world", "settings"),
    [
        ("rocket", {"setters": {"kickoff": 1e300}}),
        ("rocket", {"setters": {"kickoff": -1.0}}),
        ("mimic", {"speed_range": [0.0, 1e9]}),
        ("mimic", {"pushes": {"impulse_ns": 1e9}}),
        ("city", {"rules": {"columns": 10**9}}),
        ("city", {"rules": {"threads": 10**9}}),
        ("city", {"display": {"width": 10**9}}),
        ("city", {"display": {"themes": ["classic"] * 10**4}}),
        ("city", {"goals": {"population": 1e300}}),
        ("city", {"guide": {"name": "x", "every": 10**9}}),
    ],
)
def test_absurd_values_inside_a_part_are_refused(world: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        make_env(world, config=settings)


def test_no_more_threads_than_cores_are_started() -> None:
    assert (host_threads(None), host_threads(1), host_threads(1024)) == (CORES, 1, CORES)
    assert Launcher(torch.device("cpu"), 1024).threads == CORES


def test_no_more_workers_than_are_of_use_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ludus.envs.adapters.gymnasium_factory.MOST_WORKERS", 1)
    with make_env("gym:CartPole-v1", 3, config={"workers": 1024}) as env:
        assert isinstance(env, WorkerBatch)
        assert len(env.worker_pids) == 1
    assert MOST_WORKERS >= CORES
