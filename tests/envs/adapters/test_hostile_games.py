"""Gymnasium environments that raise or break the API: one typed error, with the user's line and nothing to obey."""

import re
from pathlib import Path
from typing import Any

import hostile_games  # type: ignore[import-not-found,unused-ignore]  # beside this file
import pytest
import torch

from ludus.core.errors import ConfigError, EnvFaultError, WorkerError
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import is_registered, make_env

FILE = re.escape(hostile_games.__file__)
STEPS, RESETS = hostile_games.STEPS, hostile_games.RESETS
ACTIONS = torch.zeros(2, 1, dtype=torch.int64)
SPACES = {
    "float picture": ("picture", "an array of shape (1, 1, 3) of float64 as observation, expected .* of uint8"),
    "0": ("choice", "0 as observation, expected an integer from 1 to 3"),
    "4": ("choice", "4 as observation, expected an integer from 1 to 3"),
    "2.5": ("choice", "2.5 as observation, expected an integer from 1 to 3"),
    "a alone": ("dict", "a dict of 1 as observation, expected a dict with the key 'b'"),
    "an array": ("dict", "an array of shape (3,) of float32 as observation, expected a dict with the key 'a'"),
}


def hostile(fault: str, name: str = "Hostile-v0", workers: int = 0, **env_kwargs: Any) -> BatchedEnv:
    config = {"workers": workers, "max_faults_in_row": 2, "env_kwargs": {"fault": fault, **env_kwargs}}
    return make_env(f"gym:hostile_games:{name}", 2, config=config)


def play(env: BatchedEnv) -> None:
    with env:
        env.reset()
        for _ in range(5):
            env.step(ACTIONS)


@pytest.mark.parametrize("name", ["Hostile-v0", "Limited-v0"])
@pytest.mark.parametrize("fault", [*STEPS, *RESETS])
def test_an_environment_that_breaks_the_api_is_one_typed_error(fault: str, name: str) -> None:
    with pytest.raises(EnvFaultError) as caught:
        play(hostile(fault, name))
    message = str(caught.value)
    method = "reset" if fault in RESETS else "step"
    what, place = rf"{method}\(\) (returned|raised) .* \({FILE}:\d+\)", r"game 0, after env\.reset\(seed=\d+\)"
    assert re.match(f"gym:{name}: {what}; {place}", message), message
    assert message.isascii()
    assert message.isprintable()


def test_the_error_of_an_exception_has_its_text_and_line() -> None:
    with pytest.raises(EnvFaultError) as caught:
        play(hostile("raises"))
    line = next(
        n for n, text in enumerate(Path(hostile_games.__file__).read_text().splitlines(), 1) if "raise Run" in text
    )
    assert rf"step() raised RuntimeError: broken \x1b]0;owned\x07 ({hostile_games.__file__}:{line})" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("text as reward", "returned '1.0' as reward, expected a number"),
        ("no reward", "returned None as reward, expected a number"),
        ("four values", "returned a tuple of 4, expected (observation, reward, terminated, truncated, info)"),
        ("not a number", "an array of shape (3,) of float32 as observation, expected finite numbers, but it holds NaN"),
        ("reward that is no number", "returned nan as reward, expected a finite number"),
        ("flag of text", "returned 'no' as terminated, expected a bool"),
        ("wrong shape", "returned an array of shape (4,) of float32 as observation, expected an array of shape (3,)"),
        ("reset returns nothing", "reset() returned None, expected (observation, info)"),
    ],
)
def test_the_error_says_what_was_returned_and_what_was_expected(fault: str, said: str) -> None:
    with pytest.raises(EnvFaultError, match=re.escape(said)):
        play(hostile(fault))


@pytest.mark.parametrize("fault", SPACES)
def test_observations_of_every_space_are_checked(fault: str) -> None:
    space, said = SPACES[fault]
    pattern = re.escape(said).replace(re.escape(".*"), ".*")
    with pytest.raises(EnvFaultError, match=pattern):
        play(hostile(fault, space=space))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_cannot_be_made_is_named(workers: int) -> None:
    with pytest.raises(EnvFaultError, match=r"'gym:hostile_games:Hostile-v0' .*RuntimeError: broken") as caught:
        hostile("cannot be made", workers=workers)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "said"), [("render raises", r"render\(\) raised RuntimeError"), ("", "of object, expec")]
)
def test_an_environment_that_cannot_be_drawn_is_named(fault: str, said: str) -> None:
    with hostile(fault, render_mode="rgb_array") as env:
        env.reset()
        with pytest.raises(EnvFaultError, match=said):
            env.render()


def test_an_environment_that_does_not_close_is_only_reported(caplog: pytest.LogCaptureFixture) -> None:
    env = hostile("")
    env._games.envs[0].unwrapped._fault = "close raises"  # type: ignore[attr-defined]
    env.close()
    assert r"close() raised RuntimeError: broken \x1b]0;owned\x07" in caplog.text


@pytest.mark.parametrize("fault", ["raises", "four values", "wrong shape", "reset returns nothing"])
def test_in_workers_faults_are_counted_and_stop_the_run(fault: str) -> None:
    with pytest.raises(WorkerError) as caught:
        play(hostile(fault, workers=1))
    assert "worker 0 raised: " in str(caught.value)
    assert "hostile_games.py" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_lists_and_other_types_of_numbers_are_fine() -> None:
    with hostile("lists", fine_steps=0) as env:
        env.reset()
        result = env.step(ACTIONS)
        assert result.events["reward"][0, 0] == 2.0
        assert result.final_observations["vector"][0, 0].tolist() == [0.0, 1.0, 2.0]
        assert result.truncated.tolist() == [True, True]


@pytest.mark.parametrize("name", ["gym:\x1b]0;owned\x07", "gym:a\x1b[2J:b-v0", "gym:a:b:c", "gym::", "gym:"])
def test_an_id_with_control_characters_is_refused_and_escaped(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env(name)
    assert str(caught.value).isprintable()


def test_an_environment_without_version_is_found_again_by_its_spec() -> None:
    with make_env("gym:hostile_games:Unversioned") as env:
        assert env.spec.id == "gym:Unversioned-v0"
    assert is_registered(env.spec.id)
    with make_env(env.spec.id) as again:
        assert again.spec.id == env.spec.id
    assert not is_registered("gym:Nowhere-v0")
