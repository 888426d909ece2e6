"""Readings, menu state and masks as numbers; what cannot be read is 0, and says so."""

import math

import numpy as np
import pytest
import torch
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.envs.bots import ObservationView, field_tree
from ludus.worlds.city.interface.menus import Dialog
from ludus.worlds.city.interface.theme import RESOLUTIONS, THEMES
from ludus.worlds.city.perception.embedded import Said, ThemeReader
from ludus.worlds.city.perception.pictures import opencv

pytestmark = pytest.mark.train

SHARES = {"turn": 0.7, "share.all": 0.5, "share.road": 0.4, "share.residential": 0.1}
OPEN_KINDS = {"wait", "explore_menu", "click_element", "random_click", "observe", "escape"}


def test_a_new_city_is_read_as_it_is() -> None:
    world = World()
    assert world.reading("funds") == {
        "values": pytest.approx(math.log1p(10_000) / 10.0),
        "readable": 1.0,
        "confidence": 1.0,
        "age": 0.0,
    }
    assert world.reading("tax")["values"] == pytest.approx(0.07)
    assert world.reading("population")["values"] == 0.0
    assert world.reading("date")["values"] == 0.0
    for _ in range(36):
        world.do("wait")
    assert world.reading("date")["values"] == pytest.approx(0.1)  # a year
    world.city["funds"][0] = -1_500
    world.city["demand_residential"][0] = 60.0
    world.do("tax_up")
    assert world.reading("funds")["values"] == pytest.approx(-math.log1p(1_500) / 10.0)
    world.env.close()


def test_bots_read_every_number_by_its_name() -> None:
    world = World()
    spec = world.env.spec
    assert {name: len(fields) for name, fields in spec.fields.items()} == {
        name: spec.observation_space[name].shape[0] for name in ("readings", "menu")
    }
    seen = ObservationView({name: tensor[:, 0] for name, tensor in world.seen.items()}, field_tree(spec))
    assert float(seen.values.funds) == pytest.approx(math.log1p(10_000) / 10.0)
    assert (float(seen.readable.tax), float(seen.none), float(seen.open.file)) == (1.0, 1.0, 0.0)
    world.do("explore_menu")
    assert (float(seen.none), float(seen.kind.explore_menu)) == (0.0, 1.0)
    opened = world.backend.menus[world.backend.sight.menu[0]]
    assert float(getattr(seen.open, opened)) == 1.0
    world.env.close()


def test_what_a_menu_covers_is_unreadable_and_its_last_value_is_carried() -> None:
    world = World()
    world.do("explore_menu")  # opens the first menu, which in this theme hangs over the HUD
    sight = world.backend.sight
    assert sight.menu[0] >= 0
    covered = [field.name for number, field in enumerate(world.backend.fields) if not sight.readable[0, number]]
    assert covered
    assert world.reading(covered[0]) == {"values": 0.0, "readable": 0.0, "confidence": 0.0, "age": pytest.approx(0.01)}
    result = world.do("wait")
    assert world.reading(covered[0])["age"] == pytest.approx(0.02)
    assert float(result.events["unreadable"][0, 0]) == pytest.approx(len(covered) / len(world.backend.fields))
    named = [name for name in covered if name in result.state_metrics]
    for name in named:
        assert float(result.state_metrics[f"{name}_readable"][0, 0]) == 0.0
    assert float(result.state_metrics["funds"][0, 0]) == 10_000.0
    world.do("escape")
    assert all(world.reading(name)["readable"] == 1.0 for name in covered)
    assert world.reading(covered[0])["age"] == 0.0
    world.env.close()


def test_money_decides_what_is_allowed() -> None:
    world = World()
    assert world.allowed() == set(world.backend.catalogue.names)
    world.city["funds"][0] = 55
    world.do("wait")
    dear = set(world.backend.catalogue.names) - world.allowed()
    assert dear == {
        "commercial", "industrial", "coal", "wind", "pump", "tower", "police", "fire", "clinic", "school", "park",
    }  # fmt: skip
    assert bool(world.seen["mask"][0, 0, len(world.backend.catalogue) :].all())
    world.env.close()


def test_unreadable_funds_forbid_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.city["funds"][0] = 0
    read = ThemeReader.read
    monkeypatch.setattr(ThemeReader, "read", lambda *given: [Said(0.0, False, 0.0, 0.0) for _ in read(*given)])
    world.do("wait")
    assert world.allowed() == set(world.backend.catalogue.names)
    world.env.close()


@pytest.mark.parametrize("closes", [False, True])
def test_a_dialog_allows_what_makes_sense_under_it(closes: bool) -> None:
    world = World(closes=closes)
    world.state.dialogs.append((int(Dialog.ABOUT), 0, -1))
    world.games.interfaces[0].serial += 1
    world.do("wait")
    assert world.backend.sight.dialog[0]
    assert world.allowed() == (set(world.backend.catalogue.names) if closes else OPEN_KINDS)
    result = world.do("road", 3, 3)
    assert world.event(result, "placed") == float(closes)
    world.do("escape")
    assert not world.backend.sight.dialog[0]
    assert world.allowed() == set(world.backend.catalogue.names)
    world.env.close()


