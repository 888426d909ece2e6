"""The comparison of agents with and without strategy encoder: at a tiny size everything of it runs."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.train

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "strategy_results.py"
SMALL = "{layers: 1, heads: 1, width: 4, feedforward: 4, window: 4, latent: 3, pooling: 2}"
TINY = (
    "--preset=debug",
    "--seeds=1",
    "--env-steps=128",
    "--matches=1",
    "--probe-matches=3",
    "--set=world.num_envs=4",
    "--set=world.settings.step_limit=60",
    "--set=world.device=cpu",
    f"--set=policy.strategy={SMALL}",
    "--set=policy.recurrent={size: 16}",
    "--set=ppo.batch_size=64",
    "--set=ppo.n_epochs=1",
    "--set=ppo.sequence_length=16",
    "--set=evaluation={every_env_steps: 128, matches: 1}",
    "--set=opponents={self: 1, based: 1}",
)


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("strategy_results", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_variants_at_a_tiny_size(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, runs = tmp_path / "data" / "results.json", tmp_path / "runs"
    runs.mkdir()
    for variant, seconds in (("full", 0.004), ("mlp", 0.002)):  # what `--only speed` measures
        (runs / f"speed-{variant}.json").write_text(json.dumps({"seconds_a_step": seconds}))
    arguments = [*TINY, "--variants", "full", "mlp", f"--folder={runs}", f"--out={out}"]
    script.main([*arguments, "--only", "mlp-0-time"])
    assert not out.exists()
    assert [folder.name for folder in runs.iterdir() if folder.is_dir()] == ["mlp-0-time"]
    script.main(arguments)
    report = json.loads(out.read_text())
    assert [(run["budget"], run["variant"], run["env_steps"]) for run in report["runs"]] == [
        ("samples", "full", 128), ("time", "full", 128), ("samples", "mlp", 128), ("time", "mlp", 256),
    ]  # fmt: skip
    full, _, mlp, longer = report["runs"]
    assert report["seconds_a_million_env_steps"] == {"full": 4000.0, "mlp": 2000.0}
    assert (full["training_s"], longer["training_s"]) == pytest.approx((0.512, 0.512))
    assert full["parameters"] > mlp["parameters"]
    assert (full["analysis"]["features"], mlp["analysis"]) == ("latent", None)
    assert set(full["analysis"]["probes"]["trained"]) == {"frames", "matches"}
    assert full["analysis"]["ablation"] is not None
    assert set(full["means"]) == {"styles", "switcher", "delay", "noise", "seeing late", "seeing noise"}
    assert "switcher" not in full["win_rates"]["styles"]
    assert "aggressive:delay=10" in full["win_rates"]["delay"]
    assert [point["env_steps"] for point in longer["curve"]] == [128, 256]
    assert set(longer["curve"][0]["win_rates"]) == {"constant", "based"}  # as the preset has it
    assert capsys.readouterr().out.count("[OK]") == 4
    before = out.read_text()
    script.main(arguments)  # everything is there already
    assert out.read_text() == before


def test_the_speed_of_training_is_measured(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_UNTIMED", 1)
    monkeypatch.setattr(script, "_TIMED", 2)
    script.main([*TINY, "--variants", "mlp", f"--folder={tmp_path}", "--only", "speed"])
    found = json.loads((tmp_path / "speed-mlp.json").read_text())
    assert 0.0 < found["seconds_a_step"] < 1.0
    assert found["env_steps_an_iteration"] == 4 * 32


def test_variants_differ_in_nothing_else(script: ModuleType) -> None:
    configs = {name: script.make_config(str(script.PRESET), name, 1, 1000) for name in script.VARIANTS}
    assert "switcher" not in configs["full"].opponents  # it is met for the first time when the agents are judged
    assert {"self", "aggressive", "edge-guarder"} <= set(configs["full"].opponents)
    for name, config in configs.items():
        assert config.model_copy(update={"policy": configs["full"].policy}) == configs["full"], name
    assert configs["recognising"].policy.strategy.classify == 0.5
    options = script.parse(["--variants", *script.VARIANTS])
    assert [len(script.budgets(options, name)) for name in ("full", "recognising", "mlp")] == [2, 1, 2]
    assert (configs["lstm"].policy.strategy, configs["mlp"].policy.recurrent) == (None, None)
    assert configs["lstm"].policy.recurrent == configs["full"].policy.recurrent
