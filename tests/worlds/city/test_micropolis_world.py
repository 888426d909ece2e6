"""city-v1 on the real Micropolis: what is built is confirmed by readings, which say what the game's prompt does."""

from collections.abc import Iterator

import pytest
import torch

from ludus.envs.base import EnvRequest
from ludus.worlds.city.drivers.micropolis import MicropolisTruth
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.profile_schema import GameProfile
from ludus.worlds.city.screen_backend import ScreenBackend

LAND = 47  # without water in the part of the map that is seen


@pytest.fixture(scope="module")
def env(micropolis: GameProfile) -> Iterator[CityEnv]:
    settings = {
        "game": micropolis.name,
        "cells": "lots",
        "actions": ["build", "tax"],
        "closes": True,
        "steps": 100,
        "lands": [LAND],
        "ocr": False,
    }
    with CityEnv(EnvRequest(1, config=settings)) as made:
        yield made


def decide(env: CityEnv, name: str, column: int = 0, row: int = 0) -> dict[str, float]:
    """Carries out a decision and returns what happened, what stands there, and how it was judged."""
    catalogue = env.backend.catalogue
    cell = row * catalogue.columns + column
    result = env.step(torch.tensor([[[catalogue.number(name), cell]]]))
    numbers = {**result.events, **result.state_metrics}
    return {key: float(value[0, 0]) for key, value in numbers.items()} | {"judged": float(env.backend.sight.placed[0])}


def test_a_city_grows_and_is_read_as_the_game_knows_it(env: CityEnv) -> None:
    assert isinstance(env.backend, ScreenBackend)
    driver = env.backend.games[0].driver
    truth = MicropolisTruth(driver)
    env.reset()
    assert env.backend.sight.readable.all()
    first = decide(env, "coal", 6, 3)
    assert (first["judged"], first["placed"]) == (1.0, 1.0)
    assert 3000 <= 20_000 - first["funds"] <= 3016
    again = decide(env, "homes", 6, 3)  # the power plant is there
    assert again["judged"] == 0.0
    assert again["refused"] == 1.0
    blocks = [("homes", 5, 3), ("works", 5, 2), ("homes", 6, 2), ("shops", 4, 3), ("homes", 4, 2), ("works", 7, 2)]
    judged = [decide(env, *block)["judged"] for block in blocks]
    assert set(judged) <= {1.0, -1.0}  # -1 where a year has passed meanwhile
    assert judged.count(1.0) >= 4
    for _ in range(30):
        last = decide(env, "wait")
        if last["population"] > 0.0:
            break
    assert last["population"] > 0.0
    assert last["population"] == float(truth.evaluation()["population"].replace(",", ""))
    assert last["funds"] == truth.number("Funds")
    assert float(last["year"]) == pytest.approx(truth.number("Year") + (truth.month() - 1) / 12, abs=1e-3)
    taxed = decide(env, "tax_up")
    assert taxed["tax"] == 8.0 == truth.number("TaxRate")


def test_the_plan_of_the_profile_builds_outwards_from_a_plant(env: CityEnv) -> None:
    env.reset()
    catalogue, seat = env.backend.catalogue, torch.zeros((1, 1), dtype=torch.int32)
    bot, actions, done = env.bots(("plan",)), torch.zeros((1, 1, 2), dtype=torch.int64), []
    for _ in range(4):
        bot.act(seat, actions)
        kind, cell = actions[0, 0].tolist()
        done.append((catalogue.names[kind], *divmod(cell, catalogue.columns)))
        env.step(actions)
        assert env.backend.sight.placed[0] in (1, -1)  # -1 where a year has passed meanwhile
    # 14 x 7 lots: the plant goes to column 0.42 * 13 = 5.46 of row 3 and takes the next one too; homes go to its right,
    # toward column 9.23, works to its left.
    assert done == [("coal", 3, 5), ("homes", 3, 7), ("works", 3, 4), ("homes", 3, 8)]
