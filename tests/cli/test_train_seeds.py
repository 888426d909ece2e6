"""`ludus train --seeds`: runs with consecutive seeds side by side, and what they reached with an interval."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from ludus.core.intervals import mean_interval
from ludus.core.tables import read_table

SETTINGS = (
    "world.num_envs=8", "total_env_steps=320", "policy.net_arch={pi: [4], vf: [4]}", "ppo.n_steps=8",
    "ppo.batch_size=64", "ppo.n_epochs=1", "opponents={cycle: 1}", "evaluation.opponents=[rock]",
    "evaluation.every_env_steps=320", "evaluation.matches=8", "monitoring.tensorboard=false", "monitoring.curves=false",
)  # fmt: skip


def test_seeds_are_trained_compared_and_not_trained_again(run: Run, tmp_path: Path) -> None:
    command = ("train", "duel", "--seeds", 3, "--seed", 5, "--run-dir", tmp_path / "runs", *SETTINGS)
    code, out, err = run(*command)
    assert code == 0, err
    for seed in (5, 6, 7):
        assert (tmp_path / "runs" / f"seed-{seed}" / "checkpoints" / "final").is_dir()
        assert f"seed-{seed}" in out
    assert "score over 3 seeds" in out + err
    page = (tmp_path / "runs" / "report.html").read_text()
    assert '"runs":["seed-5","seed-6","seed-7"]' in page  # one line of three seeds
    scores = json.loads(re.findall(r'"scores":({.*?})', page)[0])
    rows = [
        read_table(tmp_path / "runs" / f"seed-{seed}" / "evaluation_results.csv").last("score") for seed in (5, 6, 7)
    ]
    assert scores["last"] == pytest.approx(mean_interval(rows), rel=1e-4)
    changed = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("metrics.jsonl")}
    code, out, err = run(*command)
    assert code == 0, err
    assert "score over 3 seeds" in out + err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("metrics.jsonl")} == changed


def test_what_does_not_go_together_is_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run("train", "duel", "--seeds", 2, "--watch", "--run-dir", tmp_path / "runs", *SETTINGS)
    assert code == 2
    assert "--seeds and --watch exclude each other" in err
    assert not (tmp_path / "runs").exists()
