"""`ludus play city`: the embedded game in a window, here SDL's dummy, and options that mean nothing to it."""

import pytest
from typer.testing import CliRunner

from ludus.cli.main import app
from ludus.core.errors import ConfigError


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return CliRunner()


def test_a_city_is_shown_and_its_last_figures_are_told(runner: CliRunner) -> None:
    settings = ["--set", "display.width=640", "--set", "display.height=400", "--set", "rules.threads=1"]
    shown = runner.invoke(app, ["play", "city", "--frames", "3", "--seed", "3", *settings])
    assert shown.exit_code == 0, shown.output
    assert "seed 3" in shown.output
    assert "0 people, $10,000" in shown.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--against", "greedy"], "--against means nothing in city"),
        (["--set", "game=micropolis"], "only embedded is played here"),
        (["--set", "display.width=100"], "greater than or equal to 560"),
    ],
)
def test_what_makes_no_sense_is_refused(runner: CliRunner, options: list[str], words: str) -> None:
    shown = runner.invoke(app, ["play", "city", *options])
    assert isinstance(shown.exception, ConfigError)
    assert words in str(shown.exception)
