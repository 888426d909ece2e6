"""Game profiles: one YAML file says all that is to be known about a game, with places as fractions of its picture."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from ludus.config import Shelf, dump_yaml, read_config, read_layers
from ludus.core.errors import ActionError, UnknownNameError
from ludus.envs.city.drivers.driver import Click, Drag, Gesture, Key, Move, Point, Region, Scroll, Wait
from ludus.envs.city.perception.reading import Kind
from ludus.envs.city.profile_checks import check_profile
from ludus.envs.city.profile_file import Accounts, Input, Launch, ProfileFile, Step, ToolButton, Truth
from ludus.envs.city.profile_lots import Lots, make_lots

PROFILES = Shelf("ludus.envs.city", kind="profile")
_FILE_ENDINGS = (".yaml", ".yml")
_T = TypeVar("_T")
_U = TypeVar("_U")


@dataclass(frozen=True, slots=True)
class Ask:
    """A line for the game's prompt; `{seed}` stands for the city's seed, `{ticks}` for how long the game runs."""

    command: str


Deed: TypeAlias = Gesture | Ask  # what a profile's steps are made of


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """Something that can be read off the picture: see `ReadingField`."""

    kind: Kind
    region: Region
    prefix: str
    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: where it is chosen, what one use costs and costs at most, how many cells wide and high its work is."""

    at: Point
    cost: float
    most: float
    cells: int
    label: str


@dataclass(frozen=True, slots=True)
class Menu:
    """A menu: where it is opened, where its items are once it is open, and whether no action ever opens it."""

    at: Point
    items: Mapping[str, Point]
    closed: bool


@dataclass(frozen=True, slots=True)
class Slider:
    """A slider: see `SliderField`."""

    region: Region
    least: float
    most: float
    dialog: str | None

    def point(self, value: float) -> Point:
        """Returns where the slider stands for a value, clipped to its range."""
        share = min(max((value - self.least) / (self.most - self.least), 0.0), 1.0)
        return Point(self.region.left + share * (self.region.right - self.region.left), self.region.middle.y)


@dataclass(frozen=True, slots=True)
class Grid:
    """The map's part of the picture, in whole cells from its upper left corner."""

    region: Region
    columns: int
    rows: int
    cell_width: float
    cell_height: float

    def cell(self, column: int, row: int) -> Point:
        """Returns the middle of a cell.

        Raises:
            ActionError: The map has no such cell.
        """
        if not (0 <= column < self.columns and 0 <= row < self.rows):
            raise ActionError(f"cell ({column}, {row}) is not on the map of {self.columns}x{self.rows} cells")
        x = self.region.left + (column + 0.5) * self.cell_width
        return Point(x, self.region.top + (row + 0.5) * self.cell_height)


@dataclass(frozen=True, slots=True)
class Dialog:
    """A window that the game opens over its picture: a pattern for its title, what closes it, what it means."""

    title: re.Pattern[str]
    close: tuple[Deed, ...]
    ends_game: bool


@dataclass(frozen=True, slots=True)
class Landmark:
    """A part of the picture, by its region's name, that always looks the same, and what brings it back."""

    region: str
    restore: tuple[Deed, ...]


@dataclass(frozen=True, slots=True)
class SignSpec:
    """Two harmless things to do in turn, each of which shows in a region."""

    region: Region
    first: tuple[Deed, ...]
    second: tuple[Deed, ...]


@dataclass(frozen=True, slots=True)
class SettleSpec:
    """When the picture can be trusted: see `Settle`."""

    watch: tuple[Region, ...]
    sign: SignSpec | None
    lag_s: float
    captures: int
    poll_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class TickSpec:
    """A clock of the game's own: see `Ticks`."""

    run: tuple[Deed, ...]
    ended: Truth
    tick_s: float


@dataclass(frozen=True, slots=True)
class ResetSpec:
    """How a new city is begun, and what proves it: see `Reset`."""

    relaunch: bool
    steps: tuple[Deed, ...]
    fresh: tuple[str, ...]
    expect: Mapping[str, float | str]
    truth: tuple[Truth, ...]
    terrain: Region
    tries: int


