"""run.log and run.json: warnings, promotions and why each session ended, in plain lines, also after a kill."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import ludus
from ludus.core.errors import CallbackError, StoreError
from ludus.training.callbacks import BaseCallback, Counters, Iteration
from ludus.training.config import TrainConfig
from ludus.training.loggers.run_log import RunLog
from ludus.training.session import Received, run_training

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} env_steps=(\d+) (\[(?:OK|WARN|ERROR)\] .+)")
CONFIG: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 4},
    "total_env_steps": 4 * 32,
    "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1},
    "curriculum": [
        {"name": "first", "opponents": {"rock": 1.0}, "promotion": {"after_env_steps": 64}},
        {"name": "second", "opponents": {"random": 1.0}},
    ],
    "checkpoints": {"every_iterations": 1},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False, "resources": False},
}


def train(folder: Path, *callbacks: BaseCallback) -> None:
    run_training(TrainConfig.model_validate(CONFIG), folder, Received(), title="duel", callbacks=callbacks)


def lines(folder: Path) -> list[tuple[int, str]]:
    """Returns env steps and text of every line; fails on a line of another form."""
    content = (folder / "run.log").read_bytes()
    assert content.isascii()
    assert content.endswith(b"\n")
    found = [LINE.fullmatch(line) for line in content.decode().splitlines()]
    assert all(found), content
    return [(int(match[1]), match[2]) for match in found if match]


def end_reasons(folder: Path) -> list[str | None]:
    return [session.get("end_reason") for session in json.loads((folder / "run.json").read_text())["sessions"]]


class At(BaseCallback):
    """Does something after the iteration that reaches so many env steps."""

    def __init__(self, env_steps: int, error: Exception | None = None) -> None:
        self._env_steps, self._error = env_steps, error

    def on_iteration(self, iteration: Iteration) -> None:
        if iteration.counters.env_steps == self._env_steps:
            if self._error is not None:
                raise self._error
            logging.getLogger("ludus.somewhere").info("[OK] nobody needs to know")
            logging.getLogger("ludus.somewhere").warning("[WARN] a name\x1b[2J from\na file \u2713")
            self.trainer.stop("the guard asked for it")


def test_a_run_writes_its_promotion_and_its_end(tmp_path: Path) -> None:
    train(tmp_path)
    (first, start), (promoted_at, promotion), (last, end) = lines(tmp_path)
    assert (first, start) == (0, "[OK] training starts")
    assert promoted_at == 64
    assert "second" in promotion
    assert (last, end) == (128, "[OK] training ended: the budget of 128 env steps is used up")
    assert end_reasons(tmp_path) == ["the budget of 128 env steps is used up"]


def test_warnings_are_one_plain_line_and_a_stop_says_why(tmp_path: Path) -> None:
    train(tmp_path, At(32))
    assert lines(tmp_path) == [
        (0, "[OK] training starts"),
        (32, "[WARN] a name\\x1b[2J from a file \\u2713"),
        (32, "[WARN] training ended: the guard asked for it"),
    ]
    train(tmp_path)
    assert lines(tmp_path)[3] == (32, "[OK] training resumes")
    assert end_reasons(tmp_path) == ["the guard asked for it", "the budget of 128 env steps is used up"]


def test_an_error_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(CallbackError):
        train(tmp_path, At(32, ValueError("no such \x1b[31mlevel")))
    [reason] = end_reasons(tmp_path)
    assert reason is not None
    assert reason.startswith("CallbackError: callback At failed: ValueError: no such \\x1b[31mlevel")
    assert lines(tmp_path)[-1] == (32, f"[WARN] training ended: {reason}")


def test_after_a_kill_the_log_continues_on_a_line_of_its_own(tmp_path: Path) -> None:
    train(tmp_path, At(64))
    document = json.loads((tmp_path / "run.json").read_text())
    for key in ("ended", "end_reason"):
        del document["sessions"][0][key]
    (tmp_path / "run.json").write_text(json.dumps(document))
    whole = (tmp_path / "run.log").read_text().splitlines(keepends=True)[:-1]
    (tmp_path / "run.log").write_text("".join([*whole, "2026-01-01T00:00:00+0000 env_st"]))
    train(tmp_path)
    assert lines(tmp_path)[len(whole) :][:2] == [
        (64, "[WARN] the session before this one was cut off, by a kill or a loss of power"),
        (64, "[OK] training resumes"),
    ]
    assert end_reasons(tmp_path) == [None, "the budget of 128 env steps is used up"]


def test_warnings_of_the_checks_before_a_run_are_in_its_log(tmp_path: Path) -> None:
    """The run folder does not exist yet when the settings are checked."""
    folder, handlers = tmp_path / "run", list(logging.getLogger("ludus").handlers)
    ludus.train(CONFIG, world={"settings": {"matches_per_episode": 3}}, folder=folder)
    first = (folder / "run.log").read_text().splitlines()[0]
    assert "env_steps=- [WARN] world.settings.matches_per_episode is 3, but the policy has no memory" in first
    assert logging.getLogger("ludus").handlers == handlers


def test_warnings_are_taken_only_while_it_is_open(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        logging.getLogger("ludus").warning("[WARN] while it is loaded")
        log.on_training_start(Counters())
        logging.getLogger("ludus").warning("[WARN] inside")
    logging.getLogger("ludus").warning("[WARN] outside")
    written = [line.partition(" ")[2] for line in (tmp_path / "run.log").read_text().splitlines()]
    assert written == [
        "env_steps=- [WARN] while it is loaded",
        "env_steps=0 [OK] training starts",
        "env_steps=0 [WARN] inside",
    ]


def test_a_folder_in_its_place_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "run.log").mkdir()
    with pytest.raises(StoreError, match=r"run\.log"):
        RunLog(tmp_path)
