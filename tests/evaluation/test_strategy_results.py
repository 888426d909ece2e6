"""The comparison of agents with and without strategy encoder: at a tiny size everything of it runs."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "strategy_results.py"
SMALL = "{layers: 1, heads: 1, width: 4, feedforward: 4, window: 4, latent: 3, pooling: 2}"
TINY = (
    "--preset=debug",
    "--seeds=1",
    "--env-steps=128",
    "--matches=1",
    "--probe-matches=3",
    "--set=world.num_games=4",
    "--set=world.settings.step_limit=60",
    "--set=world.device=cpu",
    f"--set=policy.strategy={SMALL}",
    "--set=policy.recurrent={size: 16}",
    "--set=ppo.batch_size=64",
    "--set=ppo.epochs=1",
    "--set=ppo.chunk=16",
    "--set=evaluation=null",
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
    out = tmp_path / "data" / "results.json"
    arguments = [*TINY, "--variants", "full", "mlp", f"--folder={tmp_path / 'runs'}", f"--out={out}"]
    script.main(arguments)
    report = json.loads(out.read_text())
    full, mlp = (next(run for run in report["runs"] if run["variant"] == name) for name in ("full", "mlp"))
    assert full["parameters"] > mlp["parameters"]
    assert (full["analysis"]["features"], mlp["analysis"]) == ("latent", None)
    assert full["analysis"]["ablation"] is not None
    assert set(full["means"]) == set(script.GROUPS)
    assert "switcher" not in full["win_rates"]["styles"]
    assert "aggressive:delay=10" in full["win_rates"]["delay"]
    assert [(row["budget"], row["variant"]) for row in report["table"]] == [
        ("samples", "full"), ("samples", "mlp"), ("time", "full"), ("time", "mlp"),
    ]  # fmt: skip
    timed = [run for run in report["runs"] if run["budget"] == "time"]
    assert min(run["env_steps"] for run in timed) == 128  # the slowest one keeps its samples
    assert max(run["env_steps"] for run in timed) > 128
    capsys.readouterr()
    before = out.read_text()
    script.main(arguments)  # everything is there already
    assert out.read_text() == before
    assert capsys.readouterr().out.startswith("| equal | agent |")


def test_variants_differ_in_nothing_else(script: ModuleType) -> None:
    configs = {name: script.make_config("competition", name, 1, 1000) for name in script.VARIANTS}
    assert "switcher" not in configs["full"].opponents
    assert {"self", "aggressive", "edge-guarder"} <= set(configs["full"].opponents)
    for name, config in configs.items():
        assert config.model_copy(update={"policy": configs["full"].policy}) == configs["full"], name
    assert configs["predicting"].policy.strategy.predict == 1.0
    assert configs["predicting"].policy.strategy.predict_ahead < configs["predicting"].ppo.chunk
    assert (configs["lstm"].policy.strategy, configs["mlp"].policy.recurrent) == (None, None)
    assert configs["lstm"].policy.recurrent == configs["full"].policy.recurrent