@dataclass(frozen=True, slots=True)
class GameProfile:
    """All that is to be known about a game that is played through the screen; places are fractions of its picture.

    Attributes:
        name: Of the profile, such as `micropolis`.
        title: The game's name for people.
        packages: Debian packages that it needs.
        launch: How it is started.
        screen: Width and height of the virtual screen in pixels.
        window_title: A pattern for the whole title of its window.
        width: Of its picture in pixels.
        height: Of its picture in pixels.
        regions: Named rectangles.
        grid: The map.
        lots: A coarser grid over it; None if there is none.
        readings: What can be read.
        tools: What can be built with.
        menus: What can be opened.
        sliders: What can be set.
        camera: Gestures that move the view.
        dialogs: Windows that may appear.
        landmarks: What must be seen for the game to be there.
        templates: Regions whose pictures are kept for perception.
        pause: What toggles the pause; nothing if the process is stopped instead.
        paused_region: Name of the region that tells whether it is paused; None if the process is stopped.
        ticks: How it runs by its own clock; None if it runs by the clock on the wall.
        settle: When its picture can be trusted.
        input: How slowly it must be touched.
        park: Where the pointer is left; None for where it happens to be.
        wait_s: How long the game runs after a decision, if nothing else is said.
        accounts: How often money comes and goes by itself.
        reset: How a new city is begun.
        fingerprint: Changes whenever anything in the profile does.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    launch: Launch
    screen: tuple[int, int]
    window_title: re.Pattern[str]
    width: int
    height: int
    regions: Mapping[str, Region]
    grid: Grid
    lots: Lots | None
    readings: Mapping[str, FieldSpec]
    tools: Mapping[str, Tool]
    menus: Mapping[str, Menu]
    sliders: Mapping[str, Slider]
    camera: Mapping[str, tuple[Deed, ...]]
    dialogs: Mapping[str, Dialog]
    landmarks: Mapping[str, Landmark]
    templates: tuple[str, ...]
    pause: tuple[Deed, ...]
    paused_region: str | None
    ticks: TickSpec | None
    settle: SettleSpec
    input: Input
    park: Point | None
    wait_s: float
    accounts: Accounts
    reset: ResetSpec
    fingerprint: str = field(repr=False)

    @property
    def learned_regions(self) -> tuple[str, ...]:
        """Names of the regions whose pictures are learned from a fresh city."""
        paused = () if self.paused_region is None else (self.paused_region,)
        marks = (landmark.region for landmark in self.landmarks.values())
        return tuple(dict.fromkeys((*marks, *self.reset.fresh, *paused, *self.templates)))


def profile_names() -> tuple[str, ...]:
    """Returns the names of the profiles that come with Ludus."""
    return PROFILES.names()


def load_profile(name: str) -> GameProfile:
    """Returns a profile by its name, or by the path of a file ending in .yaml, which may extend another.

    Raises:
        UnknownNameError: There is no profile of this name.
        ConfigFileError: The file has faults; all of them are listed, each with its place.
    """
    if "/" in name or name.endswith(_FILE_ENDINGS):
        file = Path(name)
    elif name in PROFILES.names():
        file = PROFILES.file(name)
    else:
        raise UnknownNameError("game profile", name, (*PROFILES.names(), "the path of a file ending in .yaml"))
    content = read_config(ProfileFile, read_layers(file, PROFILES), (check_profile,))
    return _Maker(content).profile(file.stem)


class _Maker:
    """Makes a profile of what its file says: pixels of `measured_on` become fractions."""

    def __init__(self, content: ProfileFile) -> None:
        self._content = content
        self._width, self._height = content.measured_on

    def profile(self, name: str) -> GameProfile:
        content = self._content
        return GameProfile(
            name=name,
            title=content.title,
            packages=content.packages,
            launch=content.launch,
            screen=content.screen,
            window_title=re.compile(content.window.title),
            width=content.window.size[0],
            height=content.window.size[1],
            regions=_each(content.regions, self._region),
            grid=self._grid(),
            lots=self._lots(),
            readings={
                key: FieldSpec(item.kind, self._named(item.region), item.prefix, item.least, item.most)
                for key, item in content.readings.items()
            },
            tools=_each(content.tools, self._tool),
            menus=_each(
                content.menus, lambda item: Menu(self._point(item.at), _each(item.items, self._point), item.closed)
            ),
            sliders=_each(
                content.sliders, lambda item: Slider(self._named(item.region), item.least, item.most, item.dialog)
            ),
            camera=_each(content.camera, self._deeds),
            dialogs=_each(
                content.dialogs, lambda item: Dialog(re.compile(item.window), self._deeds(item.close), item.ends_game)
            ),
            landmarks=_each(content.landmarks, lambda item: Landmark(item.region, self._deeds(item.restore))),
            templates=content.templates,
            pause=self._deeds(content.pause.steps),
            paused_region=content.pause.region,
            ticks=self._ticks(),
            settle=self._settle(),
            input=content.input,
            park=self._point(content.input.park) if content.input.park is not None else None,
            wait_s=content.wait_s,
            accounts=content.accounts,
            reset=self._reset(),
            fingerprint=hashlib.sha256(dump_yaml(content.model_dump(mode="json")).encode()).hexdigest()[:16],
        )

    def _grid(self) -> Grid:
        region = self._named(self._content.map.region)
        width, height = (
            self._content.map.cell[0] / self._width,
            self._content.map.cell[1] / self._height,
        )
        nearly = 1e-6  # a region that is a whole number of cells wide is one, whatever the rounding
        columns = int((region.right - region.left) / width + nearly)
        return Grid(region, columns, int((region.bottom - region.top) / height + nearly), width, height)

    def _lots(self) -> Lots | None:
        lots = self._content.lots
        if lots is None:
            return None
        region = self._content.regions[lots.region]
        return make_lots(lots, region, self._content.measured_on, self._content.map.cell)

    def _tool(self, button: ToolButton) -> Tool:
        most = button.cost if button.most is None else button.most
        return Tool(self._point(button.at), button.cost, most, button.cells, button.label)

    def _settle(self) -> SettleSpec:
        settle, sign = self._content.settle, self._content.settle.sign
        return SettleSpec(
            watch=tuple(self._named(name) for name in settle.watch),
            sign=SignSpec(self._named(sign.region), self._deeds(sign.first), self._deeds(sign.second))
            if sign is not None
            else None,
            lag_s=settle.lag_s,
            captures=settle.captures,
            poll_s=settle.poll_s,
            timeout_s=settle.timeout_s,
        )

    def _ticks(self) -> TickSpec | None:
        ticks = self._content.pause.ticks
        return None if ticks is None else TickSpec(self._deeds(ticks.run), ticks.ended, ticks.tick_s)

    def _reset(self) -> ResetSpec:
        reset = self._content.reset
        return ResetSpec(
            relaunch=reset.relaunch,
            steps=self._deeds(reset.steps),
            fresh=reset.fresh,
            expect=reset.expect,
            truth=reset.truth,
            terrain=self._named(reset.terrain),
            tries=reset.tries,
        )

    def _deeds(self, steps: Sequence[Step]) -> tuple[Deed, ...]:
        return tuple(self._deed(step) for step in steps for _ in range(step.times))

    def _deed(self, step: Step) -> Deed:
        if step.click is not None:
            return Click(self._point(step.click), step.button)
        if step.move is not None:
            return Move(self._point(step.move))
        if step.drag is not None:
            return Drag(self._point(step.drag[:2]), self._point(step.drag[2:]), step.button)
        if step.key is not None:
            return Key(step.key)
        if step.scroll is not None and step.at is not None:
            return Scroll(self._point(step.at), step.scroll)
        return Wait(step.wait_s) if step.wait_s is not None else Ask(step.prompt or "")

    def _named(self, name: str) -> Region:
        return self._region(self._content.regions[name])

    def _region(self, box: tuple[float, float, float, float]) -> Region:
        left, top, right, bottom = box
        return Region(left / self._width, top / self._height, right / self._width, bottom / self._height)

    def _point(self, place: tuple[float, float]) -> Point:
        return Point(place[0] / self._width, place[1] / self._height)


def _each(items: Mapping[str, _T], make: Callable[[_T], _U]) -> dict[str, _U]:
    return {name: make(item) for name, item in items.items()}
