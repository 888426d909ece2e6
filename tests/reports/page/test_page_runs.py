"""Runs of a report: names, states, speeds, which of them are seeds of one configuration, and what is no run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ConfigError
from ludus.reports.page.runs import group_runs, learn_alike, read_runs, settings_by_part


def test_runs_that_differ_in_their_seed_are_one_group(make_run: Callable[..., Path]) -> None:
    folders = [make_run(f"quick-{seed}", seed=seed) for seed in range(3)]
    folders.append(make_run("other", config="rewards: {base: dense}\n"))
    groups = group_runs(read_runs(folders))
    assert [(group.label, len(group.runs)) for group in groups] == [("quick (3 seeds)", 3), ("other", 1)]


def test_scores_of_seeds_have_students_interval(make_run: Callable[..., Path]) -> None:
    folders = [make_run(f"quick-{seed}", seed=seed) for seed in range(3)]
    for folder, scores in zip(folders, ((0.5, 0.4), (0.6, 0.4), (0.7, 0.4)), strict=True):
        rows = [f"{place},{100 * place},rock,{score}" for place, score in enumerate(scores, 1)]
        (folder / "evaluation_results.csv").write_text("\n".join(["iteration,env_steps,opponent,score", *rows]) + "\n")
    group = group_runs(read_runs(folders))[0]
    # A standard deviation of 0.1, and 4.3027 is the quantile of Student's t with two degrees of freedom.
    margin = 4.3027 * 0.1 / 3**0.5
    assert group.score("best") == pytest.approx((0.6, 0.6 - margin, 0.6 + margin), abs=1e-5)
    assert group.score("last") == pytest.approx((0.4, 0.4, 0.4))
    assert group_runs(read_runs(folders[:1]))[0].score("best") is None


def test_runs_whose_config_is_lost_stand_alone(make_run: Callable[..., Path]) -> None:
    folders = [make_run(f"quick-{seed}", seed=seed) for seed in range(2)]
    for folder in folders:
        (folder / "config.yaml").unlink()
    groups = group_runs(read_runs(folders))
    assert [group.label for group in groups] == ["quick-0", "quick-1"]
    assert groups[1].runs[0].missing == ("strategy_analysis.csv", "resources.csv", "config.yaml")
    assert (groups[1].runs[0].world, groups[1].runs[0].seed) == ("duel", 1)  # run.json knows them too


def test_folders_of_the_same_name_are_told_apart(make_run: Callable[..., Path]) -> None:
    first, second = make_run("a/run"), make_run("b/run", config="rewards: {base: dense}\n")
    assert [run.name for run in read_runs([first, second])] == ["a/run", "b/run"]


def test_how_far_and_how_fast_a_run_was(make_run: Callable[..., Path]) -> None:
    [run] = read_runs([make_run("run")])
    assert (run.env_steps, run.state, run.training_s, run.steps_per_s) == (800, "finished", 4.0, 200.0)
    assert run.wall_s == 5.0
    assert (run.best_score, run.last_score) == (0.8, 0.8)


def test_sessions_that_were_cut_off_do_not_count_for_the_speed(make_run: Callable[..., Path]) -> None:
    folder = make_run("run", iterations=6)
    sessions: list[dict[str, Any]] = [{"env_steps": 200, "training_s": 2.0, "ended": "x"}, {"started": "y"},
                {"env_steps": 600, "training_s": 2.0, "ended": "z"}]  # fmt: skip
    (folder / "run.json").write_text(json.dumps({"sessions": sessions}))
    [run] = read_runs([folder])
    assert (run.training_s, run.steps_per_s) == (4.0, 150.0)
    assert run.wall_s is None
    for session in sessions:
        session |= {"wall_s": 3.0} if "ended" in session else {}
    (folder / "run.json").write_text(json.dumps({"sessions": sessions}))
    assert [run.wall_s for run in read_runs([folder])] == [6.0]


def test_the_speed_counts_the_steps_that_the_run_itself_took(make_run: Callable[..., Path]) -> None:
    folder = make_run("run")
    parent = {"folder": "old", "checkpoint": "final", "env_steps": 400}
    sessions: list[dict[str, Any]] = [{"env_steps": 600, "training_s": 4.0, "ended": "x"}]
    (folder / "run.json").write_text(json.dumps({"parent": parent, "sessions": sessions}))
    [run] = read_runs([folder])
    assert (run.parent_env_steps, run.steps_per_s) == (400, 50.0)
    # A session that was killed got from 600 to 700; the one after it says where it began.
    sessions += [{"started": "y"}, {"start_env_steps": 700, "env_steps": 800, "training_s": 1.0, "ended": "z"}]
    (folder / "run.json").write_text(json.dumps({"parent": parent, "sessions": sessions}))
    [run] = read_runs([folder])
    assert run.steps_per_s == 300 / 5.0


def test_the_commit_is_kept_when_a_later_session_knows_none(make_run: Callable[..., Path]) -> None:
    folder = make_run("run")
    sessions = [{"git": {"commit": "abc", "clean": False}}, {"git": None}]
    (folder / "run.json").write_text(json.dumps({"sessions": sessions}))
    assert [run.commit for run in read_runs([folder])] == ["abc with uncommitted changes"]


def test_a_run_that_was_killed(make_run: Callable[..., Path]) -> None:
    folder = make_run("run")
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])
    for name in ("evaluation_results.csv", "reward_breakdown.csv"):
        (folder / name).unlink()
    (folder / "run.json").write_text('{"sessions": [{"started": "now"}]}')
    [run] = read_runs([folder])
    assert (run.env_steps, run.state, run.best_score, run.steps_per_s) == (300, "not ended", None, None)


def test_what_is_no_run_is_refused(tmp_path: Path, make_run: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match=r"no folder .*nowhere"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        read_runs([tmp_path])
    with pytest.raises(ConfigError, match="run folder"):
        read_runs([])
    folder = make_run("run")
    with pytest.raises(ConfigError, match=r"run;"):
        read_runs([folder, tmp_path / "." / "run"])


def test_settings_that_change_no_learning_do_not_part_seeds() -> None:
    config = {"seed": 0, "ppo": {"n_steps": 8, "clip_range": 0.2}, "monitoring": {"console": "auto"}}
    assert learn_alike(config, config | {"seed": 1, "monitoring": {}, "guard": {"every_s": 2}})
    assert not learn_alike(config, config | {"ppo": {"n_steps": 9, "clip_range": 0.2}})
    # A run without a setting trained as one that has it switched off.
    assert learn_alike(
        config, config | {"ppo": {"n_steps": 8, "clip_range": 0.2, "stagger_episodes": False, "target_kl": None}}
    )
    assert not learn_alike(config, config | {"ppo": {"n_steps": 8, "clip_range": 0.2, "stagger_episodes": True}})


def test_settings_are_grouped_and_differences_marked() -> None:
    first = {"seed": 0, "ppo": {"n_steps": 8, "rate": {"start": 1, "end": 0.5}}, "names": ["a"]}
    parts = settings_by_part([[first, first | {"seed": 1}], [first | {"ppo": {"n_steps": 9}}], [{}]])
    assert list(parts) == ["general", "ppo"]
    table = {setting.path: (setting.values, setting.differs) for part in parts.values() for setting in part}
    assert table["seed"] == (("0, 1", "0", None), True)
    assert table["names"] == (('["a"]', '["a"]', None), False)  # a run whose settings are lost differs in nothing
    assert table["ppo.n_steps"] == (("8", "9", None), True)
    assert table["ppo.rate.end"] == (("0.5", None, None), True)
