"""City's display and window play: the screen with the agent's pointer, readings and decisions, interpolated."""

from collections.abc import Mapping, Sequence

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.display import Display, Painter
from ludus.worlds.city.env import CityEnv

DECISION_S = 0.6  # for which a decision is shown, however long it takes in the game


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draw the first game; see `ludus.envs.display.PainterMaker`."""
    from ludus.worlds.city.demo import CityPainter  # pygame is optional

    if not isinstance(env, CityEnv):
        raise UnsupportedError(f"this is the display of city, not of {env.spec.id}")
    if debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    return CityPainter(env, names)


def play(*, seed: int, overrides: Sequence[str], frames: int | None, options: Mapping[str, object]) -> None:
    """Play the embedded game with mouse and keys; see `ludus.envs.display.Play`."""
    from ludus.cli.console import echo, print_ok
    from ludus.envs.settings import read_settings
    from ludus.evaluation.display import display_settings
    from ludus.worlds.city.config import EMBEDDED, CityConfig
    from ludus.worlds.city.drivers.city_games import CityGames
    from ludus.worlds.city.drivers.embedded_window import CityWindow

    given = [name for name, value in options.items() if value]
    if given:
        raise ConfigError(f"{', '.join(given)} means nothing in city, which is played alone; leave it out")
    shown = {"display": {"width": 1280, "height": 720}}
    config = read_settings(CityConfig, display_settings("city", shown, words=overrides), "city-v1")
    if config.game != EMBEDDED:
        raise ConfigError(f"game={config.game} has its own window; only {EMBEDDED} is played here")
    games = CityGames(1, rules=config.rules, display=config.display, seed=seed)
    echo("  Choose a tool on the palette and click on the map; drag to build streets. Menus at the top.")
    echo(f"  Escape closes what is open; close the window to quit; seed {seed}")
    try:
        with CityWindow(games) as window:
            window.run(frames=frames)
        shown_last = games.texts(0)
    finally:
        games.close()
    print_ok(f"{shown_last['date']}: {shown_last['population']} people, {shown_last['funds']}")


DISPLAY = Display(painter=make_painter, bots=("balanced",), is_smooth=True, step_s=DECISION_S, play=play)
