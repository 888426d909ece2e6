"""Every example runs from its first line to its last, at a tiny budget, and says something."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ludus.envs import bots, world
from ludus.rewards import terms
from ludus.worlds.brawl.config import BrawlConfig

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
TINY_STEPS = "2048"
TINY_MATCH = 120  # frames of brawl in place of 2,700, which agents that have learned nothing mostly play out


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, and registries that forget what the example adds to them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LUDUS_EXAMPLE_STEPS", TINY_STEPS)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    known = {name: record for name, record in world.known_worlds().items() if record.name != "nudge"}
    monkeypatch.setattr(bots, "_REGISTERED", {})
    monkeypatch.setattr(world, "_WORLDS", known)  # a page of docs registers the same world
    limit = BrawlConfig.model_fields["step_limit"]
    usual, limit.default = limit.default, TINY_MATCH
    BrawlConfig.model_rebuild(force=True)
    yield
    limit.default = usual
    BrawlConfig.model_rebuild(force=True)
    terms._TERMS.get("brawl", {}).pop("high_ground", None)
    terms._TERMS.pop("nudge", None)
    for module in [name for name in sys.modules if name.partition(".")[0] == "nudge"]:
        del sys.modules[module]


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_every_example_is_on_the_page_and_in_cells() -> None:
    page = (EXAMPLES.parent / "docs" / "howto" / "python.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) >= 10
    for script in SCRIPTS:
        assert f"../../examples/{script.name}" in page
        assert script.read_text(encoding="utf-8").count("# %%") >= 2
