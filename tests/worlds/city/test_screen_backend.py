"""Real games behind city-v1: a toy game on real screens, disturbed and recovered, and what is judged of readings."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, GameLostError, GameNotFoundError, UnsupportedError
from ludus.envs.base import EnvRequest
from ludus.worlds.city.actions import CONFIRMED, NOT_JUDGED, REFUSED, profile_catalogue
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.explorer import MenuGraph
from ludus.worlds.city.perception.glyphs import GlyphBank
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.perception.reader import ScreenReader
from ludus.worlds.city.perception.reading import Date, Reading, Value
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.screen_backend import Look, Outcome, ScreenBackend, ScreenGame

pytestmark = pytest.mark.screen

MAGENTA = (255, 0, 255)  # what the toy game builds


@pytest.fixture
def settings(xvfb: None, toy_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:  # noqa: ARG001
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return {
        "game": str(toy_path),
        "actions": ["build", "menu"],
        "closes": True,
        "steps": 5,
        "wait_s": 0.05,
        "ocr": False,
        "lands": [3, 4],
    }


@pytest.fixture
def env(settings: dict[str, object]) -> Iterator[CityEnv]:
    with CityEnv(EnvRequest(2, config=settings)) as made:
        yield made


def table_of(env: CityEnv) -> ScreenBackend:
    assert isinstance(env.backend, ScreenBackend)
    return env.backend


def decide(env: CityEnv, name: str, cell: int = 0) -> torch.Tensor:
    """The same decision in both games."""
    return torch.tensor([[[env.backend.catalogue.number(name), cell]]] * 2)


def process(env: CityEnv, game: int) -> int:
    session = table_of(env).games[game].driver._session
    assert session is not None
    return session.pid


def test_games_play_side_by_side_on_screens_of_their_own(env: CityEnv) -> None:
    assert (env.spec.realtime, env.spec.snapshots, env.spec.max_envs) == (True, False, 16)
    assert env.backend.catalogue.names == ("wait", "first", "second", "menu.games.dialog")
    before = env.reset()["map"].clone()
    result = env.step(decide(env, "first", 15))  # third column of the second row
    after = result.observations["map"]
    side = env.config.cell_pixels
    cell = after[:, 0, side : 2 * side, 2 * side : 3 * side]
    assert (cell[:, 1, 1] == torch.tensor(MAGENTA, dtype=torch.uint8)).all()
    assert int((before != after).any(-1).sum()) <= 2 * side * side  # nothing else has changed
    drivers = [game.driver for game in table_of(env).games]
    assert [driver.seed for driver in drivers] == [3, 4]
    assert drivers[0].capture().shape == (240, 320, 3)
    assert float(result.events["trouble"].sum()) == 0.0
    with pytest.raises(UnsupportedError):
        env.snapshot()


def test_an_episode_ends_and_another_city_begins(env: CityEnv) -> None:
    env.reset()
    for number in range(5):
        result = env.step(decide(env, "second", number))
    assert result.truncated.tolist() == [True, True]
    assert [game.driver.seed for game in table_of(env).games] == [4, 3]
    pixels = result.observations["map"].flatten(0, 3)
    assert not (pixels == torch.tensor(MAGENTA, dtype=torch.uint8)).all(-1).any()


def test_a_killed_game_cuts_its_episode_off_and_the_other_goes_on(env: CityEnv) -> None:
    env.reset()
    env.step(decide(env, "first", 20))
    before = process(env, 0)
    os.kill(before, signal.SIGKILL)
    result = env.step(decide(env, "first", 30))
    assert result.truncated.tolist() == [True, False]
    assert result.terminated.tolist() == [False, False]
    assert result.events["trouble"][:, 0].tolist() == [1.0, 0.0]
    assert result.events["recovered"][:, 0].tolist() == [1.0, 0.0]
    assert process(env, 0) != before
    last = result.final_observations["map"][0, 0]
    assert (last == torch.tensor(MAGENTA, dtype=torch.uint8)).all(-1).any()  # what was seen before it was lost
    assert env.step(decide(env, "first", 40)).events["trouble"].sum() == 0.0
    (incident,) = table_of(env).games[0].driver.incidents
    assert incident.trouble.kind in ("process", "window")  # whichever is seen to be gone first


def test_an_unexpected_window_is_closed_and_the_city_goes_on(env: CityEnv) -> None:
    env.reset()
    table_of(env).games[1].driver.prompt.ask("odd")
    result = env.step(decide(env, "first", 20))
    assert not result.ended.any()
    assert result.events["trouble"][:, 0].tolist() == [0.0, 1.0]
    assert result.events["recovered"][:, 0].tolist() == [0.0, 1.0]
    assert table_of(env).games[1].driver.open_dialogs() == ()


def test_a_dialog_that_the_player_opened_is_no_trouble_and_is_closed_for_the_next_decision(env: CityEnv) -> None:
    env.reset()
    result = env.step(decide(env, "menu.games.dialog"))
    assert env.backend.sight.dialog.tolist() == [True, True]
    assert float(result.events["trouble"].sum()) == 0.0
    result = env.step(decide(env, "first", 20))
    assert env.backend.sight.dialog.tolist() == [False, False]
    assert float(result.events["trouble"].sum()) == 0.0


def test_exploring_finds_each_element_once(settings: dict[str, object]) -> None:
    settings |= {"actions": ["build", "explore"]}
    with CityEnv(EnvRequest(2, config=settings)) as env:
        env.reset()
        opened = env.step(decide(env, "explore_menu"))
        assert opened.events["changed"][:, 0].tolist() == [1.0, 1.0]
        found = env.step(decide(env, "observe")).events["discovered"].clone()
        again = env.step(decide(env, "observe"))
        assert (found > 0.0).all()
        assert float(again.events["discovered"].sum()) == 0.0
        assert again.events["changed"][:, 0].tolist() == [0.0, 0.0]  # the signs of finished pictures do not count


def test_nothing_is_left_when_games_are_closed(settings: dict[str, object]) -> None:
    with CityEnv(EnvRequest(1, config=settings)) as env:
        folder = table_of(env).games[0].driver._session.screen.folder  # type: ignore[union-attr]
        pid = process(env, 0)
    env.close()
    give_up = time.monotonic() + 60.0
    while folder.exists() and time.monotonic() < give_up:
        time.sleep(0.01)
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_game_that_is_not_installed_is_told_with_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(GameNotFoundError, match="apt-get install micropolis micropolis-data xvfb"):
        CityEnv(EnvRequest(1, config={"game": "micropolis"}))


def test_too_many_screens_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"17 .*16"):
        CityEnv(EnvRequest(17, config=settings))


# --- judging, by readings that are made up ---


def look(funds: float | None, date: Value | None, age_s: float = 0.0) -> Look:
    readings = {"funds": Reading("funds", funds, 1.0, age_s), "date": Reading("date", date, 1.0)}
    return Look(np.zeros((1, 1, 3), np.uint8), readings)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((200.0, Date(1900, 3)), (190.0, Date(1900, 5)), CONFIRMED),
        ((200.0, Date(1900, 3)), (200.0, Date(1900, 5)), REFUSED),
        ((200.0, Date(1900, 3)), (185.0, Date(1900, 5)), NOT_JUDGED),  # something else was paid too
        ((200.0, Date(1900, 3)), (290.0, Date(1900, 5)), NOT_JUDGED),  # taxes came in
        ((200.0, Date(1900, 11)), (190.0, Date(1901, 1)), NOT_JUDGED),
        ((200.0, None), (190.0, Date(1900, 5)), NOT_JUDGED),
        ((None, Date(1900, 3)), (190.0, Date(1900, 5)), NOT_JUDGED),
        ((200.0, 7.0), (190.0, 7.0), CONFIRMED),
        ((200.0, 7.0), (190.0, 8.0), NOT_JUDGED),
    ],
)
def test_placements_are_judged_within_a_year(
    toy_path: Path, tmp_path: Path, before: tuple[float | None, Value], after: tuple[float | None, Value], said: int
) -> None:
    profile = load_profile(str(toy_path)).model_copy(update={"accounts": "year"})
    catalogue = profile_catalogue(profile, ("build",), "tiles", None)
    reader = ScreenReader((), GlyphBank())
    driver, menus = X11Driver(profile, pictures=LearnedPictures(tmp_path)), MenuGraph(profile.width, profile.height)
    game = ScreenGame(driver, reader, catalogue, CityConfig(), menus, 0)
    game.look, outcome = look(*after), Outcome()
    game._judge(catalogue.number("first"), look(*before), outcome)
    assert outcome.placed == said


def test_old_readings_are_no_numbers() -> None:
    assert look(200.0, None).number("funds") == 200.0
    assert look(200.0, None, age_s=0.1).number("funds") is None
    assert look(200.0, None).number("tax") is None


@pytest.mark.parametrize(("funds", "seen"), [(190.0, "190.0"), (None, "None")])
def test_a_new_city_must_read_as_the_profile_says(
    toy_path: Path, monkeypatch: pytest.MonkeyPatch, funds: float | None, seen: str
) -> None:
    toy_path.write_text(toy_path.read_text() + "  expect: {funds: 200}\n")
    monkeypatch.setattr("ludus.worlds.city.screen_backend._PROOF_S", 0.0)
    backend = SimpleNamespace(profile=load_profile(str(toy_path)))
    game = SimpleNamespace(look=look(funds, None), see=lambda: None)
    with pytest.raises(GameLostError, match=rf"Toy City .*funds .*{seen}"):
        ScreenBackend._check_new_city(backend, game)  # type: ignore[arg-type]
    game.look = look(200.0, None)
    ScreenBackend._check_new_city(backend, game)  # type: ignore[arg-type]
