"""The script of speedruns: the seconds to a target score, confirmed on other seeds, on a board; and what is refused."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks import speedrun as script
from benchmarks.speedrun import (
    BEGIN,
    END,
    Speedrun,
    TargetNotReachedError,
    add_to_board,
    board_table,
    read_board,
    run_speedrun,
    speedrun_config,
    speedrun_of,
)

from ludus.core.errors import ConfigError, FormatError
from ludus.envs import registry
from ludus.envs import world as worlds

ROOT = Path(__file__).parents[2]
# Two iterations of 512 env steps between evaluations: paper beats the bot `rock` after a few of them.
RECIPE = (
    "world.num_envs=32", "total_env_steps=40960", "opponents=rock", "policy.net_arch={pi: [16], vf: [16]}",
    "ppo={n_steps: 16, batch_size: 128, learning_rate: 0.02}",
    "monitoring={console: 'off', tensorboard: false, curves: false}",
    "evaluation={every_env_steps: 1024, matches: 30, opponents: [rock]}",
)  # fmt: skip
ENTRY = {
    "world": "sprint-v1", "preset": "quick", "overrides": ["ppo.n_epochs=4"], "seed": 3, "goal": "90 % against rock",
    "target": 0.9, "seconds": 1234.56, "env_steps": 40960, "confirmed_score": 0.93333,
    "confirmed_rows": [{"opponent": "rock", "matches": 600}, {"opponent": "paper", "matches": 600}],
    "started": "2026-11-18T01:02:03+0000", "machine": {"cores": 2, "device": "cpu", "system": "Linux"},
    "git": {"commit": "0123456789abcdef", "clean": True}, "versions": {},
}  # fmt: skip


def sprint(monkeypatch: pytest.MonkeyPatch, target: float = 0.9) -> None:
    """Register `sprint-v1`, the duel with a speedrun of seconds, for one test."""
    monkeypatch.setattr(worlds, "_WORLDS", dict(worlds.known_worlds()))
    target_run = Speedrun("mean_win_rate", target, f"{target:.0%} against rock", overrides=RECIPE)
    monkeypatch.setitem(script.SPEEDRUNS, "sprint", target_run)
    registry.register_world(worlds.World(id="sprint-v1", env="ludus.envs.tiny.two_player:DuelEnv"))


def test_a_run_that_reaches_the_target_is_confirmed_on_other_seeds_and_added_to_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprint(monkeypatch)
    board, folder = tmp_path / "board.md", tmp_path / "run"
    run_speedrun("sprint", ["ppo.n_epochs=4", "seed=5"], board, folder)
    [entry] = json.loads((tmp_path / "board.json").read_text())
    assert entry["score"] >= 0.9
    assert entry["confirmed_score"] >= 0.9
    assert entry["rows"] != entry["confirmed_rows"]  # other seeds, other matches
    assert [row["matches"] for row in entry["confirmed_rows"]] == [30]
    assert entry["seconds"] > 0.0
    assert (entry["seed"], entry["overrides"], entry["world"]) == (5, ["ppo.n_epochs=4"], "sprint-v1")
    assert entry["env_steps"] % 1024 == 0
    assert entry["env_steps"] < 40960, "the run went on after its target"
    assert entry["machine"]["device"] == "cpu"
    ended = json.loads((folder / "run.json").read_text())["sessions"][-1]
    assert ended["env_steps"] == entry["env_steps"]
    assert ended["end_reason"] == "the target 90% against rock is reached"
    assert board.read_text().count("| sprint-v1 |") == 1
    with pytest.raises(ConfigError, match="starts from scratch"):
        run_speedrun("sprint", [], board, folder)


def test_a_target_that_is_not_reached_is_an_error_and_leaves_the_board_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprint(monkeypatch, target=1.1)
    board = tmp_path / "board.md"
    with pytest.raises(TargetNotReachedError, match=r"1\.1 .*: its best score is [\d.]+"):
        run_speedrun("sprint", ["total_env_steps=2048"], board, tmp_path / "run")
    assert not board.exists()
    assert not (tmp_path / "board.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluation.matches=1",), "evaluation.matches cannot be changed"),
        (("evaluation.opponents=[random]",), "evaluation.opponents cannot be changed"),
        (("evaluation=null",), "cannot be changed"),
        (("world.settings={rounds: 2}",), "world.settings cannot be changed"),
        (("evaluation.score=mean_length",), "evaluation.score cannot be changed"),
    ],
)
def test_what_judges_the_agent_cannot_be_changed(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprint(monkeypatch)
    with pytest.raises(ConfigError, match=message):
        speedrun_config("sprint", words)


@pytest.mark.parametrize("world", ["brawl", "mimic", "rocket"])
def test_shipped_speedruns_have_a_recipe(world: str) -> None:
    config = speedrun_config(world, ("world.device=cpu", "evaluation.every_env_steps=123_000"))
    assert config.evaluation is not None
    assert config.evaluation.score == speedrun_of(world).score
    assert config.evaluation.every_env_steps == 123_000
    if world == "rocket":
        assert [*(config.evaluation.modes or {})] == ["2v2"]


def test_a_board_ranks_its_entries_and_keeps_the_text_around_them(tmp_path: Path) -> None:
    board = tmp_path / "board.md"
    board.write_text(f"# Mine\n\n{BEGIN}\n{END}\n\nThe end.\n")
    add_to_board(board, ENTRY)
    gpu = {"device": "cuda (NVIDIA H200)", "cores": 16}
    add_to_board(board, ENTRY | {"seconds": 9.0, "overrides": [], "machine": gpu, "git": None})
    text = board.read_text()
    assert text.startswith("# Mine\n")
    assert text.endswith("\n\nThe end.\n")
    rows = [line for line in text.splitlines() if line.startswith("| sprint")]
    assert rows == [
        "| sprint-v1 | 90 % against rock | 9.0 | 0.9333 in 1,200 matches | 40,960 | NVIDIA H200 | 3 | quick |  "
        "| 2026-11-18 |",
        "| sprint-v1 | 90 % against rock | 1,234.6 | 0.9333 in 1,200 matches | 40,960 | 2 CPU cores | 3 "
        "| quick `ppo.n_epochs=4` | `012345678` | 2026-11-18 |",
    ]
    assert len(read_board(board)[1]) == 2


def test_the_data_of_a_board_in_docs_is_in_its_data_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    add_to_board(tmp_path / "speedrun.md", ENTRY)
    assert len(json.loads((tmp_path / "data" / "speedrun.json").read_text())) == 1


def test_pages_that_are_no_board_are_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Something else\n")
    with pytest.raises(ConfigError, match="is no board"):
        read_board(page)
    assert page.read_text() == "# Something else\n"
    (tmp_path / "board.json").write_text('[{"world": 3}]')
    with pytest.raises(FormatError, match="is not the data of a board"):
        read_board(tmp_path / "board.md")


def test_the_published_board_is_made_by_the_same_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    tables: ModuleType = importlib.import_module("benchmarks.tables.__main__")
    (tmp_path / "speedrun.json").write_text(json.dumps([ENTRY]))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    assert tables.filled(f"{BEGIN}\n{END}\n") == f"{BEGIN}\n{board_table([ENTRY])}\n{END}\n"


def test_a_cuda_device_gets_the_recipe_for_it() -> None:
    assert speedrun_of("brawl").preset == "quick"
    assert speedrun_of("brawl", ["world.device=cpu"]).preset == "quick"
    assert speedrun_of("brawl", ["seed=3", "world.device=cuda:0"]).preset == "competition"
    assert speedrun_of("rocket", ["world.device=cuda"]).preset == "1v1-2v2"  # the same everywhere
    assert speedrun_config("brawl", ["world.device=cuda"]).world.num_envs == 16384
