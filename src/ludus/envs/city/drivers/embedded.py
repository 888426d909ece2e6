"""The driver of the embedded game: one game of a batch behind the same contract as a game on a real screen."""

from collections.abc import Sequence

from ludus.core.errors import GameLostError
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Driver, Frame, Gesture
from ludus.envs.city.interface.figures import date_of


class EmbeddedDriver(Driver):
    """Drives one game of a batch; time passes only in its own `Wait` gestures."""

    def __init__(self, games: CityGames, game: int = 0) -> None:
        """Takes game number `game` of a batch, which stays its maker's."""
        self.games, self.game = games, game
        self.width, self.height = games.display.width, games.display.height
        self._is_open = False

    def launch(self) -> None:
        """Begins to drive; the game is there already."""
        self._is_open = True

    def capture(self) -> Frame:
        """Returns the present picture, which the next call overwrites."""
        self._check_open()
        return self.games.capture(self.game)

    def act(self, gestures: Sequence[Gesture]) -> None:
        """Does the gestures; waits pass before it returns."""
        self._check_open()
        self.games.act(self.game, gestures)
        self.games.advance()

    def reset(self, seed: int) -> None:
        """Founds the city of a seed, the same in every game, and verifies that the screen shows its first day."""
        self._check_open()
        self.games.restart_one(self.game, seed)
        shown = self.games.texts(self.game)
        form = self.games.interfaces[self.game].theme.format
        expected = {"date": form.day(date_of(0)), "funds": form.money(self.games.simulation.rules.funds)}
        wrong = {name: shown[name] for name, text in expected.items() if shown[name] != text}
        if wrong:
            raise GameLostError(f"a new city should show {expected}, but shows {wrong}; make the games anew")

    def close(self) -> None:
        """Ends driving; the batch goes on."""
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise GameLostError("the embedded game is not open; call launch first")
