"""Nothing that a command prints can steer the terminal, wherever the text comes from."""

import logging
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.cli import console
from ludus.cli.console import (
    ProgressLine,
    echo,
    print_error,
    print_json,
    print_ok,
    print_table,
    print_verdict,
    print_warning,
    show_table,
)

Run = Callable[..., tuple[int, str, str]]

HOSTILE = "gym:\x1b]0;title\x07\x1b[2J\x9b31m\rover\x08\u202e"
SOURCES = Path(console.__file__).parent


def log(text: str) -> None:
    logging.getLogger("ludus.store").warning("[WARN] %s", text)


def warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=1)


@pytest.mark.parametrize(
    "show",
    [
        echo,
        print_ok,
        print_warning,
        print_error,
        lambda text: print_verdict("OK", text),
        lambda text: print_json({text: text}),
        lambda text: print_table((text, "b"), [(text, text)]),
        lambda text: show_table((text, "b"), [(text, text)], title=text),
        lambda text: ProgressLine(text, 1)(1),
        log,
        warn,
    ],
)
@pytest.mark.parametrize("is_terminal", [False, True])
def test_control_characters_are_shown_and_not_obeyed(
    show: Callable[[str], None],
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(warnings, "showwarning", None)
    console.set_up_logging()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        show(HOSTILE)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "".join(capfd.readouterr()))  # a table's own bold face
    assert "]0;title" in shown
    assert shown.replace("\n", "").isprintable()
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("show", "most"),
    [(print_warning, 21_000), (print_error, 21_000), (log, 21_000), (warn, 21_000),
     (lambda text: echo(text, err=True), 21_000),
     (lambda text: print_table((text, "b"), [(text, text)]), 4_000),
     (lambda text: show_table((text, "b"), [(text, text)], title=text), 10_000)],
)  # fmt: skip
def test_a_message_has_a_bound(
    show: Callable[[str], None], most: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(warnings, "showwarning", None)
    console.set_up_logging()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        show("name" * 1_000_000)
    shown = "".join(capfd.readouterr())
    assert "namename" in shown
    assert len(shown) < most


@pytest.mark.parametrize("error", [ValueError, KeyError, OSError])
def test_an_error_that_nobody_foresaw_is_a_plain_traceback(
    error: type[Exception], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error(HOSTILE)

    monkeypatch.setattr("ludus.evaluation.display.make_env", fail)
    code, out, err = run("demo", "brawl")
    assert code == 1
    assert err.startswith("Traceback")
    assert "]0;title" in err
    assert (out + err).replace("\n", "").isprintable()


def test_gymnasiums_colours_are_left_out(run: Run) -> None:
    _, _, err = run("envs", "gym:CartPole-v0")
    assert "\x1b" not in err


@pytest.mark.parametrize("file", sorted(SOURCES.glob("*.py")), ids=lambda file: file.name)
def test_commands_print_through_the_console_alone(file: Path) -> None:
    calls = re.findall(r"\b(?:typer|click)\.(?:echo|secho|print)\b|(?<![.\w])print\(", file.read_text(encoding="utf-8"))
    assert calls == [] or file.name in ("console.py", "config.py")  # config prints a path as the bytes that it is


def test_a_terminal_wraps_the_last_column(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [("quick", "7", "an MLP against all scripted styles, with rewards that point the way")]
    print_table(("preset", "seeds", "about"), rows)
    plain = capfd.readouterr().out
    assert plain.splitlines()[1] == "quick       7  an MLP against all scripted styles, with rewards that point the way"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("preset", "seeds", "about"), rows)
    wrapped = capfd.readouterr().out
    assert wrapped.splitlines()[1:3] == [
        "quick       7  an MLP against all",
        "               scripted styles, with",
    ]
    assert " ".join(wrapped.split()) == " ".join(plain.split())
