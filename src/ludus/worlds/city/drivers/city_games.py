"""Many embedded games side by side: one simulation, and for each game an interface and a picture."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, SnapshotError
from ludus.worlds.city.drivers.driver import Click, Drag, Frame, Gesture, Key, Move, Point, Scroll, Wait
from ludus.worlds.city.game.placement import CityEditor
from ludus.worlds.city.game.rules import CityRules, Over
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.layout import BARS, Layout, demand_places, make_layout
from ludus.worlds.city.interface.machine import Interface
from ludus.worlds.city.interface.state import STATE_WORDS, InterfaceState
from ludus.worlds.city.interface.theme import CityDisplay, theme_of
from ludus.worlds.city.painting.painter import Hud, Painter
from ludus.worlds.city.painting.typefaces import typeface_of
from ludus.worlds.city.perception.reading import Value

_MOST_DAYS = 36_000  # that a game may wait for at once: a hundred years


class CityGames:
    """A batch of embedded games.

    Gestures are done at once; time passes for all games together in `advance`, so that a step of the batch is: `act` on
    every game, with a `Wait` at the end, then `advance`, then `capture`. Pictures are drawn on demand.

    Attributes:
        editor: Builds and bulldozes in the cities directly, without an interface.
        layouts: The static layouts, by theme.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        rules: CityRules | None = None,
        display: CityDisplay | None = None,
        seed: int = 0,
        first_game: int = 0,
    ) -> None:
        self.num_envs, self.display = num_envs, display or CityDisplay()
        self.simulation = CitySimulation(rules or CityRules(), num_envs, seed=seed, first_game=first_game)
        self.editor = CityEditor(self.simulation)
        huds = {name: self._make_hud(name) for name in self.display.themes}
        self.layouts = {name: hud.layout for name, hud in huds.items()}
        names = [self.display.themes[(first_game + game) % len(self.display.themes)] for game in range(num_envs)]
        self._huds = [huds[name] for name in names]
        self.interfaces = [
            Interface(self.simulation, self.editor, game, hud.theme, hud.layout, hud.face)
            for game, hud in enumerate(self._huds)
        ]
        self._painters: list[Painter | None] = [None] * num_envs
        self._days: NDArray[np.int32] = np.zeros(num_envs, np.int32)
        self._has_looked = False

    # --- playing ---

    def act(self, game: int, gestures: Sequence[Gesture]) -> None:
        """Do gestures in one game; trailing waits pass in the next `advance`."""
        interface = self.interfaces[self._checked(game)]
        for gesture in gestures:
            if self._days[game] and not isinstance(gesture, Wait):
                self._let_pass(self._days * (np.arange(self.num_envs) == game))
            match gesture:
                case Wait():
                    self._days[game] = min(int(self._days[game]) + interface.days(gesture.seconds), _MOST_DAYS)
                case Click():
                    interface.click(*self._pixel(gesture.at), gesture.button)
                case Move():
                    interface.move(*self._pixel(gesture.at))
                case Drag():
                    interface.drag(self._pixel(gesture.start), self._pixel(gesture.end), gesture.button)
                case Key():
                    interface.key(gesture.name)
                case Scroll():
                    interface.scroll(*self._pixel(gesture.at), gesture.notches)
        self._has_looked = False

    def advance(self) -> None:
        """Let the pending waits of all games pass."""
        self._let_pass(self._days)

    def _let_pass(self, days: NDArray[np.int32]) -> None:
        """Let so many days of the pending waits pass, `(games,)`."""
        waited = np.flatnonzero(days).tolist()
        if waited:
            self.simulation.live(days)
            self._days -= days
            for game in waited:
                self.interfaces[game].take_notices()
            self._has_looked = False

    def restart(self, games: Tensor | None = None) -> None:
        """Found the next city in every game, or in those of `games`, `(games,)` bool."""
        self.simulation.found(games)
        self._begin(games)

    def reset(self, seed: int) -> None:
        """Found the first cities of a seed in all games."""
        self.simulation.reset(seed)
        self._begin(None)

    # --- observing ---

    def capture(self, game: int) -> Frame:
        """Return the picture of a game `(height, width, 3)`: a view that the next one overwrites."""
        return self.pixels(game)[..., :3]

    def pixels(self, game: int) -> NDArray[np.uint8]:
        """Return the picture `(height, width, 4)`, contiguous; the fourth byte of a pixel has no meaning."""
        painter = self.painter(game)
        if not self._has_looked:
            self.simulation.write_sprites()
            self._has_looked = True
        painter.paint()
        return painter.pixels

    def painter(self, game: int) -> Painter:
        """Return the painter of a game."""
        painter = self._painters[self._checked(game)]
        if painter is None:
            painter = Painter(self._huds[game], self.simulation, self.interfaces[game])
            self._painters[game] = painter
        return painter

    def layout(self, game: int) -> Layout:
        """Return the static layout."""
        return self.interfaces[self._checked(game)].layout

    def said(self, game: int) -> dict[str, Value]:
        """Return all values as displayed: less exact than the truth where k or M is written, and in bars."""
        interface = self.interfaces[self._checked(game)]
        places = demand_places(interface.layout.demand)
        demands: dict[str, Value] = dict(zip(BARS, map(places.shown, interface.figures.demands()), strict=True))
        return {**interface.figures.said(), **demands}

    def texts(self, game: int) -> dict[str, str]:
        """Return the text of every field as it is drawn."""
        return self.interfaces[self._checked(game)].texts()

    def over(self) -> NDArray[np.bool_]:
        """Return which games have ended, `(games,)`: bankrupt or abandoned."""
        ended: NDArray[np.bool_] = self.simulation.city["over"] != Over.PLAYING
        return ended

    # --- snapshots ---

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as a copy."""
        words = torch.tensor([interface.state.words() for interface in self.interfaces], dtype=torch.int32)
        waits = torch.from_numpy(self._days.copy())
        return {**self.simulation.snapshot(), "interface": words, "days": waits}

    def restore(self, snapshot: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `snapshot()`; raise SnapshotError if it does not fit."""
        words, waits = snapshot.get("interface"), snapshot.get("days")
        if words is None or waits is None or words.shape != (self.num_envs, STATE_WORDS) or len(waits) != len(words):
            raise SnapshotError(
                f"a snapshot of {self.num_envs} city games has 'days' and 'interface' "
                f"of shape ({self.num_envs}, {STATE_WORDS}); use what `snapshot` returned"
            )
        states = [InterfaceState.of_words(row, self.simulation.rules.cells) for row in words.tolist()]
        self.simulation.restore({name: t for name, t in snapshot.items() if name not in ("interface", "days")})
        self._days[:] = waits.clamp(0, _MOST_DAYS).numpy()
        for interface, state in zip(self.interfaces, states, strict=True):
            interface.restart(state)
        self._has_looked = False

    def close(self) -> None:
        """End the simulation's threads; may be called twice."""
        self.simulation.close()

    def _make_hud(self, name: str) -> Hud:
        theme = theme_of(name)
        face = typeface_of(theme.family, theme.size_for(self.display.height))
        return Hud(theme, embedded_layout(name, self.display, self.simulation.rules), face)

    def _begin(self, games: Tensor | None) -> None:
        for game in range(self.num_envs) if games is None else games.nonzero().flatten().tolist():
            self.interfaces[game].restart()
            self._days[game] = 0
        self._has_looked = False

    def _pixel(self, point: Point) -> tuple[int, int]:
        return point.pixel(self.display.width, self.display.height)

    def _checked(self, game: int) -> int:
        if not 0 <= game < self.num_envs:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {self.num_envs - 1}")
        return game


def embedded_layout(theme_name: str, display: CityDisplay, rules: CityRules) -> Layout:
    """Return the static layout of a theme."""
    theme = theme_of(theme_name)
    face = typeface_of(theme.family, theme.size_for(display.height))
    return make_layout(theme, (display.width, display.height), (rules.columns, rules.rows), face)