def test_the_menu_entry_tells_what_is_open_and_what_was_done() -> None:
    world = World()
    blocks = world.env.spec.blocks["menu"]

    def part(name: str) -> list[float]:
        first, last = blocks[name]
        return [float(number) for number in world.seen["menu"][0, 0, first:last]]

    assert part("none") == [1.0]
    assert sum(part("kind")) == 0.0
    world.do("road", 3, 3)
    assert part("placed") == [1.0, 0.0, 0.0]
    assert part("kind").index(1.0) == world.backend.catalogue.number("road")
    world.do("menu.windows.city")
    assert (part("window"), part("dialog"), part("placed")) == ([1.0], [0.0], [0.0, 0.0, 1.0])
    world.do("escape")
    world.do("explore_menu")
    assert part("none") == [0.0]
    assert sum(part("open")) == 1.0
    assert part("elements")[0] == pytest.approx(int(world.backend.sight.elements[0]) / 50)
    world.env.close()


def built(world: World) -> dict[str, float]:
    """Return what the entry `built` of game 0 says, without zeros."""
    names, numbers = world.env.spec.fields["built"], world.seen["built"][0, 0].tolist()
    return {name: number for name, number in zip(names, numbers, strict=True) if number}


def test_the_built_entry_counts_what_was_placed_in_this_city() -> None:
    world = World(observe=["readings", "built"], actions=["build", "tax"], closes=True, steps=10, workers=0)
    kinds = world.env.spec.actions.names
    builds = [name for name in kinds if name not in ("wait", "tax_up", "tax_down")]
    first = {f"by_{cycle}.{name}.r0": 1.0 for cycle in (3, 4) for name in ("all", *builds)}
    assert built(world) == first
    world.do("road", 3, 3)
    world.do("road", 3, 3)  # refused: there is one
    world.do("tax_up")
    for column in (4, 5, 6):
        world.do("road", column, 3)
    world.do("residential", 3, 4)
    told = built(world)
    ones = {name for name, number in told.items() if number == 1.0}
    shares = {name: number for name, number in told.items() if name not in ones}
    assert shares == {name: pytest.approx(number) for name, number in SHARES.items()}  # of ten decisions
    others = {f"by_{cycle}.{name}.r0" for cycle in (3, 4) for name in builds if name not in ("road", "residential")}
    assert ones == others | {
        *("by_3.all.r2", "by_3.road.r1", "by_3.residential.r1"),  # 5, 4 and 1
        *("by_4.all.r1", "by_4.road.r0", "by_4.residential.r1"),
    }
    seen = ObservationView({name: tensor[:, 0] for name, tensor in world.seen.items()}, field_tree(world.env.spec))
    assert float(seen.by_4.all.r1) == 1.0
    before = world.env.snapshot()
    world.do("road", 7, 3)
    assert built(world) != told
    world.seen = world.env.restore(before)
    assert built(world) == told
    for _ in range(3):
        world.do("wait")  # the tenth decision ends the episode
    assert built(world) == first
    world.env.close()


def test_what_was_built_is_not_seen_unless_it_is_asked_for() -> None:
    world = World()
    assert set(world.env.spec.observation_space.spaces) == {"map", "readings", "menu", "mask"}
    world.env.close()


@pytest.mark.parametrize("theme", THEMES)
def test_the_map_is_the_picture_of_the_map_however_it_came_about(theme: str) -> None:
    width, height = RESOLUTIONS[0]
    world = World(
        2, {"hamlet": True}, flat=False, display={"themes": [theme]}, observe=["map", "frame", "menu"], steps=9
    )
    bots, assignment = world.env.bots(["random"]), torch.zeros((2, 1), dtype=torch.int32)
    actions = torch.zeros((2, 1, 2), dtype=torch.int64)
    cv2, view = opencv("comparing"), world.games.layout(0).view
    for _ in range(20):
        bots.act(assignment, actions)
        seen = world.env.step(actions).observations
        for game in range(2):
            picture = world.env.render(game)
            part = picture[view.box.top : view.box.bottom, view.box.left : view.box.right]
            whole = cv2.resize(part, (80, 56), interpolation=cv2.INTER_AREA)
            assert np.array_equal(whole, seen["map"][game, 0].numpy())
            frame = cv2.resize(picture, (84, 84), interpolation=cv2.INTER_AREA).astype(int)
            assert abs(frame - seen["frame"][game, 0].numpy()).mean() < 2.5  # of 255: it is halved first
    assert picture.shape == (height, width, 3)
    world.env.close()
