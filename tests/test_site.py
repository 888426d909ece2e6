"""The documentation builds as a site without a warning, refers to nothing outside it, and shows what the code says."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docs.generate import schema, worlds
from docs.generate.configuration import configuration_page
from pydantic import BaseModel, Field

pytestmark = pytest.mark.package

ROOT = Path(__file__).parents[1]
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src"}


class Fetched(HTMLParser):
    """Collects what a browser loads by itself; links that people follow are not among it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        address = named.get(FETCHED.get(tag, ""))
        if address and named.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(address)


def fetched_by(page: str) -> list[str]:
    parser = Fetched()
    parser.feed(page)
    parser.found += re.findall(r"""url\(\s*["']?([^"')\s]+)""", page) + re.findall(r"""@import\s+["']([^"']+)""", page)
    return parser.found


def is_external(address: str) -> bool:
    return address.startswith("//") or bool(re.match(r"(?!data:)[a-z]+:", address))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    outside = {
        str(file.relative_to(site)): found
        for file in [*pages, *site.rglob("*.css")]
        if (found := [a for a in fetched_by(file.read_text(encoding="utf-8")) if is_external(a)])
    }
    assert outside == {}


def test_what_counts_as_fetched_from_elsewhere() -> None:
    page = """<a href="https://paper.org"><script src="https://cdn.org/a.js"></script><img src="//x.org/b.png">
        <link rel="stylesheet" href="a.css"><style>@import url(https://fonts.org/c)</style>
        <link rel="next" href="d.html">"""
    assert [a for a in fetched_by(page) if is_external(a)] == [
        "https://cdn.org/a.js",
        "//x.org/b.png",
        "https://fonts.org/c",
    ]


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("reference/cli.html", ["ludus tournament", "--elimination", "ludus city audit"]),
        ("reference/configuration.html", ["gae_lambda", "memory_lr_scale", "snapshot_every_env_steps"]),
        ("reference/api.html", ["ludus.train", "ludus.BaseCallback", "on_rollout_end"]),
        ("reference/events.html", ["stun_hits", "Hits landed on an opponent that was still stunned"]),
        ("worlds/brawl.html", ["move_progress", "weapon_spawns", "edge_pressure"]),
        ("worlds/rocket.html", ["landing_time", "input_delay_ticks"]),
        ("examples/own_bot.html", ["register_bot"]),
    ],
)
def test_generated_pages_show_the_code(site: Path, page: str, texts: list[str]) -> None:
    text = (site / page).read_text(encoding="utf-8")
    plain = re.sub(r"<[^>]+>", "", text)
    assert [wanted for wanted in texts if wanted not in plain] == []
    assert "generated:" not in text


def test_shipped_agents_can_be_played_in_the_site(site: Path) -> None:
    guide = (site / "howto" / "share.html").read_text(encoding="utf-8")
    frames = [address for address in fetched_by(guide) if "/live/" in address]
    assert frames == ["../live/champion.html", "../live/walker.html"]
    for address in frames:
        page = (site / "howto" / address).read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert "Content-Security-Policy" in page


class Inner(BaseModel):
    """A section.

    Attributes:
        rate: How fast.
            On two lines.
    """

    rate: float = Field(default=0.5, ge=0.0, lt=1.0)


class Outer(BaseModel):
    """A model.

    Attributes:
        kind: Which one.
        inner: The section.
    """

    kind: str | None = None
    inner: Inner = Inner()
    width: int = Field(default=20_000, ge=1, le=10**9)  # of a layer


def test_a_table_of_settings() -> None:
    assert schema.settings_table(Outer).splitlines()[2:] == [
        "| `kind` | Which one. | str or null | `null` |  |",
        "| `inner` | The section. | section |  |  |",
        "| `width` | Of a layer. | int | `20_000` | ≥ 1 |",
    ]
    assert schema.settings_table(Inner).splitlines()[2] == (
        "| `rate` | How fast. On two lines. | float | `0.5` | ≥ 0, < 1 |"
    )
    assert list(schema.sections(Outer)) == [("inner", Inner)]
    assert "| [section](#here) |" in schema.settings_table(Outer, link=lambda name: "#here" if name == "inner" else "")


def test_a_setting_without_a_meaning_fails_the_build() -> None:
    class Silent(BaseModel):
        """Says nothing about its field."""

        depth: int = 1

    with pytest.raises(schema.MissingMeaningError, match="depth"):
        schema.settings_table(Silent)


def test_the_configuration_reference_has_schedules_and_algorithms() -> None:
    page = configuration_page()
    assert "| `clip_range` | Clip range of the probability ratio. | float or schedule | `0.2` |" in page
    assert "removes a term. | mapping of float or points | `{}` |" in page
    assert "## `td3` { #td3 }" in page
    assert "None" not in page


def test_an_observation_table() -> None:
    rows = worlds.observation("rocket-compact").splitlines()
    assert rows[2] == "| 0 | self | `x` | -1 ... 1 | position of the own car / 4096 uu |"
    assert "| 31\u201133 | ball | `vx`, `vy`, `vz` | -2 ... 2 | velocity / 3000 uu/s |" in rows
    assert not [row for row in rows if "teammate_1" in row]
    assert "| 24\u201136 | self | `state_standing` ... `state_ko` | 0 ... 1 | one-hot: the current state |" in (
        worlds.observation("brawl").splitlines()
    )


@pytest.mark.parametrize(
    ("known", "fault"),
    [({"wins": "Won."}, "no meaning for duel.events.draws"), ({"*": "Any.", "goals": "No."}, "no events named goals")],
)
def test_meanings_and_names_must_agree(known: dict[str, str], fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "_meanings", lambda: {"duel": {"events": known}})
    with pytest.raises(worlds.MeaningError, match=fault):
        worlds._named_table("event", "duel", "events", ("wins", "draws"))
