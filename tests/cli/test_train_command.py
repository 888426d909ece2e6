"""`ludus train`: presets, overrides, folders, a user's defaults and plugins, and a run folder in which all is there."""

import csv
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Commands

from ludus.config import read_document
from ludus.store import verify_checkpoint
from ludus.training import run_folder
from ludus.training.loggers.progress import duration

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]

TINY = (
    "world.num_envs=4", "total_env_steps=64", "ppo.n_steps=8", "ppo.sequence_length=8", "ppo.batch_size=16",
    "ppo.n_epochs=1", "policy.net_arch={pi: [4], vf: [4]}", "opponents={random: 1}", "monitoring.tensorboard=false",
    "monitoring.curves=false",
)  # fmt: skip
PLUGIN = """
import torch
from ludus.rewards import StepInfo, reward_term

@reward_term("brawl")
def presence(info: StepInfo) -> torch.Tensor:
    return torch.ones_like(info.events["wins"])
"""
NOTE = "\nfrom pathlib import Path\nPath(__file__).with_suffix('.executed').touch()\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the test's own, without defaults of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUDUS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    return tmp_path


def settings_of(folder: Path) -> Any:
    return read_document(folder / "config.yaml").root.plain()


def test_a_new_folder_under_runs_is_made_and_latest_points_to_it(run: Run, elsewhere: Path) -> None:
    folders = []
    for _ in range(2):
        code, out, err = run("train", "duel", *TINY)
        assert (code, err) == (0, "")
        newest = (elsewhere / "runs" / "latest").resolve()
        folders.append(newest)
        assert f"the agent is in runs/{newest.name}; try: ludus eval runs/{newest.name}" in out
    assert folders[0] != folders[1]
    assert {path.name for path in (elsewhere / "runs").iterdir()} == {"latest", *(path.name for path in folders)}
    for folder in folders:
        assert folder.name.startswith("duel-run-")
        verify_checkpoint(folder / "checkpoints" / "final")


def test_a_users_defaults_name_the_folder_and_the_user(run: Run, elsewhere: Path) -> None:
    file = elsewhere / "nobody" / "ludus" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"name: Ada\nruns_folder: {elsewhere / 'mine'}\n")
    code, out, _ = run("train", "duel", *TINY)
    assert code == 0
    assert "user Ada" in out
    folder = elsewhere / "mine" / "latest"
    assert json.loads((folder / "run.json").read_text())["user"] == "Ada"
    assert not (elsewhere / "runs").exists()


def test_options_and_overrides_reach_the_run(run: Run, elsewhere: Path) -> None:
    words = ("train", "brawl", "--preset", "debug", "--run-dir", "here", "--seed", "9", "--device", "cpu", *TINY,
             "world.settings={threads: 1, step_limit: 30}", "evaluation=null")  # fmt: skip
    code, out, _ = run(*words)
    assert code == 0, out
    settings = settings_of(elsewhere / "here")
    assert settings["world"]["num_envs"] == 4
    assert settings["world"]["settings"] == {"threads": 1, "step_limit": 30}
    assert (settings["seed"], settings["total_env_steps"], settings["world"]["device"]) == (9, 64, "cpu")
    assert settings["league"]["keep"] == 8, "which the preset says"
    document = json.loads((elsewhere / "here" / "run.json").read_text())
    assert (document["world"], document["seed"], len(document["sessions"])) == ("brawl", 9, 1)
    assert document["sessions"][0]["command"] == ["ludus", *words]
    assert not (elsewhere / "runs").exists()


def test_the_run_is_told_in_few_lines_unless_all_are_asked_for(run: Run) -> None:
    code, out, _ = run("train", "duel", *TINY, "monitoring.console=off")
    assert code == 0
    brief = out.splitlines()
    assert len(brief) <= 6, out
    assert brief[0].startswith("[OK] time: about")
    assert brief[1].startswith("[OK] 4 games of duel-v1 on ")
    assert brief[2].startswith("[OK] 64 env steps, seed 0; ")
    assert brief[3].startswith("[OK] run folder runs/duel-run-")
    code, out, _ = run("train", "duel", *TINY, "monitoring.console=off", "--verbose")
    assert code == 0
    for line in (
        "world: duel-v1",
        "rollout: ",
        "gradients: ",
        "memory: ",
        "user not named",
        "policy actor 4",
        "budget 64",
    ):
        assert f"[OK] {line}" in out


