"""Numbers and names as a console shows them."""

import pytest

from ludus.training.loggers.progress import duration, group_opponents, memory, number, percent, plain


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.0, "0.0 s"), (4.21, "4.2 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (185.0, "3 min 05 s"),
        (7620.0, "2 h 07 min"), (86_399.6, "1 d 00 h"), (100_800.0, "1 d 04 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"), (0.0004, "0.1 %"), (0.004, "0.4 %"), (0.555, "56 %"), (0.996, "99.6 %"), (0.9999, "99.9 %"),
        (1.0, "100 %"),
    ],
)  # fmt: skip
def test_only_all_is_100_percent_and_only_nothing_is_0(share: float, text: str) -> None:
    assert percent(share) == text


def test_numbers_and_memory() -> None:
    assert number(0.000123456) == "0.0001235"
    assert memory(1.5 * 2**30) == "1.5 GiB"
    assert memory(2.0 * 2**30, 139.8 * 2**30) == "2.0 of 140 GiB"


def test_what_a_terminal_would_obey_is_spelled_out() -> None:
    assert plain("two\nlines\tand \x1b[2J a bell \x07, f\u00fcr \u2713") == (
        "two lines and \\x1b[2J a bell \\x07, f\\xfcr \\u2713"
    )


def test_families_of_many_share_a_group_and_bots_do_not() -> None:
    snapshots = [f"snapshot-{step}" for step in range(1000, 5000, 1000)]
    groups = group_opponents(["based", "bot-1", "bot-2", *snapshots])
    assert groups == {"based": "based", "bot-1": "bot-1", "bot-2": "bot-2"} | dict.fromkeys(snapshots, "snapshot (4)")


def test_kinds_that_are_known_count_more_than_names() -> None:
    names = ["a", "b", "c", "d", "x1", "x2", "x3", "x4"]
    kinds = dict.fromkeys("abcd", "past self") | dict.fromkeys(["x1", "x2", "x3", "x4"], "bot")
    groups = group_opponents(names, kinds)
    assert {groups[name] for name in "abcd"} == {"past self (4)"}
    assert groups["x3"] == "x3"
