"""Names of rows and curves: modes and sides are told where they matter."""

import pytest

from ludus.core.labels import match_label, row_label


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
