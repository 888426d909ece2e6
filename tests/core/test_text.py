"""Text that is printed cannot steer a terminal."""

import pytest

from ludus.core.text import markdown_code, markdown_text, match_label, page_text, plain_text, row_label, short_text


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
    ("text", "shown"),
    [
        ("a\n\n  b\t", "a b"),
        ("\x1b[31m\u202e", "\\x1b[31m\\u202e"),
        ("a" * 20, "a" * 20),
        ("a" * 21, "a" * 17 + "..."),
        ("\x1b" * 6, "\\x1b" * 4 + "\\..."),  # 24 letters once they are escaped
        ("a" * 10**8, "a" * 17 + "..."),
    ],
)
def test_a_short_text_is_one_line_of_a_known_length(text: str, shown: str) -> None:
    assert short_text(text, 20) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("own_state (12,) of brawl-v1", "own_state (12,) of brawl-v1"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a | b", r"a \| b"),
        ("a\n\n# b", r"a \# b"),
        ("![a](javascript:b)", r"!\[a\](javascript:b)"),
        ("http://x www.x", r"http\://x www\.x"),
        ("*a* _b_ `c` ~~d~~ \\", r"\*a\* \_b\_ \`c\` \~\~d\~\~ \\"),
        ("&lt;", "&amp;lt;"),
        ("\x1b[2J\u202e", r"\\x1b\[2J\\u202e"),
    ],
)
def test_markdown_shows_a_text_as_it_is(text: str, shown: str) -> None:
    assert markdown_text(text) == shown
    assert len(markdown_text(text * 1000)) < 1200  # an escape may take six letters


def test_code_in_markdown_cannot_be_ended() -> None:
    assert markdown_code("ludus train duel 'opponents={rock: 1}'") == "`ludus train duel 'opponents={rock: 1}'`"
    assert markdown_code("``` |\n<b>\x1b") == r"`''' / (b)\x1b`"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("l\u00e4ufe \u8d70", "l\u00e4ufe \u8d70"),
        ("<b>\n", "<b>\n"),  # a text node of the page
        ("a\u202eb\u2066\u200b", "a\\u202eb\\u2066\\u200b"),
        ("\x1b\x00\ud800", "\\x1b\\x00\\ud800"),
        ("a" * 10**7, "a" * 197 + "..."),
    ],
)
def test_a_page_shows_every_script_but_nothing_that_turns_the_order(text: str, shown: str) -> None:
    assert page_text(text) == shown


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
