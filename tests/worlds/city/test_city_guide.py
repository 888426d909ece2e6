"""Guides: a scripted one, loaded as a plugin, is asked, seen, rewarded under its own name, and never obeyed."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file
from torch import Tensor

from ludus.core.errors import GuideError, UnknownNameError
from ludus.envs.base import EnvRequest
from ludus.envs.check import CheckOptions, check_env
from ludus.rewards.plugins import load_plugin
from ludus.training import train
from ludus.training.presets import load_run_config
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.guide import Advice, Scene, advised, guide

pytestmark = pytest.mark.train

PLUGIN = '''
"""A guide that saves money, and builds homes otherwise."""

from ludus.worlds.city.guide import Advice, Scene, guide


@guide("thrifty")
class Thrifty:
    def advise(self, scene: Scene) -> Advice:
        funds = scene.readings["funds"].value
        if funds is None or funds < 1_000:
            return Advice({"wait": 1.0}, hint="save money")
        return Advice({"residential": 2.0, "road": 1.0}, hint="build homes", confidence=0.5)
'''
GUIDE = {"name": "scripted", "every": 3}


class Scripted:
    """Says what a test wants, and keeps what it was shown."""

    def __init__(self) -> None:
        self.scenes: list[Scene] = []

    def advise(self, scene: Scene) -> Advice:
        self.scenes.append(scene)
        if FAULTS and len(self.scenes) in FAULTS:
            raise RuntimeError("it has lost its thread")
        return Advice({"residential": 4.0, "road": 1.0}, hint="build homes", confidence=0.5)


FAULTS: set[int] = set()
MADE: list[Scripted] = []


@guide("scripted")
def make_scripted() -> Scripted:
    MADE.append(Scripted())
    return MADE[-1]


@guide("broken")
class Broken:
    """Advises what there is not."""

    def advise(self, scene: Scene) -> Advice:
        assert scene.picture.size
        return Advice({"castle": 1.0})


def test_a_guide_sees_what_the_agent_sees() -> None:
    world = World(guide=GUIDE, flat=False)
    scene = MADE[-1].scenes[0]
    assert scene.picture.shape == (400, 640, 3)
    assert np.array_equal(scene.picture, world.env.render(0))
    assert scene.readings["funds"].value == float(world.city["funds"][0])
    assert scene.readings["funds"].confidence > 0.9
    assert [kind.name for kind in scene.kinds] == list(world.backend.catalogue.names)
    assert (scene.step, scene.last_kind) == (0, "")
    for _ in range(3):
        world.do("wait")
    assert (MADE[-1].scenes[1].step, MADE[-1].scenes[1].last_kind) == (3, "wait")
    assert len(MADE[-1].scenes) == 2  # asked every three decisions


def test_advice_is_seen_and_what_follows_it_is_an_event() -> None:
    world = World(guide=GUIDE)
    names = world.backend.catalogue.names
    advice = world.seen["advice"][0, 0]
    assert world.env.spec.observation_space["advice"].shape == (len(names) + 2,)
    assert advice[names.index("residential")] == 1.0
    assert advice[names.index("road")] == 0.25
    assert advice[-2:].tolist() == [0.5, 0.0]
    assert [world.env.spec.fields["advice"][place] for place in (names.index("road"), -2)] == [
        "advice.road",
        "advice.confidence",
    ]
    # The guide advises homes, but the player builds a road: nothing is built but that.
    result = world.do("road", 5, 5)
    assert world.event(result, "guided") == pytest.approx(0.25 * 0.5)
    assert (world.buildings > 0).sum() == 1
    assert world.event(world.do("wait"), "guided") == 0.0
    assert world.seen["advice"][0, 0, -1] == pytest.approx(2.0 / 3.0)


def test_without_a_guide_there_is_no_advice() -> None:
    world = World()
    assert "advice" not in world.seen
    assert "guided" not in world.env.spec.events
    unseen = World(guide=GUIDE | {"observed": False})
    assert "advice" not in unseen.seen
    assert "guided" in unseen.env.spec.events


def test_advice_is_kept_with_the_games() -> None:
    world = World(guide=GUIDE)
    world.do("wait")
    kept = world.env.snapshot()
    asked = len(MADE[-1].scenes)
    before = world.env.step(_wait(world)).observations["advice"].clone()
    world.env.restore(kept)
    assert len(MADE[-1].scenes) == asked
    assert np.array_equal(world.env.step(_wait(world)).observations["advice"], before)


def _wait(world: World) -> Tensor:
    return torch.zeros((world.env.num_envs, 1, 2), dtype=torch.int64)


def test_goals_and_a_guide_pass_the_conformance_kit() -> None:
    config = {
        "steps": 6,
        "metrics": "truth",
        "observe": ["readings", "menu"],
        "goals": {"population": 20, "traffic": 20},
        "guide": GUIDE,
    }

    def maker(num_envs: int, seed: int, first_game: int) -> CityEnv:
        return CityEnv(EnvRequest(num_envs, "cpu", seed, first_game, config))

    report = check_env(maker, CheckOptions(num_envs=2, steps=8))
    assert set(report.skipped) == {"mirror"}, str(report)


def test_a_guide_that_fails_later_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    world = World(guide=GUIDE | {"every": 1})
    FAULTS.add(2)
    try:
        with caplog.at_level(logging.WARNING):
            failed = world.do("wait")
    finally:
        FAULTS.clear()
    assert world.event(failed, "guide_failed") == 1.0
    assert not world.seen["advice"].any()
    assert "lost its thread" in caplog.text
    assert world.event(world.do("wait"), "guide_failed") == 0.0
    assert world.seen["advice"].any()


def test_a_guide_that_never_works_is_refused() -> None:
    with pytest.raises(GuideError, match=r"'broken'.*'castle'.*wait"):
        World(guide={"name": "broken"})
    with pytest.raises(UnknownNameError, match="--plugin"):
        World(guide={"name": "nobody"})


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (Advice({"road": -1.0}), "road.*-1.0"),
        (Advice({"road": float("nan")}), "road.*nan"),
        (Advice({"road": 1.0}, confidence=1.5), "confidence.*1.5"),
    ],
)
def test_advice_that_cannot_be_used(advice: Advice, said: str) -> None:
    catalogue = World().backend.catalogue
    with pytest.raises(GuideError, match=said):
        advised(advice, catalogue)
    assert not advised(Advice(hint="look around"), catalogue).any()


def test_a_run_with_a_guide_accounts_for_it(tmp_path: Path) -> None:
    file = tmp_path / "guides.py"
    file.write_text(PLUGIN)
    load_plugin(file)
    changes = [
        "world.settings.guide.name=thrifty",
        "world.settings.guide.every=5",
        "rewards.weights.guided=0.05",
        "world.num_envs=2",
        "total_env_steps=32",
        "evaluation=null",
        "ppo.n_minibatches=1",
    ]
    train(load_run_config("city", "debug", overrides=changes), tmp_path / "run")
    header, row = (tmp_path / "run" / "reward_breakdown.csv").read_text().splitlines()[:2]
    account = dict(zip(header.split(","), map(float, row.split(",")), strict=True))
    assert account["guided"] > 0.0
    assert account["total"] == sum(
        value for name, value in account.items() if name not in ("iteration", "env_steps", "total")
    )
