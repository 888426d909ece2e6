"""Every example runs from its first line to its last, at a tiny budget, and says something."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import BaseModel

from ludus.envs import bots, world
from ludus.rewards import terms
from ludus.training.config import MonitoringConfig, TrainConfig
from ludus.worlds.brawl.config import BrawlConfig
from ludus.worlds.city import guide

pytestmark = pytest.mark.package

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
TINY_STEPS = "2048"
TINY_MATCH = 120  # frames of brawl in place of 2,700, which agents that have learned nothing mostly play out
DRAWN = "python_api"  # the example whose curves are drawn; a picture takes longer than a tiny run


@contextmanager
def defaults(*changes: tuple[type[BaseModel], str, object]) -> Iterator[None]:
    """Give settings other defaults; models come after those that they hold."""
    fields = [model.model_fields[name] for model, name, _ in changes]
    usual = [field.default for field in fields]
    for values in ([value for *_, value in changes], usual):
        for (model, *_), field, value in zip(changes, fields, values, strict=True):
            field.default = value
            model.model_rebuild(force=True)
        if values is not usual:
            yield


@pytest.fixture
def _alone(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, other defaults, and registries that forget what the example adds to them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LUDUS_EXAMPLE_STEPS", TINY_STEPS)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    known = {name: record for name, record in world.known_worlds().items() if record.name != "nudge"}
    monkeypatch.setattr(bots, "_REGISTERED", {})
    monkeypatch.setattr(guide, "_GUIDES", {})
    monkeypatch.setattr(world, "_WORLDS", known)  # a page of docs registers the same world
    is_drawn = script.stem == DRAWN
    with defaults(
        (BrawlConfig, "step_limit", TINY_MATCH),
        (MonitoringConfig, "curves", is_drawn),
        (TrainConfig, "monitoring", MonitoringConfig(curves=is_drawn)),
    ):
        yield
    terms._TERMS.get("brawl", {}).pop("high_ground", None)
    terms._TERMS.pop("nudge", None)
    for module in [name for name in sys.modules if name.partition(".")[0] == "nudge"]:
        del sys.modules[module]


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert script.stem != DRAWN or list(Path("runs").glob("*/training_curves.png"))


def test_every_example_is_on_the_page_and_in_cells() -> None:
    page = (EXAMPLES.parent / "docs" / "howto" / "python.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) >= 10
    for script in SCRIPTS:
        assert f"../../examples/{script.name}" in page
        assert script.read_text(encoding="utf-8").count("# %%") >= 2
