"""Tests of many cities at once: the same whatever the batch, the threads or a restart from a snapshot."""

import numpy as np
import pytest
import torch

from ludus.core.errors import SnapshotError
from ludus.worlds.city.game.placement import CityEditor
from ludus.worlds.city.game.rules import CityRules, Kind, Terrain, Tool
from ludus.worlds.city.game.simulation import CitySimulation


def simulate(games: int, *, first_game: int = 0, seed: int = 5, threads: int = 1, steps: int = 40) -> CitySimulation:
    """Cities in which the same things are built, depending on the index of the game."""
    simulation = CitySimulation(CityRules(threads=threads), games, seed=seed, first_game=first_game)
    play(simulation, 0, steps)
    return simulation


def play(simulation: CitySimulation, first: int, last: int) -> None:
    editor = CityEditor(simulation)
    for step in range(first, last):
        for game in range(simulation.num_envs):
            index = simulation.first_game + game
            tool = Tool(1 + (step + index) % 14)
            editor.do(game, tool, (7 * step + 3 * index) % 32, (5 * step + index) % 24)
        simulation.live(torch.full((simulation.num_envs,), 20, dtype=torch.int32))
        simulation.city["notice"][:] = 0


def test_a_batch_equals_single_cities() -> None:
    batch = simulate(3).snapshot()
    for game in range(3):
        single = simulate(1, first_game=game).snapshot()
        for name, tensor in single.items():
            if name != "seed":
                assert torch.equal(tensor[0], batch[name][game]), name


def test_threads_change_nothing() -> None:
    one, two = simulate(16, steps=6).snapshot(), simulate(16, threads=2, steps=6).snapshot()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_seeds_and_episodes_give_other_land() -> None:
    simulation = CitySimulation(CityRules(threads=1), 2, seed=1)
    first = simulation.cells.terrain.copy()
    assert (first[0] != first[1]).any()
    simulation.found()
    second = simulation.cells.terrain.copy()
    assert (first != second).any()
    simulation.reset(1)
    assert (simulation.cells.terrain == first).all()
    simulation.reset(2)
    assert (simulation.cells.terrain != first).any()


def test_only_chosen_games_are_founded_anew() -> None:
    simulation = simulate(3, steps=3)
    before = simulation.snapshot()
    simulation.found(torch.tensor([False, True, False]))
    after = simulation.snapshot()
    for name in ("cities", "kind", "terrain"):
        assert torch.equal(before[name][0], after[name][0])
        assert torch.equal(before[name][2], after[name][2])
    assert simulation.city["day"].tolist()[1] == 0
    assert simulation.city["episode"].tolist() == [0, 1, 0]


def test_a_restored_city_goes_on_as_if_nothing_had_happened() -> None:
    straight = simulate(2, steps=30).snapshot()
    first = simulate(2, steps=15)
    kept = first.snapshot()
    play(first, 15, 20)
    first.restore(kept)
    play(first, 15, 30)
    assert all(torch.equal(tensor, straight[name]) for name, tensor in first.snapshot().items())
    other = CitySimulation(CityRules(threads=1), 2, seed=123)
    other.restore(kept)
    play(other, 15, 30)
    assert all(torch.equal(tensor, straight[name]) for name, tensor in other.snapshot().items())


def test_a_snapshot_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"cities.*\(1, "):
        simulate(2, steps=1).restore(simulate(1, steps=1).snapshot())


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", 16), ("terrain", -1), ("road", 768), ("network", -2), ("amount", 49), ("air", float("nan"))],
)
def test_a_state_that_a_kernel_could_not_bear_is_refused(name: str, value: float) -> None:
    simulation = simulate(1, steps=2)
    broken = simulation.snapshot()
    broken[name][0, 5] = value
    with pytest.raises(SnapshotError, match=name):
        simulation.restore(broken)
    broken = simulation.snapshot()
    broken["road"][0, 5] = int((broken["network"][0] < 0).nonzero()[0])  # served by a cell that is no road
    with pytest.raises(SnapshotError, match="network"):
        simulation.restore(broken)


def test_land_can_be_built_on_and_water_is_near() -> None:
    simulation = CitySimulation(CityRules(threads=1), 128, seed=3)
    terrain = simulation.cells.terrain
    land = (terrain != Terrain.WATER).mean(1)
    assert land.min() >= 0.5
    assert ((terrain == Terrain.WATER).sum(1) >= 20).mean() > 0.9
    assert set(np.unique(terrain)) == {0, 1, 2, 3}


def test_a_hamlet_has_a_street_and_power() -> None:
    simulation = CitySimulation(CityRules(threads=1), 32, seed=3)
    assert ((simulation.cells.kind == Kind.ROAD).sum(1) == 8).all()
    assert ((simulation.cells.kind == Kind.WIND).sum(1) == 1).all()
    assert (simulation.city["power_supply"] == 60).all()
    bare = CitySimulation(CityRules(threads=1, hamlet=False), 2, seed=3)
    assert (bare.cells.kind == Kind.EMPTY).all()


@pytest.mark.parametrize(("columns", "rows"), [(12, 12), (20, 40), (64, 48)])
def test_maps_of_other_sizes_live(columns: int, rows: int) -> None:
    simulation = CitySimulation(CityRules(threads=1, columns=columns, rows=rows), 2)
    editor = CityEditor(simulation)
    for column in range(columns):
        editor.do(0, Tool.ROAD, column, rows // 2)
        editor.do(0, Tool.RESIDENTIAL, column, rows // 2 + 1)
    simulation.live(torch.tensor([100, 100], dtype=torch.int32))
    assert simulation.city["day"].tolist() == [100, 100]
    assert (simulation.cells.kind[0].reshape(rows, columns)[rows // 2] == Kind.ROAD).all()
