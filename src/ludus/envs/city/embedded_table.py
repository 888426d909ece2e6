"""A table of embedded games: one batch of cities, read through their pictures or, if asked for, by their state."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvRequest, check_snapshot
from ludus.envs.city.catalogue import Catalogue, embedded_catalogue
from ludus.envs.city.config import CityConfig
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Frame, Gesture, Wait
from ludus.envs.city.embedded_look import EmbeddedLook
from ludus.envs.city.game.rules import Over
from ludus.envs.city.gestures import CLEAR
from ludus.envs.city.interface.demand import BARS
from ludus.envs.city.interface.menus import MENUS
from ludus.envs.city.interface.theme import FIELDS
from ludus.envs.city.perception.embedded import KINDS
from ludus.envs.city.table import CONFIRMED, NOT_JUDGED, REFUSED, CityTable, FieldKind, Pictures, Sight

WAIT_S = 1.0  # on the game's clock: ten days
_FUNDS = FIELDS.index("funds")
EMBEDDED_FIELDS = tuple(FieldKind(name, KINDS.get(name, "percent")) for name in (*FIELDS, *BARS))


class EmbeddedTable(CityTable):
    """Embedded games, read through their pictures.

    Attributes:
        games: The games themselves.
    """

    def __init__(self, config: CityConfig, request: EnvRequest) -> None:
        self.num_games, self._config = request.num_games, config
        self.games = CityGames(
            request.num_games,
            rules=config.rules,
            display=config.display,
            seed=request.seed,
            first_game=request.first_game,
        )
        self.fields, self.menus = EMBEDDED_FIELDS, len(MENUS)
        self.catalogue = self._make_catalogue()
        self._looks = self._make_looks(Path(config.learned) if config.learned is not None else None)
        self._wait = (Wait(config.wait_s or WAIT_S),)
        pictures = Pictures(
            config.frame if "frame" in config.observe else None, config.cell_pixels if "map" in config.observe else 0
        )
        self.sight = Sight(self.num_games, len(self.fields), self.catalogue, pictures)
        self._grain = np.zeros(self.num_games)  # of the funds that were read last
        self._words: list[NDArray[np.uint32] | None] = [None] * self.num_games

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Begins new cities; see `CityTable.begin`."""
        if seed is not None:
            self.games.reset(seed)
        else:
            self.games.restart(None if games is None else torch.from_numpy(games))
        chosen = np.ones(self.num_games, np.bool_) if games is None else games
        sight = self.sight
        sight.age[chosen] = 0
        sight.placed[chosen] = NOT_JUDGED
        for counted in (sight.discovered, sight.trouble, sight.recovered, sight.elements):
            counted[chosen] = 0
        sight.changed[chosen] = False
        self._see(np.flatnonzero(chosen).tolist())
        sight.grow_older(chosen)
        return sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carries out decisions; see `CityTable.play`."""
        games, sight = self.games, self.sight
        for game, (kind, cell) in enumerate(decisions.tolist()):
            games.act(game, self._gestures(game, kind, cell))
        self._confirm(decisions[:, 0])
        for game in range(self.num_games):
            games.act(game, self._wait)
        games.advance()
        self._see(range(self.num_games))
        sight.grow_older()
        return sight

    def picture(self, game: int) -> Frame:
        """Returns a copy of the present picture of a game."""
        return self.games.capture(game).copy()

    def close(self) -> None:
        """Ends the games; may be called twice."""
        self.games.close()

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later decisions do not touch."""
        return {**self.games.snapshot(), **{name: tensor.clone() for name, tensor in self._remembered().items()}}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Sight:
        """Takes the state of a snapshot; raises SnapshotError if it does not fit."""
        remembered = self._remembered()
        given = {name: tensor for name, tensor in snapshot.items() if name in remembered}
        check_snapshot(given, remembered, "the table of embedded games")
        self.games.restore({name: tensor for name, tensor in snapshot.items() if name not in remembered})
        self._see(range(self.num_games))
        for name, tensor in remembered.items():
            tensor.copy_(given[name])
        return self.sight

    def _remembered(self) -> dict[str, Tensor]:
        """What a sight cannot be made of by looking again, as tensors that share its memory."""
        sight = self.sight
        arrays = {"age": sight.age, "placed": sight.placed, "elements": sight.elements}
        return {f"sight_{name}": torch.from_numpy(array) for name, array in arrays.items()}

    # --- doing ---

    def _gestures(self, game: int, kind: int, cell: int) -> Sequence[Gesture]:
        gestures = self._looks[game].gestures.of(kind, cell)
        sight = self.sight
        is_covered = sight.dialog[game] or sight.window[game] or sight.menu[game] >= 0
        return (*CLEAR, *gestures) if is_covered and self._config.closes and kind else gestures

    def _confirm(self, kinds: NDArray[np.int64]) -> None:
        """Judges placements by the funds: they must have fallen by what such a thing can cost."""
        sight, catalogue = self.sight, self.catalogue
        sight.placed[:] = NOT_JUDGED
        for game in np.flatnonzero(catalogue.is_placement[kinds]).tolist():
            if self._config.metrics == "truth":
                funds, is_readable, grain = float(self.games.simulation.city["funds"][game]), True, 0.0
            else:
                pixels, words = self._paint(game)
                funds, is_readable, _, grain = self._looks[game].reader.read_one("funds", pixels, words)
            if is_readable and sight.readable[game, _FUNDS]:
                fall = float(sight.values[game, _FUNDS]) - funds
                kind, grain = int(kinds[game]), max(grain, float(self._grain[game]))
                sight.placed[game] = judge(
                    fall, grain, float(catalogue.least_cost[kind]), float(catalogue.most_cost[kind])
                )

    # --- seeing ---

    def _see(self, chosen: Iterable[int]) -> None:
        """Reads the pictures of the chosen games."""
        sight, config = self.sight, self._config
        is_over = self.games.simulation.city["over"]
        sight.over[:] = is_over != Over.PLAYING
        sight.bankrupt[:] = is_over == Over.BANKRUPT
        wants_pictures = sight.map.size > 0 or sight.frame.size > 0
        for game in chosen:
            if config.metrics == "truth":
                self._know(game)
            if config.metrics == "screen" or wants_pictures:
                pixels, words = self._paint(game)
                self._shrink(game, pixels)
                if config.metrics == "screen":
                    self._read(game, pixels, words)

    def _read(self, game: int, pixels: NDArray[np.uint8], words: NDArray[np.uint32]) -> None:
        sight, look = self.sight, self._looks[game]
        values, readable, confidence, grains = zip(*look.reader.read(pixels, words), strict=True)
        sight.values[game], sight.readable[game], sight.confidence[game] = values, readable, confidence
        self._grain[game] = grains[_FUNDS]
        sight.menu[game], sight.dialog[game], sight.window[game] = look.covers.look(words)

    def _know(self, game: int) -> None:
        """Takes figures from the game's state instead of its picture."""
        sight, interface = self.sight, self.games.interfaces[game]
        values = interface.figures.values()
        days = interface.figures.date().days
        row = [float(days) if name == "date" else float(values[name]) for name in FIELDS]  # type: ignore[arg-type]
        sight.values[game] = (*row, *interface.figures.demands())
        sight.readable[game], sight.confidence[game] = True, 1.0
        state = interface.state
        sight.menu[game] = state.path[0] if state.path else -1
        sight.dialog[game], sight.window[game] = bool(state.dialogs), bool(state.window)

    def _paint(self, game: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Returns the present picture of a game, as bytes and as one number for each pixel."""
        pixels = self.games.pixels(game)
        words = self._words[game]
        if words is None:
            words = self._words[game] = pixels.view("<u4")[..., 0]
        return pixels, words

    def _shrink(self, game: int, pixels: NDArray[np.uint8]) -> None:
        sight, look = self.sight, self._looks[game]
        if sight.map.size:
            look.shrink_map(pixels, sight.map[game])
        if sight.frame.size:
            look.shrink_frame(pixels, sight.frame[game])

    # --- making ---

    def _make_catalogue(self) -> Catalogue:
        layouts = [
            self.games.layout(game).view for game in range(min(self.num_games, len(self._config.display.themes)))
        ]
        sizes = {(view.columns, view.rows) for view in layouts}
        if len(sizes) > 1:
            raise ConfigError(
                f"the themes {', '.join(self._config.display.themes)} show different parts of the map: "
                f"{', '.join(f'{columns}x{rows} cells' for columns, rows in sorted(sizes))}; "
                "make the map smaller (rules.columns, rules.rows) or the picture larger (display.width, display.height)"
            )
        return embedded_catalogue(self._config.rules, layouts[0], self._config.actions)

    def _make_looks(self, folder: Path | None) -> list[EmbeddedLook]:
        looks: dict[str, EmbeddedLook] = {}
        for game, interface in enumerate(self.games.interfaces):
            if interface.theme.name not in looks:
                looks[interface.theme.name] = EmbeddedLook(self.games, game, self.catalogue, folder)
        return [looks[interface.theme.name] for interface in self.games.interfaces]


def judge(fall: float, grain: float, least: float, most: float) -> int:
    """Says whether funds that fell show that something was placed.

    Args:
        fall: By how much the funds fell, as they were read.
        grain: By how much a reading of them can be off.
        least: Least that it costs.
        most: Most that it costs.
    """
    if least <= fall <= most or (0.0 < fall <= most + grain and grain > 0.0):
        return CONFIRMED
    return NOT_JUDGED if fall == 0.0 and least < grain else REFUSED
