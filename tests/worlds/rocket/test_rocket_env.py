"""The environment: its spec, the conformance kit in several modes, settings and states that are refused."""

import re
from typing import TYPE_CHECKING, Any

import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, SnapshotError
from ludus.envs.base import BatchedEnv
from ludus.envs.check import CHECKS, CheckOptions, check_env
from ludus.envs.registry import make_env, settings_model
from ludus.envs.warp_tools import struct_views
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch, Pitch

pytestmark = pytest.mark.compile


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"mode": "1v2", "actions": "continuous", "setters": {"random": 1.0}},
        {
            "mode": "2v2",
            "episode": "match",
            "match_s": 1.0,
            "overtime_s": 0.5,
        },
    ],
)
def test_rocket_conforms(config: dict[str, Any]) -> None:
    settings = {"episode_s": 2.0, "threads": 1} | config

    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        return make_env("rocket", num_envs, seed=seed, first_game=first_game, config=settings)

    report = check_env(make, CheckOptions(num_envs=3, steps=25, end_steps=90))
    has_mirror = settings.get("actions") == "continuous"
    assert set(CHECKS) - set(report.passed) == {"choices"} | (set() if has_mirror else {"mirror"})


def test_what_the_spec_says() -> None:
    spec = make_env("rocket").spec
    assert spec.id == "rocket-v2"
    assert spec.teams == (0, 1)
    assert spec.action_space == spaces.Discrete(90)
    assert spec.rate_hz == 15.0
    assert spec.step_limit == 4500  # 300 s
    assert spec.truncates
    spec = make_env("rocket", config={"mode": "1v3", "ticks": 4}).spec
    assert spec.teams == (0, 1, 1, 1)
    assert spec.mode == "1v3"
    assert spec.rate_hz == 30.0
    spec = make_env("rocket", config={"actions": "continuous", "episode": "match"}).spec
    assert spec.action_space == spaces.Box(-1.0, 1.0, (8,))
    assert spec.observation_space["vector"].shape == (136,)
    assert spec.step_limit == 9000  # 300 s and as much overtime
    assert not spec.truncates
    forever = {"episode_s": None, "no_touch_s": None}
    assert make_env("rocket", config=forever).spec.step_limit is None
    assert not make_env("rocket", config=forever).spec.truncates


def test_the_manual_names_the_blocks_of_the_observation() -> None:
    blocks = make_env("rocket").spec.blocks["vector"]
    named = re.findall(r"^ *\| `(\w+)` \| (\d+)-(\d+) \|", RocketEnv.__doc__ or "", re.MULTILINE)
    assert {name: (int(first), int(last) + 1) for name, first, last in named} == dict(blocks)


