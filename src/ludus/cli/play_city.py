"""`ludus play city`: a person builds a city in a window, with mouse and keys."""

from collections.abc import Mapping, Sequence

import typer

from ludus.cli.console import print_ok
from ludus.core.errors import ConfigError

CITY = "city"


def play_city(seed: int, words: Sequence[str], frames: int | None, unfit: Mapping[str, object]) -> None:
    """Plays the embedded game until its window is closed.

    Args:
        seed: Of the first city.
        words: Settings of the world as `key=value`, such as `display.width=1280`.
        frames: Pictures after which it ends; None never does.
        unfit: Options of `ludus play` that mean nothing here, with what was given for each.

    Raises:
        ConfigError: An option means nothing here, or the settings ask for another game.
    """
    from ludus.envs.city.config import EMBEDDED, CityConfig
    from ludus.envs.city.drivers.city_games import CityGames
    from ludus.envs.city.drivers.embedded_window import CityWindow
    from ludus.envs.settings import read_settings
    from ludus.evaluation.stage import stage_settings

    given = [name for name, value in unfit.items() if value]
    if given:
        raise ConfigError(f"{', '.join(given)} means nothing in city, which is played alone; leave it out")
    shown = {"display": {"width": 1280, "height": 720}}
    config = read_settings(CityConfig, stage_settings(CITY, shown, words=words), "city-v1")
    if config.game != EMBEDDED:
        raise ConfigError(f"game={config.game} has a window of its own; only {EMBEDDED} is played here")
    games = CityGames(1, rules=config.rules, display=config.display, seed=seed)
    typer.echo("  Choose a tool on the palette and click on the map; drag to build streets. Menus at the top.")
    typer.echo(f"  Escape closes what is open; close the window to quit; seed {seed}")
    try:
        with CityWindow(games) as window:
            window.run(frames=frames)
        shown_last = games.texts(0)
    finally:
        games.close()
    print_ok(f"{shown_last['date']}: {shown_last['population']} people, {shown_last['funds']}")
