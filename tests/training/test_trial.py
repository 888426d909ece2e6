"""A trial is the beginning of a run: fewer games and env steps, the same hyperparameters, and a table of what moved."""

from pathlib import Path

import pytest

from ludus.core.tables import read_table
from ludus.training import trial
from ludus.training.config import TrainConfig
from ludus.training.loggers.csv_logger import EVALUATION
from ludus.training.presets import load_run_config
from ludus.training.trial import changes_of, read_progress_of, trial_of


def with_speed(monkeypatch: pytest.MonkeyPatch, env_steps_per_s: float) -> None:
    monkeypatch.setattr(trial, "step_seconds", lambda _: 1.0 / env_steps_per_s)


def test_games_and_minibatches_shrink_alike_and_nothing_else_of_what_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_speed(monkeypatch, 10_000.0)
    run = load_run_config("brawl", "competition")
    short = trial_of(run, seconds=120.0)
    assert short.total_env_steps == 1_200_000
    # 1.2 M env steps are three matches of 2,700 frames for 148 games at most: 128 of the 16,384 games are left.
    assert (short.world.num_envs, short.hyperparameters.batch_size) == (128, 256)
    assert short.hyperparameters == run.hyperparameters.model_copy(update={"batch_size": 256})
    assert (short.policy, short.rewards, short.opponents) == (run.policy, run.rewards, run.opponents)
    assert short.schedule_env_steps == run.total_env_steps  # the learning rate falls as it would in the run
    assert short.league.snapshot_every_env_steps == 150_000
    assert short.evaluation is not None
    assert short.evaluation.every_env_steps == 300_000
    assert changes_of(run, short) == "1,200,000 of 120,000,000 env steps, 128 of 16,384 games"
    assert TrainConfig.from_json(short.to_json()) == short


def test_evaluations_of_a_slow_run_are_few_and_against_those_it_meets_most(monkeypatch: pytest.MonkeyPatch) -> None:
    with_speed(monkeypatch, 500.0)
    short = trial_of(load_run_config("brawl", "competition"), seconds=120.0)
    assert short.evaluation is not None
    assert short.evaluation.opponents == ("constant", "based")
    assert short.evaluation.matches == 4


def test_a_run_that_is_short_anyway_is_done_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with_speed(monkeypatch, 100_000.0)
    run = load_run_config("brawl", "debug")
    short = trial_of(run)
    assert short.total_env_steps == run.total_env_steps
    assert short.world.num_envs == run.world.num_envs


def test_the_phases_of_a_curriculum_get_their_share_of_the_games(monkeypatch: pytest.MonkeyPatch) -> None:
    with_speed(monkeypatch, 2_000.0)
    run = load_run_config("rocket", "1v1-2v2")
    short = trial_of(run)
    assert short.world.num_envs == 64
    for phase, whole in zip(short.curriculum, run.curriculum, strict=True):
        if whole.world is not None and whole.world.num_envs is not None:
            assert phase.world is not None
            assert phase.world.num_envs == whole.world.num_envs * 64 // run.world.num_envs


def test_its_progress_sums_rewards_by_term_and_names_those_that_never_counted(tmp_path: Path) -> None:
    (tmp_path / "reward_breakdown.csv").write_text(
        "iteration,env_steps,total,win,fall,idle\n1,1000,-2,0,-2,0\n2,2000,0,1,-1,0\n3,3000,2,3,-1,0\n4,4000,8,8,0,0\n"
    )
    (tmp_path / EVALUATION).write_text("env_steps,opponent,score\n2000,based,0.25\n4000,based,0.75\n")
    assert len(read_table(tmp_path / EVALUATION)) == 2
    progress = read_progress_of(tmp_path)
    assert progress.columns == ("until env step", "score", "reward per 1,000", "win", "fall")
    assert progress.never == ("idle",)
    assert progress.rows == (
        ("1,000", "-", "-2", "0", "-2"),
        ("2,000", "0.250", "0", "1", "-1"),
        ("3,000", "-", "2", "3", "-1"),
        ("4,000", "0.750", "8", "8", "0"),
    )