def test_a_finished_run_is_left_alone(run: Run, elsewhere: Path) -> None:
    words = ("train", "duel", "--run-dir", "here", *TINY)
    assert run(*words)[0] == 0
    before = {path: path.read_bytes() for path in (elsewhere / "here").rglob("*.*")}
    for again in (words, ("resume", "here")):
        code, out, _ = run(*again)
        assert code == 0
        assert out.startswith("[OK] nothing to do: the run is finished at 64 env steps; the agent is in here")
        assert len(out.splitlines()) == 1, "nothing is verified or trained"
    assert {path: path.read_bytes() for path in (elsewhere / "here").rglob("*.*")} == before
    code, _, err = run("resume", "here", "ppo.n_epochs=3")
    assert code == 2
    assert "ppo.n_epochs: 1 -> 3" in err


def test_a_run_that_was_killed_after_its_final_checkpoint_is_completed(run: Run, elsewhere: Path) -> None:
    assert run("train", "duel", "--run-dir", "here", *TINY)[0] == 0
    file = elsewhere / "here" / "run.json"
    document = json.loads(file.read_text())
    assert document["sessions"][0]["start_env_steps"] == 0
    del document["sessions"][0]["ended"]
    file.write_text(json.dumps(document))
    assert run("resume", "here")[0] == 0
    session = json.loads(file.read_text())["sessions"][1]
    assert (session["start_env_steps"], session["env_steps"]) == (64, 64)


def test_the_commit_is_that_of_ludus_also_outside_its_checkout(elsewhere: Path) -> None:
    assert Path.cwd() == elsewhere, "which is no checkout"
    checkout = Path(run_folder.__file__).parent
    words = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    head = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    state = run_folder._git_state()
    assert head == ("" if state is None else state["commit"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("brawl", "--preset", "quik"), "unknown preset 'quik' (did you mean 'quick'?); valid: "),
        (("brwal",), "unknown world 'brwal'"),
        (("brawl", "--preset", "debug", "--config", "mine.yaml"), "both preset 'debug' and file mine.yaml are given"),
        (("duel", "ppo.stesp=4"), "ppo.stesp: unknown key (got 4); did you mean 'n_steps'?"),
        (("duel", "opponents={scissors: 1}"), "scissors"),
        (("duel", "--plugin", "gone.py"), "plugin 'gone.py' is not a Python file"),
        (("duel", "--plugin", "broken.py"), "plugin 'broken.py' failed: ValueError: no good ("),
        (("duel", "ppo.batch_size=7", "world.num_envs=4", "ppo.n_steps=8"), "7"),
    ],
)
def test_what_cannot_be_trained_is_refused_and_leaves_no_folder(
    run: Run, elsewhere: Path, words: tuple[str, ...], said: str
) -> None:
    (elsewhere / "broken.py").write_text("raise ValueError('no good')")
    code, _, err = run("train", *words)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert not (elsewhere / "runs").exists()


def test_any_gymnasium_environment_trains(run: Run, elsewhere: Path) -> None:
    tiny = [word for word in TINY if not word.startswith("opponents")]
    code, out, _ = run(
        "train", "gym:CartPole-v1", *tiny, "total_env_steps=512", "evaluation={matches: 3, deterministic: false}"
    )
    assert code == 0, out
    folder = (elsewhere / "runs" / "latest").resolve()
    assert folder.name.startswith("gym-CartPole-v1-CartPole-")
    with (folder / "monitor.csv").open(newline="") as file:
        assert file.readline() == '#{"t_start": 0}\n'
        episodes = list(csv.DictReader(file))
    assert len(episodes) > 5
    assert all(float(row["r"]) == int(row["l"]) for row in episodes), "one point a step"
    code, out, _ = run("eval", folder, "--matches", 3, "--seed", 1_000_003, "--json")
    assert code == 0
    with (folder / "evaluation_results.csv").open(newline="") as file:
        recorded = list(csv.DictReader(file))
    assert float(recorded[-1]["mean_return"]) == json.loads(out)["opponents"][0]["mean_return"]


@dataclass(frozen=True)
class Finished:
    """A command that trained in a process of its own."""

    folder: Path
    plugin: Path
    said: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, command_server: Commands) -> Finished:
    """A run of brawl with everything switched on and a reward term of the user's own."""
    base = tmp_path_factory.mktemp("finished")
    plugin = base / "mine.py"
    plugin.write_text(PLUGIN)
    words = [
        *("train", "brawl", "--preset", "debug", "--run-dir", "run", "--plugin", "mine.py"),
        *("world.num_envs=8", "world.settings={step_limit: 40}", "total_env_steps=2560", "ppo.batch_size=64"),
        *("policy.strategy={layers: 1, heads: 2, width: 8, feedforward: 8, window: 5}", "ppo.sequence_length=8"),
        *("league.snapshot_every_env_steps=512", "evaluation.every_env_steps=1024", "checkpoints.every_env_steps=512"),
        "rewards.weights={presence: 0.25}",
    ]
    command = command_server.start(*words, folder=base, environment={"XDG_CONFIG_HOME": str(base / "nobody")})
    assert command.wait(120.0) == 0, command.said
    plugin.write_text(PLUGIN + NOTE)  # whoever executes it from now on leaves a trace
    return Finished(base / "run", plugin, command.said)


