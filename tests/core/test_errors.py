"""The error tree: one base, built-in bases for callers that know none of ours, helpful messages."""

import inspect
import time

import pytest

from ludus.core import errors

ALL = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if cls.__module__ == errors.__name__ and issubclass(cls, BaseException)
]


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_error_is_ours_and_described_in_one_line(cls: type[Exception]) -> None:
    assert issubclass(cls, errors.LudusError)
    assert cls.__name__.endswith("Error")
    assert cls.__doc__ is not None
    assert len(cls.__doc__.strip().splitlines()) == 1


def test_a_name_nearly_right_gets_a_suggestion() -> None:
    assert errors.did_you_mean("brwal", ["brawl", "rocket"]) == " (did you mean 'brawl'?)"
    assert errors.did_you_mean("xyz", ["brawl", "rocket"]) == ""


def test_an_unknown_name_lists_the_valid_ones() -> None:
    error = errors.UnknownNameError("world", "brwal", iter(["brawl", "rocket"]))
    assert str(error) == "unknown world 'brwal' (did you mean 'brawl'?); valid: brawl, rocket"
    assert (error.kind, error.name, error.valid) == ("world", "brwal", ("brawl", "rocket"))
    assert isinstance(error, ValueError)


def test_a_missing_library_names_the_command_that_installs_it() -> None:
    error = errors.MissingDependencyError("pygame", "window", "drawing a match")
    assert str(error) == 'drawing a match needs pygame; install it with: pip install -e ".[window]"'
    assert isinstance(error, ImportError)


def test_a_full_disk_is_a_store_error_that_can_be_told_apart() -> None:
    assert issubclass(errors.StoreFullError, errors.StoreError)
    assert issubclass(errors.StoreError, OSError)
    assert not issubclass(errors.CheckpointError, OSError)


LONG = "x" * 5_000_000


def test_names_from_files_are_cut_escaped_and_not_compared_for_minutes() -> None:
    started = time.process_time()
    messages = [
        str(errors.UnknownNameError("world", LONG, ["brawl"])),
        str(errors.UnknownNameError("world", "\x1b[31m\u202e", ["\x1b]0;title", LONG])),
        str(errors.UnknownNameError("field", "a" * 150, (f"{number:0150}" for number in range(50_000)))),
        str(errors.CheckpointError("folder", "agent.json", LONG)),
        errors.did_you_mean(LONG, [LONG]),
        errors.brief(LONG, 200),
    ]
    assert time.process_time() - started < 5.0
    assert all(len(message) < 50_000 and message.isascii() and message.isprintable() for message in messages)
    assert len(messages[0]) < 300
    assert "and 49800 more" in messages[2]


def test_lists_of_names_say_how_many_are_left_out() -> None:
    assert errors.listed([]) == "none"
    assert errors.listed(["a", "b\n"]) == "a, b\n"
    assert errors.listed(map(str, range(203))).endswith("199, and 3 more")
