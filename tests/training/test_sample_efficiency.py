"""The comparison of algorithms: every one of them is trained, and its evaluations are written and drawn."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "sample_efficiency.py"
TINY = (
    "--seeds=1",
    "--env-steps=128",
    "--evaluations=2",
    "--matches=2",
    "--set=world.num_envs=4",
    "--set=world.settings.step_limit=5",
    "--set=ppo:ppo.n_steps=16",
    "--set=ppo:ppo.batch_size=32",
    "--set=sac:sac.gradient_steps=3",
    "--set=td3:td3.gradient_steps=2",
    "--set=sac:sac.learning_starts=32",
    "--set=td3:td3.learning_starts=32",
)


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sample_efficiency", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_trains_all_and_draws(script: ModuleType, tmp_path: Path) -> None:
    script.main(["point", *TINY, "--numbers", "mean_return", "score", f"--out={tmp_path / 'new' / 'point'}"])
    report = json.loads((tmp_path / "new" / "point.json").read_text())
    assert [run["algorithm"] for run in report["runs"]] == ["ppo", "sac", "td3"]
    for run, updates in zip(report["runs"], (2 * 2 * 10, 3 * 3, 2 * 3), strict=True):
        points = run["points"]
        assert [point["env_steps"] for point in points] == [64, 128]
        assert points[-1]["updates"] == updates
        assert 0.0 < points[0]["seconds"] < points[1]["seconds"]
        assert all(point["mean_return"] == point["score"] < 0.0 for point in points)
    assert (tmp_path / "new" / "point.png").stat().st_size > 10_000


def test_presets_and_settings_may_be_of_one_algorithm(script: ModuleType) -> None:
    given = ["walk", "sac:walk-sac", "world.settings.motion=td3:x", "td3:seed=3"]
    assert script.own(given, "sac") == ["walk", "walk-sac", "world.settings.motion=td3:x"]
    assert script.own(given, "td3") == ["walk", "world.settings.motion=td3:x", "seed=3"]
    options = script._read(["mimic", "--preset=walk", "--preset=sac:debug", "--set=ppo:ppo.n_epochs=3"])
    assert script.make_config(options, "ppo", 0).world.num_envs == 512
    assert script.make_config(options, "ppo", 0).ppo.n_epochs == 3
    sac = script.make_config(options, "sac", 5)
    assert (sac.world.num_envs, sac.algorithm, sac.seed) == (16, "sac", 5)
    assert sac.evaluation is not None
    assert sac.evaluation.sooner is None
