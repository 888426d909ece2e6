"""City as a batched world: contract, Gymnasium, settings, bots, the truth beside the screen."""

import warnings
from typing import Any

import gymnasium as gym
import pytest
import torch
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file
from gymnasium.utils.env_checker import check_env as gymnasium_check

from ludus.core.errors import ActionError, ConfigError, DeviceError, UnknownNameError
from ludus.envs.base import EnvRequest
from ludus.envs.check import CheckOptions, check_env
from ludus.envs.registry import make_env
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.game.rules import Over

pytestmark = pytest.mark.screen

KIT = CheckOptions(num_envs=2, steps=6, end_steps=8)


@pytest.mark.parametrize(
    "config",
    [
        {
            "steps": 4,
            "observe": ["map", "frame", "readings", "menu"],
            "display": {"themes": ["paper", "night"]},
        },
        {"steps": 4, "metrics": "truth", "closes": True, "observe": ["readings"], "actions": ["build", "tax"]},
    ],
)
def test_it_passes_the_conformance_kit(config: dict[str, Any]) -> None:
    def maker(num_envs: int, seed: int, first_game: int) -> CityEnv:
        return CityEnv(EnvRequest(num_envs, "cpu", seed, first_game, config))

    report = check_env(maker, KIT)
    assert set(report.skipped) == {"mirror"}, str(report)


def test_gymnasium_accepts_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make("ludus/City-v1", config={"steps": 5})
        gymnasium_check(env.unwrapped)
        env.close()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"game": "micropolis", "metrics": "truth"}, "metrics: truth needs game: embedded"),
        ({"actions": ["build"]}, "add explore to actions, or set closes: true"),
        ({"actions": ["build", "build"], "closes": True}, "build"),
        ({"actions": ["camera"], "closes": True}, "actions camera"),
        ({"actions": ["dig"]}, "actions.0"),
        ({"observe": []}, "observe"),
        ({"stepps": 5}, "did you mean 'steps'"),
        ({"rules": {"colums": 20}}, "colums"),
        ({"wait_s": 0}, "wait_s"),
        ({"frame": [84]}, "frame"),
        ({"menu_buffer": 0}, "menu_buffer"),
        ({"display": {"themes": ["clasic"]}}, "did you mean 'classic'"),
        (
            {"display": {"themes": ["classic", "paper"]}, "rules": {"columns": 40, "rows": 30}},
            "classic, paper",
        ),
    ],
)
def test_wrong_settings_are_told(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_env("city", config=config)


def test_the_default_map_is_small_and_other_rules_leave_it_so() -> None:
    with make_env("city", config={"rules": {"zone_brush": 1}, "steps": 5}) as env:
        assert env.spec.action_space.nvec.tolist()[1] == 20 * 14  # type: ignore[attr-defined]
        assert env.spec.actions.places is not None
        assert (env.spec.actions.places.rows, env.spec.actions.places.columns) == (14, 20)


def test_it_lives_on_the_cpu_and_refuses_wrong_resets() -> None:
    with pytest.raises(DeviceError, match="cpu"):
        make_env("city", games_device="cuda")
    world = World()
    with pytest.raises(ActionError, match="seed"):
        world.env.reset(torch.ones(1, dtype=torch.bool), seed=1)
    with pytest.raises(ActionError, match=r"bool .*\(\d+,\)"):
        world.env.reset(torch.ones(2, dtype=torch.bool))
    with pytest.raises(ConfigError, match="seed"):
        world.env.reset(seed=-1)
    with pytest.raises(UnknownNameError, match="balanced"):
        world.env.bots(["balancd"])
    world.env.close()


def test_choices_outside_the_space_count_as_the_nearest() -> None:
    world = World()
    world.env.step(torch.tensor([[[10_000, -5]]]))
    assert world.backend.catalogue.names[int(world.env.tracker.last_kind[0])] == world.backend.catalogue.names[-1]
    world.env.close()


def test_the_screen_says_what_is_true() -> None:
    same = {"actions": ["build", "street", "bulldoze", "tax"], "closes": True, "steps": 25}
    seen, known = (World(3, {"hamlet": True}, flat=False, metrics=metrics, **same) for metrics in ("screen", "truth"))
    bots = seen.env.bots(["balanced"])
    actions, assignment = torch.zeros((3, 1, 2), dtype=torch.int64), torch.zeros((3, 1), dtype=torch.int32)
    for _ in range(30):
        bots.act(assignment, actions)
        read, true = seen.env.step(actions), known.env.step(actions)
        for name in ("funds", "population", "tax", "happiness", "year", "balance", "land_value"):
            assert torch.equal(read.state_metrics[name], true.state_metrics[name]), name
        assert torch.equal(read.events["placed"], true.events["placed"])
        assert torch.equal(read.observations["map"], true.observations["map"])
        assert torch.equal(read.observations["mask"], true.observations["mask"])
    seen.env.close()
    known.env.close()


def test_a_bankrupt_city_ends_the_episode() -> None:
    world = World()
    world.city["over"][0] = Over.BANKRUPT
    result = world.do("wait")
    assert bool(result.terminated[0])
    assert not bool(result.truncated[0])
    assert world.event(result, "bankrupt") == 1.0
    assert world.event(result, "final_funds") == 10_000.0
    assert world.city["over"][0] == Over.PLAYING
    world.env.close()


def test_waiting_lets_ten_days_pass_and_a_setting_changes_that() -> None:
    world = World(wait_s=0.5)
    world.do("wait")
    assert world.city["day"][0] == 5
    assert world.env.spec.rate_hz == 2.0
    world.env.close()


def test_sensible_play_wins() -> None:
    settings = {"actions": ["build", "street", "bulldoze", "tax"], "closes": True, "steps": 120}
    people = {}
    for name in ("random", "always-zone", "greedy"):
        world = World(2, {"hamlet": True}, flat=False, metrics="truth", **(settings | {"observe": ["readings"]}))
        bots, assignment = world.env.bots([name]), torch.zeros((2, 1), dtype=torch.int32)
        actions, total = torch.zeros((2, 1, 2), dtype=torch.int64), 0.0
        for _ in range(120):
            bots.act(assignment, actions)
            total = float(world.env.step(actions).state_metrics["population"].sum())
        people[name] = total
        world.env.close()
    assert people["greedy"] > 2 * people["always-zone"] > 0
    assert people["greedy"] > 3 * people["random"] > 0


def test_the_camera_takes_a_strategy_to_its_cells() -> None:
    world = World(rules={"columns": 60, "rows": 50, "hamlet": True}, flat=False, metrics="truth", steps=200)
    bots, assignment = world.env.bots(["greedy"]), torch.zeros((1, 1), dtype=torch.int32)
    actions = torch.zeros((1, 1, 2), dtype=torch.int64)
    for _ in range(40):
        bots.act(assignment, actions)
        result = world.env.step(actions)
    assert float(result.state_metrics["population"][0, 0]) > 0.0
    world.env.close()
