"""Signals: whom they concern when, and what the second one does."""

import os
import signal
from typing import Any

import pytest

from ludus.training.session import Received, ended_by_signals


class FakeTrainer:
    """Writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def stop(self, reason: str) -> None:
        self.asked.append(f"stop: {reason}")

    def interrupt(self, reason: str) -> None:
        self.asked.append(f"interrupt: {reason}")


def concern(received: Received) -> FakeTrainer:
    trainer: Any = FakeTrainer()
    received.concern(trainer)
    fake: FakeTrainer = trainer
    return fake


def test_the_first_signal_interrupts_the_run_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with ended_by_signals() as received:
        trainer = concern(received)
        assert (received.number, received.exit_code) == (0, 0)
        signal.raise_signal(signal.SIGTERM)
        assert (received.number, received.exit_code) == (signal.SIGTERM, 143)
    assert trainer.asked == ["interrupt: SIGTERM came"]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_signal_before_there_is_a_run_ends_the_process(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as end, ended_by_signals():
        signal.raise_signal(signal.SIGINT)
    assert end.value.code == 130
    assert "SIGINT came before the run began" in caplog.text


def test_a_signal_that_was_kept_back_before_there_was_a_run_stops_it() -> None:
    with ended_by_signals() as received:
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
        assert concern(received).asked == ["stop: SIGTERM came"]


@pytest.mark.parametrize(("terminals", "written"), [((), None), ((1, 2), 1), ((2,), 2)])
def test_the_second_signal_ends_at_once_and_gives_the_cursor_back(
    monkeypatch: pytest.MonkeyPatch, terminals: tuple[int, ...], written: int | None
) -> None:
    class Ended(BaseException):
        pass

    def end(code: int) -> None:
        raise Ended(code)

    texts: dict[int, bytes] = {}
    with ended_by_signals() as received:
        trainer = concern(received)
        signal.raise_signal(signal.SIGTERM)
        with monkeypatch.context() as patch:
            patch.setattr(os, "_exit", end)
            patch.setattr(os, "isatty", lambda descriptor: descriptor in terminals)
            patch.setattr(os, "write", texts.__setitem__)
            with pytest.raises(Ended) as ended:
                signal.raise_signal(signal.SIGINT)
    assert ended.value.args == (130,)
    assert texts == ({} if written is None else {written: b"\x1b[?25h\n"})
    assert trainer.asked == ["interrupt: SIGTERM came"]
