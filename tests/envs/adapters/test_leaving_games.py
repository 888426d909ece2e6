"""Games that end the process by `sys.exit` or the like are games that raise: a typed error, with the user's line."""

import re
import signal
from types import FrameType
from typing import Any

import leaving_games  # type: ignore[import-not-found,unused-ignore]  # beside this file
import pytest
import torch

import ludus
from ludus.core.errors import EnvFaultError, WorkerError
from ludus.core.faults import RefusedExits, Unwinding, UserExitError, let_pass
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env

pytestmark = pytest.mark.fault

FILE = re.escape(leaving_games.__file__)
KINDS = {"gym": "gym:leaving_games:Leaving-v0", "vector": "leaving-vector", "pair": "leaving-pair"}
WAYS = [way for way in leaving_games.WAYS if way != "KeyboardInterrupt"]


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    ludus.register_env("leaving-vector-v1", leaving_games.LeavingVector)
    ludus.register_env("leaving-pair-v1", leaving_games.LeavingPair)


def leaving(kind: str, at: str, way: str, workers: int = 0) -> BatchedEnv:
    config = {"workers": workers, "max_faults_in_row": 2, "env_kwargs": {"at": at, "way": way}}
    return make_env(KINDS[kind], 2, config=config)


def play(env: BatchedEnv, steps: int = 1) -> None:
    with env:
        env.reset()
        for _ in range(steps):
            env.step(torch.zeros(env.num_envs, env.spec.seats, dtype=torch.int64))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", ["__init__", "reset", "step"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_game_that_would_end_the_process_is_a_game_that_raises(kind: str, at: str, way: str) -> None:
    with pytest.raises(EnvFaultError) as caught:
        play(leaving(kind, at, way))
    message = str(caught.value)
    assert re.search(f"(SystemExit|GiveUp).*{FILE}:\\d+", message), message
    assert len(message) < 1000
    assert message.isascii()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_game_that_exits_while_it_is_closed_is_reported(
    kind: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    play(leaving(kind, "close", way))
    assert re.search("close.. raised (SystemExit|GiveUp)", caplog.text)


@pytest.mark.parametrize("way", leaving_games.WAYS)
@pytest.mark.parametrize(("kind", "at"), [("gym", "reset"), ("gym", "step"), ("pair", "step")])
def test_the_same_in_a_worker_process(kind: str, at: str, way: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(WorkerError) as caught:
        play(leaving(kind, at, way, workers=1), steps=2)
    message = str(caught.value)
    assert "worker 0 failed 2 times in a row" in message
    assert re.search(f'raised: (SystemExit|leaving_games.GiveUp|KeyboardInterrupt)(.|\n)*File "{FILE}", line', message)
    assert len(message) + len(caplog.text) < 20_000


def test_what_a_signal_raises_is_not_the_fault_of_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        monkeypatch.setitem(leaving_games.WAYS, "signal", lambda: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(SystemExit) as stop:
            play(leaving("gym", "step", "signal"))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stop.value.code == 128 + signal.SIGTERM


def test_an_interrupt_passes_where_it_may_be_that_of_the_keyboard() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            play(leaving("gym", "step", "KeyboardInterrupt"))
        signal.signal(signal.SIGINT, lambda *_: None)
        with pytest.raises(EnvFaultError, match="KeyboardInterrupt"):
            play(leaving("gym", "step", "KeyboardInterrupt"))
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [GeneratorExit(), type("Own", (Unwinding,), {})()])
def test_what_only_passes_through_code_passes(error: BaseException) -> None:
    with pytest.raises(type(error)):
        let_pass(error)
    with pytest.raises(type(error)), RefusedExits():
        raise error


def test_exits_are_refused_and_exceptions_stay() -> None:
    with pytest.raises(UserExitError, match=r"SystemExit: 3 .*test_leaving_games\.py"), RefusedExits():
        raise SystemExit(3)
    with pytest.raises(ZeroDivisionError), RefusedExits():
        raise ZeroDivisionError
    let_pass(ValueError())


def test_repeated_faults_are_told_ever_more_rarely(caplog: pytest.LogCaptureFixture) -> None:
    config: dict[str, Any] = {"workers": 2, "progress_steps": 1, "max_faults_in_row": 2}
    config["env_kwargs"] = {"at": "step", "way": "exits with a text"}
    with make_env(KINDS["gym"], 40, config=config) as env, pytest.raises(WorkerError):
        play(env, steps=2)
    assert caplog.text.count("Traceback") == 1  # the second worker's is the same
    assert "2 of this kind" in caplog.text
    assert "episode seeds from game 0 on" in caplog.text
    assert len(caplog.text) < 10_000