def test_a_mode_is_a_way_to_write_team_sizes() -> None:
    assert settings_model("rocket") is RocketConfig
    config = RocketConfig(mode="2v3")
    assert (config.blue, config.orange, config.seats) == (2, 3, 5)
    assert RocketConfig.model_validate(config.model_dump()) == config
    assert RocketConfig(blue=3, orange=1).seats == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mode": "4v1"}, ("4v1", "1 to 3", "1v2")),
        ({"mode": "0v1"}, ("0v1",)),
        ({"mode": 2}, ("mode", "2")),
        ({"mode": "2v2", "blue": 1}, ("2v2", "blue is 1", "leave one of them out")),
        ({"blue": 0}, ("blue", "0")),
        ({"orange": 4}, ("orange", "4", "3")),
        ({"blue": "two"}, ("blue", "two")),
        ({"ticks": 0}, ("ticks", "0")),
        ({"input_delay_ticks": 9}, ("input_delay_ticks", "9", "0 to 8")),
        ({"actions": "keys"}, ("actions", "keys", "table", "continuous")),
        ({"episode": "set"}, ("set", "goal", "match")),
        ({"episode_s": 0}, ("episode_s", "0")),
        ({"match_s": -1}, ("match_s", "-1")),
        ({"setters": {"kikoff": 1.0}}, ("kikoff", "did you mean 'kickoff'", "goalie, shooter")),
        ({"setters": {"random": -1.0}}, ("setters.random", "-1", "greater than or equal to 0")),
        ({"setters": {"random": float("nan")}}, ("random", "nan")),
        ({"setters": {"random": 0.0}}, ("at least one", "kickoff")),
        ({"setters": {}}, ("at least one",)),
        ({"setters": "kickoff"}, ("setters", "kickoff")),
        ({"setters": {"random": "much"}}, ("setters.random", "much")),
        ({"boost": "none"}, ("boost", "normal", "unlimited")),
        ({"team_size": 2}, ("team_size", "valid keys", "blue", "orange")),
    ],
)
def test_wrong_settings(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env("rocket", config=settings)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_wrong_resets(pitch: "Pitch") -> None:
    with pytest.raises(ActionError, match=r"\(1,\)"):
        pitch.env.reset(torch.ones(2, dtype=torch.bool))
    with pytest.raises(ActionError, match="bool"):
        pitch.env.reset([True])  # type: ignore[arg-type]
    with pytest.raises(ActionError, match="games"):
        pitch.env.reset(torch.ones(1, dtype=torch.bool), seed=1)
    with pytest.raises(ConfigError, match="-1"):
        pitch.env.reset(seed=-1)


def _with(snapshot: dict[str, Tensor], name: str, struct: Any, field: str, value: float) -> dict[str, Tensor]:
    changed = {key: tensor.clone() for key, tensor in snapshot.items()}
    struct_views(changed[name], struct)[field][0] = value
    return changed


@pytest.mark.parametrize(
    ("name", "struct", "field", "value"),
    [
        ("cars", Car, "inside_pad", 34),
        ("cars", Car, "inside_pad", -2),
        ("cars", Car, "bump_seat", 2),
        ("cars", Car, "team", 1),
        ("cars", Car, "boost", 101.0),
        ("cars", Car, "position", float("nan")),
        ("cars", Car, "position", 9000.0),
        ("cars", Car, "velocity", 2000.0),
        ("cars", Car, "rotation", 0.0),
        ("cars", Car, "throttle", 2.0),
        ("cars", Car, "jumped", 2),
        ("cars", Car, "wheel_angle", float("inf")),
        ("balls", Ball, "position", -500.0),
        ("balls", Ball, "spin", 6.0),
        ("matches", Match, "last_touch", 2),
        ("matches", Match, "before_orange", -2),
        ("matches", Match, "shot_seat", 7),
        ("matches", Match, "setter", 7),
        ("matches", Match, "tick", -1),
        ("matches", Match, "step", -1),
        ("matches", Match, "clock_s", float("nan")),
    ],
)
def test_states_that_cannot_be_are_refused(pitch: "Pitch", name: str, struct: Any, field: str, value: float) -> None:
    snapshot = pitch.env.snapshot()
    with pytest.raises(SnapshotError, match="rocket"):
        pitch.env.restore(_with(snapshot, name, struct, field, value))
    for key, tensor in pitch.env.snapshot().items():
        assert torch.equal(tensor, snapshot[key])
    pitch.env.restore(snapshot)


def test_pads_far_in_the_future_are_refused(pitch: "Pitch") -> None:
    snapshot = pitch.env.snapshot()
    snapshot["pads"][0, 0] = 1201
    with pytest.raises(SnapshotError, match="pad"):
        pitch.env.restore(snapshot)


def test_a_snapshot_of_other_teams_is_refused(make_pitch: "MakePitch") -> None:
    with pytest.raises(SnapshotError, match="cars"):
        make_pitch(mode="1v2").env.restore(make_pitch(mode="1v1").env.snapshot())
    with pytest.raises(SnapshotError, match="team"):
        make_pitch(mode="1v2").env.restore(make_pitch(mode="2v1").env.snapshot())


def test_seeds_and_episodes_give_other_kickoffs(make_pitch: "MakePitch") -> None:
    one, other = make_pitch(32, seed=1), make_pitch(32, seed=2)
    first = one.cars["position"].clone()
    assert not torch.equal(first, other.cars["position"])
    one.env.reset()  # the first reset begins the first episode
    assert torch.equal(first, one.cars["position"])
    one.env.reset()
    assert not torch.equal(first, one.cars["position"])
    one.env.reset(seed=1)
    assert torch.equal(first, one.cars["position"])
