"""Settings laid over others: parts are changed field by field, values are replaced as a whole."""

from typing import Any

from pydantic import BaseModel, Field

from ludus.envs.base import check_fits
from ludus.envs.registry import make_env, register_env, with_overrides
from ludus.envs.settings import EnvSettings
from ludus.envs.tiny.two_player import DuelEnv


class Pushes(BaseModel):
    """A part of the settings."""

    every_s: float = 1.0
    force: float = 2.0


class PushedSettings(EnvSettings):
    """A value, a part, one that may be missing, and weights."""

    rounds: int = 10
    pushes: Pushes = Pushes()
    more: Pushes | None = None
    setters: dict[str, float] = Field(default_factory=dict)


register_env("pushed-v1", DuelEnv, PushedSettings)
BEFORE: dict[str, Any] = {
    "rounds": 3,
    "pushes": {"every_s": 5.0, "force": 6.0},
    "more": {"force": 1.0},
    "setters": {"kickoff": 1.0, "random": 4.0},
}


def test_parts_are_changed_and_values_replaced() -> None:
    over = {"pushes": {"force": 0.0}, "more": {"every_s": 9.0}, "setters": {"kickoff": 1.0}}
    merged = with_overrides("pushed", BEFORE, over)
    assert merged == {
        "rounds": 3,
        "pushes": {"every_s": 5.0, "force": 0.0},
        "more": {"force": 1.0, "every_s": 9.0},
        "setters": {"kickoff": 1.0},
    }
    assert BEFORE["setters"] == {"kickoff": 1.0, "random": 4.0}, "what was there stays"


def test_the_last_word_counts_and_nothing_changes_nothing() -> None:
    assert with_overrides("pushed", BEFORE) == BEFORE
    assert with_overrides("pushed", {}, {"rounds": 4}, {}, {"rounds": 5, "more": None}) == {"rounds": 5, "more": None}
    assert with_overrides("pushed", {"more": None}, {"more": {"force": 3.0}}) == {"more": {"force": 3.0}}


def test_of_worlds_that_tell_nothing_all_mappings_are_merged() -> None:
    assert with_overrides("unheard-of", {"a": {"b": 1}}, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}


def test_settings_that_change_nothing_that_is_seen_fit() -> None:
    with make_env("tug") as one, make_env("tug", config={"blue": 3, "orange": 2, "rounds": 1}) as other:
        check_fits(one.spec, other.spec, "whatever")
