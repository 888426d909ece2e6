"""Pages to play in, and a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, open_browser

from ludus.share.page import share_agent


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests of a file; where there is none they are skipped."""
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="session")
def champion_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the strongest shipped fighter, with another one to choose."""
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    file = tmp_path_factory.mktemp("page") / "champion.html"
    return share_agent("champion", file, against=["rookie"]).file


@pytest.fixture(scope="session")
def rocket_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a shipped rocket agent."""
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    return share_agent("novice", tmp_path_factory.mktemp("page") / "novice.html").file
