"""A walker from the first command to the last: continuous control on the host, alone, mirrored, judged in scenarios."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("stroll_world")

SETTINGS = """
world: {name: stroll, num_envs: 8, settings: {step_limit: 12}}
total_env_steps: 1_024
policy:
  net_arch: {pi: [8], vf: [8]}
  log_std: -0.75
  normalize: {observations: true, returns: true}
ppo:
  n_steps: 16
  batch_size: 64
  n_epochs: 2
  learning_rate: {kind: linear, start: 5.0e-3, end: 1.0e-6}
  clip_range: {kind: exponential, start: 0.55, end: 0.1}
  ent_coef: -0.0075
rewards: {weights: {progress: 1.0, fell: -1.0}}
evaluation:
  every_env_steps: 512
  matches: 4
  deterministic: true
  scenarios: [wind, calm]
  score: distance_m
  sooner: {number: distance_m, steps: [[-9, 256]]}
  converged: {distance_m: -9}
monitoring: {console: plain, curves: false, tensorboard: false}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "walk.yaml"
    path.write_text(SETTINGS)
    return path


def test_train_resume_and_eval(run: Run, config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, out, err = run("train", "stroll", "--config", config, "--run-dir", folder, "--verbose")
    assert code == 0, err
    assert "are 2 minibatches of 64" in out
    assert "4 episodes in each of wind, calm" in out
    assert "converged at 512 env steps: distance_m " in out
    with (folder / "evaluation_results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["env_steps"], row["trial"]) for row in rows] == [
        (steps, scenario) for steps in ("512", "768", "1024") for scenario in ("wind", "calm")
    ]
    assert {row["steps_to_convergence"] for row in rows} == {"512"}
    assert json.loads((folder / "run.json").read_text())["steps_to_convergence"] == 512
    tables = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    code, out, err = run("resume", folder)
    assert code == 0, err
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == tables
    code, out, err = run("eval", folder, "--matches", 3)
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines()[:4]] == ["trial", "calm", "wind", "storm"]


def test_a_setting_that_was_removed_is_refused_before_the_run_starts(run: Run, config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, _, err = run("train", "stroll", "--config", config, "--run-dir", folder, "ppo.symmetry_augmentation=true")
    assert code == 2
    assert "ppo.symmetry_augmentation" in err
    assert "learner.md#mirrored-experience" in err
    code, _, err = run("verify", config, "evaluation.converged={stabel: 1}")
    assert code == 2
    assert "unknown number of an evaluation 'stabel' (did you mean 'stable'?)" in err
    assert not folder.exists()
