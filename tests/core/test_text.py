"""Text that is printed cannot steer a terminal."""

import pytest

from ludus.core.text import match_label, plain_text, row_label


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo", "one\ntwo"),
        ("a\tb", "a    b"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\x7f\x00", "a\\x0db\\x7f\\x00"),
        ("\x9b2J caf\u00e9 \u202e", "\\x9b2J caf\\xe9 \\u202e"),
    ],
)
def test_everything_but_printable_ascii_and_line_feeds_is_escaped(text: str, shown: str) -> None:
    assert plain_text(text) == shown


@pytest.mark.parametrize(
    ("opponent", "side", "mode", "label"),
    [
        ("keeper", "1v1", "", "keeper"),
        ("keeper", "", "", "keeper"),
        ("keeper", "2v1", "", "2v1 keeper"),
        ("keeper", "2v1", "1v2", "2v1 keeper"),
        ("keeper", "", "2v2", "2v2 keeper"),
        ("keeper", "2v1", "from kickoff", "from kickoff 2v1 keeper"),
        ("self-0012", "1v2", "1v2", "1v2 self-0012"),
        ("", "", "2v2", "2v2"),
        ("", "", "", ""),
    ],
)
def test_labels(opponent: str, side: str, mode: str, label: str) -> None:
    assert match_label(opponent, side, mode) == label
    assert row_label({"opponent": opponent, "side": side, "mode": mode}) == label


def test_a_trial_is_its_own_name() -> None:
    assert row_label({"opponent": "", "trial": "pushes"}) == "pushes"
    assert row_label({"opponent": "keeper"}) == "keeper"
    assert row_label({}) == ""
