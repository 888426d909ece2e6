"""A table of embedded games: one batch of cities, read through their pictures or, if asked for, by their state."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvRequest, check_snapshot
from ludus.envs.city.advice import Advice, Advisers, Question
from ludus.envs.city.catalogue import Catalogue, embedded_catalogue
from ludus.envs.city.config import CityConfig
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Frame, Gesture, Point, Wait
from ludus.envs.city.embedded_look import EmbeddedLook
from ludus.envs.city.explorer import Explorer
from ludus.envs.city.game.rules import MONTH_DAYS, Over
from ludus.envs.city.gestures import CLEAR, FUNDED, FUNDING_LEVELS, funding_kind
from ludus.envs.city.interface.demand import BARS
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.menus import MENUS
from ludus.envs.city.interface.theme import FIELDS
from ludus.envs.city.perception.embedded import KINDS
from ludus.envs.city.perception.look_reader import Said
from ludus.envs.city.table import CityTable, FieldKind, Pictures, Sight

WAIT_S = 1.0  # on the game's clock: ten days
EMBEDDED_FIELDS = tuple(FieldKind(name, KINDS.get(name, "percent")) for name in (*FIELDS, *BARS))
_DATE, _FUNDS = FIELDS.index("date"), FIELDS.index("funds")
_CHANGED_SHARE = 0.002  # of the pixels; a pointer that moves over the map changes less


class EmbeddedTable(CityTable):
    """Embedded games, read through their pictures.

    Attributes:
        games: The games themselves.
    """

    advises = True

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
        self.catalogue = table_catalogue(config, tuple(self.games.layouts.values()))
        self._advisers = Advisers(self.games, self.catalogue)
        self._looks = self._make_looks(Path(config.learned) if config.learned is not None else None)
        self._wait = (Wait(config.wait_s or WAIT_S),)
        self._reads = config.metrics == "screen"
        self.sight = Sight(self.num_games, len(self.fields), self.catalogue, Pictures.wanted_by(config))
        self._explorer = Explorer(self.num_games, config.menu_buffer, (config.display.width, config.display.height))
        self._turn = np.zeros(self.num_games, np.int64)  # decisions in the present city
        self._funding = np.zeros((self.num_games, len(FUNDED)), np.int64)  # levels that were asked for
        self._grain = np.zeros(self.num_games)  # of the funds that were read last
        self._words: list[NDArray[np.uint32] | None] = [None] * self.num_games
        self._done: list[Sequence[Gesture]] = [()] * self.num_games  # of the last decisions
        self._is_exploring = np.isin(np.arange(len(self.catalogue)), self.catalogue.exploratory)
        self._funding_kinds = {
            self.catalogue.number(f"{department.name.lower()}_{way}"): (number, department, step)
            for number, department in enumerate(FUNDED)
            for way, step in (("up", 1), ("down", -1))
            if f"{department.name.lower()}_{way}" in self.catalogue
        }

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Begins new cities; see `CityTable.begin`."""
        if seed is not None:
            self.games.reset(seed)
        else:
            self.games.restart(None if games is None else torch.from_numpy(games))
        chosen = np.ones(self.num_games, np.bool_) if games is None else games
        self._turn[chosen] = 0
        self._funding[chosen] = len(FUNDING_LEVELS) - 1
        self._explorer.forget(chosen)
        self.sight.forget(chosen)
        self._see(np.flatnonzero(chosen).tolist())
        self.sight.grow_older(chosen)
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carries out decisions; see `CityTable.play`."""
        games, sight, kinds = self.games, self.sight, decisions[:, 0]
        sight.forget_deeds()
        funds = sight.values[:, _FUNDS].copy(), sight.readable[:, _FUNDS].copy(), self._grain.copy()
        month = sight.values[:, _DATE] // MONTH_DAYS
        for game, (kind, cell) in enumerate(decisions.tolist()):
            if self._is_exploring[kind]:
                self._explore(game, kind, cell)
            else:
                games.act(game, self._gestures(game, kind, cell))
        if self._config.confirm:
            self._confirm(kinds)
        for game in range(self.num_games):
            games.act(game, self._wait)
        games.advance()
        self._turn += 1
        self._see(range(self.num_games))
        sight.grow_older()
        if not self._config.confirm:
            self._judge_later(kinds, *funds, sight.values[:, _DATE] // MONTH_DAYS == month)
        return sight

    def picture(self, game: int) -> Frame:
        """Returns a copy of the present picture of a game."""
        return self.games.capture(game).copy()

    def advise(self, questions: Sequence[Question]) -> list[Advice]:
        """Asks strategies, which see the truth, what they would do now."""
        return [self._advisers.advise(question) for question in questions]

    def done(self, game: int) -> Sequence[Gesture]:
        """Returns the gestures of a game's last decision."""
        return self._done[game]

    def close(self) -> None:
        """Ends the games; may be called twice."""
        self.games.close()

    # --- keeping ---

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
        np.clip(self._funding, 0, len(FUNDING_LEVELS) - 1, out=self._funding)
        return self.sight

    def _remembered(self) -> dict[str, Tensor]:
        """What cannot be made of the games by looking again, as tensors that share its memory."""
        sight = self.sight
        arrays = {"age": sight.age, "placed": sight.placed, "elements": sight.elements}
        arrays |= {"turn": self._turn, "funding": self._funding}
        mine = {f"table_{name}": torch.from_numpy(array) for name, array in arrays.items()}
        return mine | {f"explorer_{name}": tensor for name, tensor in self._explorer.state().items()}

    # --- doing ---

    def _gestures(self, game: int, kind: int, cell: int, target: Point | None = None) -> Sequence[Gesture]:
        gestures = self._looks[game].gestures
        done = self._fund(game, kind) if kind in self._funding_kinds else gestures.of(kind, cell, target)
        sight = self.sight
        is_covered = sight.dialog[game] or sight.window[game] or sight.menu[game] >= 0
        if self._config.closes and is_covered and kind not in self.catalogue.exploratory:
            done = (*CLEAR, *done)
        self._done[game] = done
        return done

    def _fund(self, game: int, kind: int) -> Sequence[Gesture]:
        """Asks for the next level of funding; the menu shows no more than the level that is asked for."""
        number, department, step = self._funding_kinds[kind]
        level = min(max(int(self._funding[game, number]) + step, 0), len(FUNDING_LEVELS) - 1)
        self._funding[game, number] = level
        return self._looks[game].gestures.places.fixed[funding_kind(department, level)]

    def _explore(self, game: int, kind: int, cell: int) -> None:
        """Does something for the sake of what it shows, and notes what it has shown."""
        look, sight, name = self._looks[game], self.sight, self.catalogue.kinds[kind].name
        before = self._paint(game)[1].copy()
        target = None
        if name == "explore_menu":
            target = self._explorer.next_in_menus(
                game, look.gestures.places.headings, is_open=bool(sight.menu[game] >= 0)
            )
        elif name == "click_element":
            simulation = self.games.simulation
            keys = simulation.seed, simulation.first_game + game, int(simulation.city["episode"][game])
            target = self._explorer.any_element(game, *keys, int(self._turn[game]))
        self.games.act(game, self._gestures(game, kind, cell, target))
        pixels, words = self._paint(game)
        sight.changed[game] = np.count_nonzero(words != before) > _CHANGED_SHARE * words.size
        is_looking = name == "observe"
        if is_looking or (sight.changed[game] and look.covers.look(words).is_any):
            points = look.scan(pixels, words, None if is_looking else before)
            sight.discovered[game] = self._explorer.note(game, points)
            sight.elements[game] = self._explorer.count(game)

    def _confirm(self, kinds: NDArray[np.int64]) -> None:
        """Judges placements by the funds, before time passes."""
        sight = self.sight
        for game in np.flatnonzero(self.catalogue.is_placement[kinds]).tolist():
            if self._reads:
                funds, is_readable, _, grain = self._looks[game].reader.read_one("funds", *self._paint(game))
            else:
                funds, is_readable, grain = float(self.games.simulation.city["funds"][game]), True, 0.0
            if is_readable and sight.readable[game, _FUNDS]:
                fall, grain = float(sight.values[game, _FUNDS]) - funds, max(grain, float(self._grain[game]))
                sight.placed[game] = self.catalogue.kinds[int(kinds[game])].judge(fall, grain)

    def _judge_later(
        self,
        kinds: NDArray[np.int64],
        funds: NDArray[np.float64],
        was_readable: NDArray[np.bool_],
        grains: NDArray[np.float64],
        same_month: NDArray[np.bool_],
    ) -> None:
        """Judges placements by the funds after time has passed, unless a month ended: then other money was moved."""
        sight = self.sight
        judged = self.catalogue.is_placement[kinds] & same_month & was_readable
        judged &= sight.readable[:, _FUNDS] & sight.readable[:, _DATE]
        for game in np.flatnonzero(judged).tolist():
            fall, grain = float(funds[game] - sight.values[game, _FUNDS]), float(max(grains[game], self._grain[game]))
            sight.placed[game] = self.catalogue.kinds[int(kinds[game])].judge(fall, grain)

    # --- seeing ---

    def _see(self, chosen: Sequence[int]) -> None:
        """Reads the pictures of the chosen games."""
        sight = self.sight
        is_over = self.games.simulation.city["over"]
        sight.over[:] = is_over != Over.PLAYING
        sight.bankrupt[:] = is_over == Over.BANKRUPT
        wants_pictures = sight.map.size > 0 or sight.frame.size > 0
        if not self._reads and not wants_pictures:
            for game in chosen:
                self._know(game)
            return
        said: list[list[Said]] = []
        for game in chosen:
            pixels, words = self._paint(game)
            self._shrink(game, pixels)
            if self._reads:
                look = self._looks[game]
                said.append(look.reader.read(pixels, words))
                sight.menu[game], sight.dialog[game], sight.window[game] = look.covers.look(words)
            else:
                self._know(game)
        if said:
            numbers = np.array(said)  # for all games at once, since every small array costs a microsecond
            rows = np.array(chosen)
            sight.values[rows], sight.readable[rows] = numbers[..., 0], numbers[..., 1]
            sight.confidence[rows], self._grain[rows] = numbers[..., 2], numbers[:, _FUNDS, 3]

    def _know(self, game: int) -> None:
        """Takes figures from the game's state instead of its picture."""
        sight, interface = self.sight, self.games.interfaces[game]
        sight.values[game] = interface.figures.numbers()
        sight.readable[game], sight.confidence[game] = True, 1.0
        state = interface.state
        sight.menu[game] = state.path[0] if state.path else -1
        sight.dialog[game], sight.window[game] = bool(state.dialogs), bool(state.window) and not state.dialogs

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
            look.shrink_map(pixels, self.games.painter(game).take_damage(), sight.map[game])
        if sight.frame.size:
            look.shrink_frame(pixels, sight.frame[game])

    # --- making ---

    def _make_looks(self, folder: Path | None) -> list[EmbeddedLook]:
        looks: dict[str, EmbeddedLook] = {}
        for game, interface in enumerate(self.games.interfaces):
            if interface.theme.name not in looks:
                looks[interface.theme.name] = EmbeddedLook(self.games, game, self.catalogue, folder)
        return [looks[interface.theme.name] for interface in self.games.interfaces]


def table_catalogue(config: CityConfig, layouts: Sequence[Layout]) -> Catalogue:
    """Returns what can be done in embedded games of some layouts.

    Raises:
        ConfigError: They show different parts of the map.
    """
    views = [layout.view for layout in layouts]
    sizes = sorted({(view.columns, view.rows) for view in views})
    if len(sizes) > 1:
        raise ConfigError(
            f"the themes {', '.join(config.display.themes)} show different parts of the map: "
            f"{', '.join(f'{columns}x{rows} cells' for columns, rows in sizes)}; make the map smaller "
            "(rules.columns, rules.rows) or the picture larger (display.width, display.height)"
        )
    return embedded_catalogue(config.rules, views[0], config.actions)
