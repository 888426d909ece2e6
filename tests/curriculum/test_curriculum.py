"""The curriculum: promotion by hand, state that survives, and phases that cannot work."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from ludus.core.errors import StateError
from ludus.curriculum.config import PhaseConfig, check_phases
from ludus.curriculum.progress import Curriculum

THREE: list[dict[str, Any]] = [
    {"name": "first", "opponents": {"constant": 1}, "promotion": {"win_rate": 0.75, "matches": 4}},
    {
        "name": "second",
        "opponents": {"based": 1},
        "promotion": {"win_rate": 0.5, "matches": 2, "against": ["based"], "after_env_steps": 100},
    },
    {"name": "third", "opponents": {"self": 1}},
]


def curriculum(phases: list[dict[str, Any]] = THREE) -> Curriculum:
    return Curriculum(TypeAdapter(tuple[PhaseConfig, ...]).validate_python(phases))


def matches(opponent: str, results: str) -> list[tuple[str, bool]]:
    return [(opponent, result == "w") for result in results]


def test_promotion_needs_all_its_matches() -> None:
    course = curriculum()
    assert course.record(matches("constant", "www"), 10) is None
    assert course.win_rate() == 1.0
    assert (
        course.record(matches("constant", "l"), 20) == "from phase 'first' to 'second': won 75% of the last 4 matches"
    )
    assert course.phase.name == "second"
    assert course.win_rate() is None, "what was won in a phase does not count in the next"


def test_only_the_last_matches_count() -> None:
    course = curriculum()
    assert course.record(matches("constant", "llllww"), 10) is None
    assert course.record(matches("constant", "w"), 10) is not None


def test_time_and_win_rate_must_both_hold_and_others_do_not_count() -> None:
    course = curriculum()
    course.record(matches("constant", "wwww"), 1000)
    assert course.record(matches("random", "ww") + matches("based", "w"), 1050) is None
    assert course.record(matches("based", "w"), 1060) is None, "60 of 100 env steps"
    reason = course.record([], 1100)
    assert reason == "from phase 'second' to 'third': won 100% of the last 2 matches"
    assert course.record(matches("self", "wwww"), 5000) is None, "the last phase lasts"


def test_a_rating_passes_a_stage_with_all_else_that_is_asked_for() -> None:
    rated: list[dict[str, Any]] = [
        {"name": "first", "opponents": {"self": 1}, "promotion": {"rating": 1200.5}},
        {"name": "second", "opponents": {"self": 1}, "promotion": {"rating": 900, "win_rate": 1.0, "matches": 1}},
        {"name": "third", "opponents": {"self": 1}},
    ]
    course = curriculum(rated)
    assert course.record(matches("self", "w"), 10) is None, "nobody is rated yet"
    assert course.record(matches("self", "w"), 20, 1200.4) is None
    assert course.record([], 30, 1200.5) == "from phase 'first' to 'second': is rated 1200"
    assert course.record([], 40, 1200.5) is None, "no match in this phase"
    reason = course.record(matches("self", "w"), 50, 950.0)
    assert reason == "from phase 'second' to 'third': is rated 950 and won 100% of the last 1 matches"


def test_time_alone_ends_a_stage() -> None:
    phases: list[dict[str, Any]] = [
        {"name": "a", "opponents": {"x": 1}, "promotion": {"after_env_steps": 500}},
        {"name": "b", "opponents": {"x": 1}},
    ]
    course = curriculum(phases)
    assert course.record(matches("x", "l" * 300), 499) is None
    assert course.record([], 500) == "from phase 'a' to 'b': 500 env steps are over"


def test_state_survives() -> None:
    course, other = curriculum(), curriculum()
    course.record(matches("constant", "wwww"), 1000)
    course.record(matches("based", "w"), 1090)
    other.load_state(course.state())
    assert other.record(matches("based", "w"), 1100) == course.record(matches("based", "w"), 1100)
    assert other.state() == course.state()
    with pytest.raises(StateError, match=r"course\.curriculum\.index.*2.*0 to 0"):
        curriculum([THREE[2]]).load_state(course.state())


@pytest.mark.parametrize(
    ("phases", "fault"),
    [
        ([THREE[2], THREE[2]], "different names"),
        ([{"name": "a", "opponents": {"x": 0}}], "'a' needs an opponent"),
        ([THREE[2], THREE[0]], "'third' needs a promotion rule"),
    ],
)
def test_stages_that_cannot_work_are_refused(phases: list[dict[str, Any]], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        check_phases(TypeAdapter(tuple[PhaseConfig, ...]).validate_python(phases))


def test_a_promotion_that_never_comes_is_refused() -> None:
    with pytest.raises(ValueError, match="needs win_rate"):
        curriculum([{"name": "a", "opponents": {"x": 1}, "promotion": {"matches": 3}}])