def test_everything_is_in_the_run_folder_with_rows(finished: Finished) -> None:
    folder = finished.folder
    names = {path.name for path in folder.iterdir()}
    tables = {
        "monitor.csv", "behavior_metrics.csv", "reward_breakdown.csv", "evaluation_results.csv", "opponents.csv",
        "strategy_analysis.csv", "resources.csv",
    }  # fmt: skip
    assert names == tables | {
        "config.yaml", "run.json", "run.lock", "run.log", "checkpoints", "metrics.jsonl", "training_curves.png",
        "tensorboard", "snapshots",
    }  # fmt: skip
    for table in tables:
        with (folder / table).open(newline="") as file:
            rows = list(csv.reader(line for line in file if not line.startswith("#")))
        assert len(rows) > 1, table
        assert {len(row) for row in rows} == {len(rows[0])}, table
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["env_steps"] for line in lines] == list(range(256, 2561, 256))
    assert (folder / "training_curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((folder / "tensorboard").rglob("events.out.tfevents.*"))
    checkpoints = {path.name for path in (folder / "checkpoints").iterdir()}
    assert {"init", "best", "final"} < checkpoints
    for name in checkpoints:
        verify_checkpoint(folder / "checkpoints" / name)
    session = json.loads((folder / "run.json").read_text())["sessions"][0]
    assert session["command"][1:4] == ["train", "brawl", "--preset"]
    assert {"python", "torch", "ludus"} <= set(session["versions"])


def test_the_output_is_plain_lines_when_it_is_no_terminal(finished: Finished) -> None:
    assert finished.said.isascii()
    assert "\x1b" not in finished.said
    assert "\r" not in finished.said
    assert "[OK] checkpoint final saved at 2,560 steps" in finished.said
    assert "2,560 of 2,560 steps" in finished.said
    session = json.loads((finished.folder / "run.json").read_text())["sessions"][0]
    # The clocks whose times are in the file are read a moment before the line is written, or after it.
    ends = (f"after {duration(session['wall_s'] + later)}, of which" for later in (0.0, 0.1, 0.2, 0.3))
    assert any(end in finished.said for end in ends)
    trained = (f"of which training {duration(session['training_s'] + later)} (" for later in (-0.1, 0.0, 0.1))
    assert any(text in finished.said for text in trained)
    assert "the agent is in run; try: ludus eval run" in finished.said
    assert "[WARN]" not in finished.said


def test_a_reward_term_of_five_lines_counts(finished: Finished) -> None:
    with (finished.folder / "reward_breakdown.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["presence"]) for row in rows] == [0.25 * 256] * len(rows)
    for row in rows:
        terms = [float(value) for name, value in row.items() if name not in ("iteration", "env_steps", "total")]
        assert float(row["total"]) == sum(terms)


def test_a_plugin_is_executed_only_if_the_user_names_it(finished: Finished, run: Run, elsewhere: Path) -> None:
    unfinished = elsewhere / "unfinished"
    shutil.copytree(finished.folder, unfinished)
    shutil.rmtree(unfinished / "checkpoints" / "final")
    code, _, err = run("resume", unfinished)
    assert code == 2
    assert "unknown reward term of brawl 'presence'" in err
    (elsewhere / "mine.yaml").write_text(f"extends: debug\nplugin: {finished.plugin}\n")
    code, _, err = run("train", "brawl", "--config", "mine.yaml")
    assert code == 2
    assert "mine.yaml:2:1: plugin: unknown key" in err
    assert not finished.plugin.with_suffix(".executed").exists()
    assert not (elsewhere / "runs").exists()


def test_a_trial_ends_with_what_moved_and_what_the_doctor_finds(run: Run, elsewhere: Path) -> None:
    code, out, err = run("train", "duel", *TINY, "--trial")
    assert (code, err) == (0, "")
    assert "trial: 64 of 64 env steps" in out
    assert "reward per 1,000" in out
    assert "too little to judge by" in out
    assert (elsewhere / "runs" / "latest").resolve().name.startswith("duel-run-trial-")


def test_a_trial_of_several_seeds_is_refused(run: Run) -> None:
    code, _, err = run("train", "duel", *TINY, "--trial", "--seeds", "2")
    assert code == 2
    assert "--seeds" in err
