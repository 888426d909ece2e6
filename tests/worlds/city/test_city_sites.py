"""Sites by hand: where something was tried, what was done, what the mask allows then, and a profile's plan."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.worlds.city.city_world import World

from ludus.core.errors import ConfigError, ConfigFileError, UnknownNameError
from ludus.worlds.city.actions import CONFIRMED, NOT_JUDGED, REFUSED, ActionKind, Catalogue, profile_catalogue
from ludus.worlds.city.backend import Sight
from ludus.worlds.city.profile import PROFILES, load_profile
from ludus.worlds.city.profile_schema import Plan
from ludus.worlds.city.tracker import Held, Sites, Turn

PLANT, HOMES, BULLDOZE = 1, 2, 3
ALL = np.ones(2, np.bool_)


def sites() -> Sites:
    kinds = [
        ActionKind("wait", "wait"),
        ActionKind("coal", "build", True, 3000, 3016, columns=2),
        ActionKind("homes", "build", True, 135, 147),
        ActionKind("bulldoze", "bulldoze", True, 1, 1),
    ]
    made = Sites(Catalogue(kinds, 4, 3), 2)
    made.begin(turn((0, 0), (0, 0), 20_000), ALL)
    return made


def turn(
    kinds: tuple[int, int], cells: tuple[int, int], funds: float, placed: tuple[int, int] = (CONFIRMED, CONFIRMED)
) -> Turn:
    """Decisions of two games after which both read the same funds, and their outcomes."""
    held = Held(np.full(2, funds), ALL)
    sight = Sight.__new__(Sight)
    sight.placed = np.array(placed)
    return Turn(sight, lambda _: held, np.array(kinds), np.zeros(2, np.int64), np.array(cells))


def follow(made: Sites, *turns: Turn) -> None:
    for one in turns:
        made.follow(one, np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32))


def cells(flags: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(flags).tolist()


def test_a_placement_takes_its_cells_and_bulldozing_none() -> None:
    made = sites()
    follow(made, turn((PLANT, HOMES), (5, 11), 17_000), turn((0, BULLDOZE), (0, 0), 17_000))
    assert cells(made.tried[0]) == [5, 6]
    assert cells(made.tried[1]) == [11]
    follow(made, turn((PLANT, HOMES), (7, 10), 17_000))
    assert cells(made.tried[0]) == [5, 6, 7]  # 7 is the last of its row


def test_a_kind_is_done_when_the_funds_have_fallen_by_its_cost() -> None:
    made = sites()
    follow(made, turn((PLANT, HOMES), (5, 5), 17_500))  # 500 came in as taxes meanwhile
    assert made.done[0].tolist() == [False, True, False, False]
    assert made.done[1, HOMES]
    made = sites()
    follow(made, turn((PLANT, PLANT), (5, 5), 20_000))  # refused
    assert not made.done.any()


def test_all_placements_count_but_those_that_were_refused_and_bulldozing() -> None:
    made = sites()
    follow(made, turn((PLANT, HOMES), (5, 5), 17_000), turn((HOMES, HOMES), (8, 8), 17_000, (REFUSED, NOT_JUDGED)))
    follow(made, turn((0, BULLDOZE), (8, 8), 17_000))
    assert made.built.tolist() == [[0, 1, 0, 0], [0, 0, 2, 0]]
    made.begin(turn((0, 0), (0, 0), 20_000), np.array([False, True]))
    assert made.built.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]


def test_what_the_rules_allow() -> None:
    made = sites()
    assert made.allowed("beside").all()  # the first one may be anywhere
    follow(made, turn((PLANT, HOMES), (5, 0), 17_000))
    assert made.allowed("all").all()
    assert cells(made.allowed("free")[0]) == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]
    assert cells(made.allowed("beside")[0]) == [1, 2, 4, 7, 9, 10]
    assert cells(made.allowed("beside")[1]) == [1, 4]
    made.tried[:] = True
    assert made.allowed("free").all()  # something must be allowed


def test_a_new_city_forgets_and_only_its_own() -> None:
    made = sites()
    follow(made, turn((PLANT, PLANT), (5, 5), 17_000))
    made.begin(turn((0, 0), (0, 0), 20_000), np.array([True, False]))
    assert not made.tried[0].any()
    assert not made.done[0].any()
    assert cells(made.tried[1]) == [5, 6]


def test_the_mask_of_the_world_forbids_taken_cells_and_what_is_needed_once() -> None:
    world = World(actions=["build"], closes=True, sites="free", once=["coal"], workers=0)
    catalogue, kinds = world.backend.catalogue, len(world.backend.catalogue)
    assert bool(world.seen["mask"][0, 0].all())
    world.city["funds"][:] = 50_000
    world.do("wait")
    world.do("coal", 4, 3)
    world.do("road", 6, 3)
    mask = world.seen["mask"][0, 0]
    assert [catalogue.names[number] for number in torch.nonzero(~mask[:kinds]).flatten().tolist()] == ["coal"]
    taken = torch.nonzero(~mask[kinds:]).flatten().tolist()
    assert taken == [3 * catalogue.columns + 4, 3 * catalogue.columns + 6]
    before = world.env.snapshot()
    world.do("road", 7, 3)
    world.env.restore(before)
    assert torch.equal(world.env.mask()[0, 0], mask)
    world.env.close()


def test_a_plan_goes_on_with_what_was_built_and_repeats_what_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(actions=["build"], closes=True, sites="beside", workers=0)
    steps = {"first": ["coal"], "then": ["park", "residential", "park", "police"]}
    plan = {part: [{"build": name, "toward": (0.5, 0.5)} for name in names] for part, names in steps.items()}
    monkeypatch.setattr(world.backend, "plan", Plan.model_validate(plan))
    monkeypatch.setattr(world.backend, "advises", False)
    world.city["funds"][:] = 50_000
    world.do("wait")
    bot, seat = world.env.bots(("plan",)), torch.zeros((1, 1), dtype=torch.int32)

    def planned() -> str:
        actions = torch.zeros((1, 1, 2), dtype=torch.int64)
        bot.act(seat, actions)
        return world.backend.catalogue.names[int(actions[0, 0, 0])]

    assert planned() == "coal"
    world.do("coal", 4, 3)
    assert planned() == "park"
    world.do("park", 4, 3)  # refused: the plant is there
    assert planned() == "park"
    world.do("park", 5, 3)
    assert planned() == "residential"
    world.do("police", 6, 3)  # what is built counts, also if it was not planned
    assert planned() == "park"
    world.env.close()


def test_settings_that_fit_no_game_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="coaal"):
        World(actions=["build"], closes=True, once=["coaal"], workers=0)
    with pytest.raises(ConfigError, match="sites"):
        World(actions=["build"], closes=True, sites="some", workers=0)


def test_a_plant_covers_two_lots() -> None:
    lots = profile_catalogue(load_profile("micropolis"), ["build"], "lots", None)
    wide = {kind.name: kind.columns for kind in lots.kinds if kind.columns > 1}
    assert wide == dict.fromkeys(("stadium", "seaport", "coal", "nuclear", "airport"), 2)
    tiles = profile_catalogue(load_profile("micropolis"), ["build"], "tiles", None)
    assert {kind.columns for kind in tiles.kinds} == {1}


def test_a_plan_names_places_in_the_grid(tmp_path: Path) -> None:
    text = PROFILES.file("micropolis").read_text()
    file = tmp_path / "mine.yaml"
    file.write_text(text.replace("{build: works, toward: [0.28, 0.5]}", "{build: works, toward: [-1.0, 0.5]}"))
    with pytest.raises(ConfigFileError, match="toward"):
        load_profile(str(file))
