"""What tests of real screens share: a toy game with its profile, and a skip that names what is not installed."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ludus.core.errors import GameNotFoundError
from ludus.worlds.city.drivers.launch import check_installed, clock_library
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def xvfb() -> None:
    if shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb, from the Debian package xvfb")


def installed(game: str) -> GameProfile:
    """The profile of a game; skips, with what is missing and its packages, where it cannot be played."""
    profile = load_profile(game)
    try:
        check_installed(profile)
    except GameNotFoundError as error:
        pytest.skip(str(error))
    return profile


@pytest.fixture(scope="session")
def micropolis() -> GameProfile:
    return installed("micropolis")


@pytest.fixture(scope="session")
def lincity() -> GameProfile:
    return installed("lincity")


@pytest.fixture(scope="session")
def opencity() -> GameProfile:
    if clock_library() is None:
        pytest.skip("OpenCity needs a faster clock, from the Debian package libfaketime")
    return installed("opencity")


@pytest.fixture
def toy_path(tmp_path: Path) -> Path:
    """The file of the toy game's profile; the game itself is not needed to read it."""
    return toy_file(tmp_path)


@pytest.fixture
def toy_profile(request: pytest.FixtureRequest, tmp_path: Path) -> GameProfile:
    request.getfixturevalue("xvfb")
    return load_profile(str(toy_file(tmp_path)))


@pytest.fixture(scope="session")
def toy_pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first test that launches the toy game learns what it looks like, for all others."""
    return tmp_path_factory.mktemp("toy") / "pictures"


@pytest.fixture
def toy(toy_profile: GameProfile, toy_pictures: Path) -> Iterator[X11Driver]:
    """The toy game, launched."""
    with X11Driver(toy_profile, pictures=LearnedPictures(toy_pictures)) as driver:
        driver.launch()
        yield driver


def toy_file(folder: Path) -> Path:
    """Writes the toy game's profile for this machine and returns its file."""
    text = (HERE / "toy_city.yaml").read_text().replace("PYTHON", sys.executable)
    file = folder / "toy_city.yaml"
    file.write_text(text.replace("TOY_GAME", str(HERE / "toy_game.py")))
    return file
