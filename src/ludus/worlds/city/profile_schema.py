"""The schema of game profiles: one YAML file describes a game that is played through the screen.

The models below are the schema of the file and the profile itself. Positions are written as pixels of a picture of the
size `measured_on`, because that is what people measure, and become fractions of the picture, so that a profile holds at
every size. With `measured_on: [1, 1]` they are written as fractions. What depends on another section, such as a name
that must exist, is checked against the whole document, which is the context of the validation.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from ludus.config import suggest
from ludus.core.errors import ActionError
from ludus.worlds.city.drivers.driver import Click, Drag, Gesture, Key, Move, Point, Region, Scroll, Wait
from ludus.worlds.city.perception.reading import Kind

Accounts = Literal["year", "month", "day"]
NEARLY = 1e-6  # what is a whole number of cells or lots wide is so, whatever the rounding


# --- types of values ---


def _key_of(section: str) -> AfterValidator:
    """Return the check of a name that must be a key of another section of the profile."""

    def check(name: str, info: ValidationInfo) -> str:
        names = _written(info, section) or {}
        if name not in names:
            raise ValueError(f"should be one of {section}; {suggest(name, tuple(names))}")
        return name

    return AfterValidator(check)


@dataclass(frozen=True, slots=True)
class Position:
    """Marks coordinates: a list of numbers in the file that becomes a `Point` or a `Region`, in fractions."""

    written: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        """Validate the list of numbers, then convert it."""

        def scaled(values: tuple[float, ...], info: ValidationInfo) -> Point | Region:
            size = _size(info, "measured_on") or (1.0, 1.0)
            if info.context is not None and any(not 0 <= value <= size[at % 2] for at, value in enumerate(values)):
                raise ValueError(f"should lie in the picture of {size[0]:g}x{size[1]:g}, got {_listed(values)}")
            made: Point | Region = source(*(value / size[at % 2] for at, value in enumerate(values)))
            return made

        return core_schema.with_info_after_validator_function(scaled, handler.generate_schema(self.written))


def _written(info: ValidationInfo, *path: str) -> Any:  # noqa: ANN401
    """Return what the document says at a path; None if it says nothing there, or is not known."""
    found = info.context
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _size(info: ValidationInfo, *path: str) -> tuple[float, float] | None:
    """Return the width and height at a path of the document; None for anything else, which the schema refuses."""
    match _written(info, *path):
        case [int() | float() as width, int() | float() as height] if min(width, height) > 0:
            return float(width), float(height)
    return None


def _needs_prompt(line: str, info: ValidationInfo) -> str:
    if _written(info, "launch", "prompt") is None:
        raise ValueError("needs launch.prompt: the game has no prompt")
    return line


def _on_the_screen(size: tuple[int, int], info: ValidationInfo) -> tuple[int, int]:
    screen = _size(info, "screen") or size
    if size[0] > screen[0] or size[1] > screen[1]:
        raise ValueError(f"should fit on the screen of {screen[0]:g}x{screen[1]:g}")
    return size


def _in_order(corners: tuple[float, ...]) -> tuple[float, ...]:
    left, top, right, bottom = corners
    if left >= right or top >= bottom:
        raise ValueError(f"should be left, top, right, bottom, got {_listed(corners)}")
    return corners


def _listed(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
RegionName = Annotated[Name, _key_of("regions")]
Line = Annotated[str, Field(min_length=1, max_length=500)]
PromptLine = Annotated[Line, AfterValidator(_needs_prompt)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Place = Annotated[Point, Position(tuple[Number, Number])]
Extent = Annotated[Point, Position(tuple[Positive, Positive])]  # width and height
_Corners = tuple[Number, Number, Number, Number]
Box = Annotated[Region, Position(_Corners)]  # or the ends of a drag
Rectangle = Annotated[Region, Position(Annotated[_Corners, AfterValidator(_in_order)])]
Seconds = Annotated[float, Field(strict=True, ge=0.0, le=600.0)]
Shade = Annotated[int, Field(strict=True, ge=0, le=255)]
Pixels = Annotated[int, Field(strict=True, ge=64, le=8192)]


@dataclass(frozen=True, slots=True)
class Ask:
    """A line for the game's prompt; `{seed}` is replaced by the city's seed, `{ticks}` by how long the game runs."""

    command: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing, whether the game runs or not."""

    seconds: float


Operation: TypeAlias = Gesture | Ask | Rest  # what steps consist of


# --- sections ---


class Section(BaseModel):
    """A part of a profile: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Step(Section):
    """One operation: exactly one of `click`, `move`, `drag`, `key`, `scroll`, `wait_s`, `rest_s` and `prompt`."""

    removed_keys: ClassVar[Mapping[str, str]] = {"button": "city.md#settings-that-went"}

    click: Place | None = None  # where to click
    move: Place | None = None  # where to move the pointer
    drag: Box | None = None  # start and end: x, y, x, y
    key: Line | None = None  # name of a key to press, such as `Escape`
    # Notches of the wheel at `at`; positive is up.
    scroll: Annotated[int, Field(strict=True, ge=-100, le=100)] | None = None
    wait_s: Seconds | None = None  # how long the game runs
    rest_s: Seconds | None = None  # how long nothing is done, such as while a menu comes up
    prompt: PromptLine | None = None  # see `Ask`
    at: Place | None = None  # where the wheel is turned
    times: Annotated[int, Field(strict=True, ge=1, le=1000)] = 1  # number of repetitions

    @model_validator(mode="after")
    def _is_one_operation(self) -> Self:
        names = ("click", "move", "drag", "key", "scroll", "wait_s", "rest_s", "prompt")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"should have exactly one of {', '.join(names)}; it has {', '.join(given) or 'none'}")
        if (self.scroll is None) != (self.at is None):
            raise ValueError("scroll and at belong together: at is where the wheel is turned")
        return self

    @property
    def operation(self) -> Operation:
        """The operation, once."""
        if self.click is not None:
            return Click(self.click)
        if self.move is not None:
            return Move(self.move)
        if self.drag is not None:
            return Drag(*_ends(self.drag))
        if self.key is not None:
            return Key(self.key)
        if self.scroll is not None and self.at is not None:
            return Scroll(self.at, self.scroll)
        if self.rest_s is not None:
            return Rest(self.rest_s)
        return Wait(self.wait_s) if self.wait_s is not None else Ask(self.prompt or "")


Steps = tuple[Step, ...]
SomeSteps = Annotated[Steps, Field(min_length=1)]


class Prompt(Section):
    """A prompt that the game offers on its terminal, for truth, audits and resets; never for an agent."""

    ready: Line  # the line that the game prints when it is ready for a command
    # A command that prints the answer to another command on one line between marks: `{command}` is replaced by that
    # command, `{mark}` by the mark.
    answer: Line
    first: tuple[Line, ...] = ()  # commands to run right after the start


class Launch(Section):
    """How the game is started."""

    # The program and its arguments. In it, and in the other values here, `{seed}`, `{width}`, `{height}` and `{home}`
    # are replaced by the city's seed, the size of the screen and the game's own home folder.
    command: Annotated[tuple[Line, ...], Field(min_length=1)]
    # A folder with the game's data to copy to `{home}/game` first, so that playing cannot change it.
    copy_of: Annotated[Line | None, Field(alias="copy")] = None
    folder: Line | None = None  # working directory; a temporary folder by default
    environment: dict[str, str] = Field(default_factory=dict)  # environment variables
    # Files to write into the home folder first, by their path there.
    files: dict[Line, str] = Field(default_factory=dict)
    prompt: Prompt | None = None  # the prompt on its terminal
    timeout_s: Seconds = 60.0  # longest wait for its window, and again until the window shows something
    # How long the picture must stay the same before the game counts as started.
    still_s: Annotated[float, Field(strict=True, ge=0.05, le=60.0)] = 0.1
    # Speed-up of the game's clock if libfaketime is installed: a game that delays its drawing by the clock is then seen
    # earlier.
    clock_speed: Annotated[float, Field(strict=True, ge=1.0, le=100.0)] = 1.0


class MainWindow(Section):
    """The window that is the game's picture."""

    title: re.Pattern[str]  # a regular expression for its whole title
    size: Annotated[tuple[Pixels, Pixels], AfterValidator(_on_the_screen)]  # width and height in pixels


class MapGrid(Section):
    """The part of the picture that shows the map."""

    region: RegionName  # the map
    cell: Extent  # width and height of a cell


class BlockStep(Section):
    """One use of a tool in a block: exactly one of `at`, `drag` and `area`, from the lot's upper left corner."""

    tool: Annotated[Name, _key_of("tools")]  # the tool
    at: Place | None = None  # where it is clicked
    drag: Box | None = None  # start and end of a horizontal or vertical drag: x, y, x, y
    area: Box | None = None  # corners of a rectangle that a drag fills: x, y, x, y

    @model_validator(mode="after")
    def _is_one_use(self) -> Self:
        if sum(use is not None for use in (self.at, self.drag, self.area)) != 1:
            raise ValueError("should have exactly one of at, drag and area")
        if self.drag is not None and self.drag.left != self.drag.right and self.drag.top != self.drag.bottom:
            raise ValueError("drag should be horizontal or vertical, not diagonal")
        return self

    def gesture(self, corner: Point) -> Gesture:
        """Return the click or drag in the lot with this upper left corner."""
        start, end = (Point(corner.x + place.x, corner.y + place.y) for place in self.ends)
        return Drag(start, end) if self.at is None else Click(start)

    @property
    def ends(self) -> tuple[Point, Point]:
        """Where its drag starts and ends; the same place twice for a click."""
        if self.at is not None:
            return self.at, self.at
        return _ends(self.drag or self.area or Region(0.0, 0.0, 0.0, 0.0))


class PlanStep(Section):
    """A kind of action, on the free lot beside the town that is nearest to a place in the grid of lots."""

    build: Name  # a block, or a tool
    toward: tuple[Share, Share]  # the place: shares of the width and of the height of the grid


class Plan(Section):
    """How the bot `plan` builds a town."""

    first: tuple[PlanStep, ...] = ()  # what a town needs once
    then: Annotated[tuple[PlanStep, ...], Field(min_length=1)]  # what is built after that, in turn


class Lots(Section):
    """A coarser grid over the map, and blocks: several tool uses that fill a lot in one decision.

    A decision for every tile is fine where games are fast. A real game takes a few decisions per second: with lots each
    of them does more, and there are fewer places to choose from.
    """

    region: RegionName  # whole lots are placed in it from its upper left corner
    size: Extent  # width and height of a lot
    anchor: Place  # where in a lot a single tool is used
    extra: Annotated[Number, Field(ge=0)] = 0.0  # what a block may cost beyond its tools, for clearing the ground
    # What a lot can be filled with, by name.
    blocks: Annotated[dict[Name, Annotated[tuple[BlockStep, ...], Field(min_length=1)]], Field(min_length=1)]
    plan: Plan | None = None  # what the bot `plan` builds


class ReadingField(Section):
    """A value that can be read off the picture."""

    kind: Kind  # its type
    region: RegionName  # where it is
    prefix: str = ""  # words before the value
    least: Number | None = None  # smallest plausible value
    most: Number | None = None  # largest plausible value
    thousands: Annotated[str, Field(max_length=1)] = ","  # what may stand between groups of three digits
    # Colour of the letters (red, green, blue), where they stand on a picture instead of plain ground.
    ink: tuple[Shade, Shade, Shade] | None = None
    # Whether a date is a day, a month and a year that may have less than four digits: `15. Jan 0`, `15/1/0`.
    short_years: bool = False


class ToolButton(Section):
    """A tool that is selected by a click on its button or by a key, and used by a click on the map."""

    at: Place | None = None  # where its button is
    key: Line | None = None  # the key that selects it, such as `r`, in games whose tools have no fixed buttons
    group: Place | None = None  # where the group of tools that holds its button is opened first
    cost: Annotated[Number, Field(ge=0)]  # what one use costs
    # Highest cost of one use, on difficult ground; `cost` by default.
    most: Annotated[Number, Field(ge=0)] | None = None
    # Width and height of what it builds, in cells of the map.
    cells: Annotated[int, Field(strict=True, ge=1, le=16)] = 1
    label: str = ""  # what the game displays when it is selected

    @model_validator(mode="after")
    def _is_selected_one_way(self) -> Self:
        if (self.at is None) == (self.key is None):
            raise ValueError("should have exactly one of at and key")
        if self.group is not None and self.at is None:
            raise ValueError("group needs at: the button in the group that is opened")
        return self

    @property
    def choice(self) -> Click | Key:
        """The gesture that selects it."""
        return Click(self.at) if self.at is not None else Key(self.key or "")

    @property
    def most_cost(self) -> float:
        """Highest cost of one use."""
        return self.cost if self.most is None else self.most


class Menu(Section):
    """A menu."""

    at: Place  # where it is opened
    items: dict[Name, Place] = Field(default_factory=dict)  # where its items are once it is open
    # Whether no action ever opens it: its items end, save or load cities, or change the speed of the game.
    closed: bool = False


class Slider(Section):
    """A slider."""

    region: RegionName  # from the middle of the knob at one end to its middle at the other end
    least: Number  # value at the left end
    most: Number  # value at the right end
    dialog: Annotated[Name, _key_of("dialogs")] | None = None  # the dialog that contains it, if any


class Dialog(Section):
    """A separate window that the game opens over its picture."""

    window: re.Pattern[str]  # a regular expression for its whole title
    close: Steps = ()  # what closes it
    ends_game: bool = False  # whether the city is over when it appears


class Landmark(Section):
    """A part of the picture that always looks the same while the game is in order."""

    region: RegionName  # where it is
    restore: Steps = ()  # what brings it back


class Truth(Section):
    """A question to the prompt and the answer that it must give."""

    ask: PromptLine
    answer: str


class Ticks(Section):
    """The game's own clock, such as its months: a wait is equally long however busy the machine is."""

    run: SomeSteps  # runs a paused game for `{ticks}` ticks, after which it pauses itself; 0 pauses it
    ended: Truth  # what the prompt answers when it has paused
    tick_s: Annotated[Seconds, Field(gt=0)]  # seconds of a wait that one tick represents


class Pause(Section):
    """How the game is paused and resumed: by steps, or by stopping its process."""

    steps: Steps = ()  # pause the game, or toggle the pause; without them the process is stopped
    resume: Steps = ()  # run it again, where that takes other steps
    region: RegionName | None = None  # looks the same whenever the game is paused, and different while it runs
    # The game's own clock; without it the steps are done once to run the game and once more to pause it.
    ticks: Ticks | None = None

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if bool(self.steps) != (self.region is not None):
            raise ValueError("steps and region belong together: the region shows whether the game is paused")
        return self


class Sign(Section):
    """Two harmless operations, used in turn, that visibly change a region: a sign that everything before is drawn."""

    region: RegionName  # where they show
    first: SomeSteps  # done the first, third, ... time
    second: SomeSteps  # done the second, fourth, ... time


class Settle(Section):
    """When the picture can be trusted after an operation."""

    watch: tuple[RegionName, ...] = ()  # regions that must be still; the whole picture by default
    sign: Sign | None = None  # shows that everything has been drawn; without one the game gets `lag_s`
    lag_s: Seconds = 0.25  # longest drawing delay of the game if there is no sign
    # Number of equal consecutive captures that count as still.
    captures: Annotated[int, Field(strict=True, ge=2, le=100)] = 2
    poll_s: Annotated[Seconds, Field(gt=0)] = 0.004  # interval between captures
    timeout_s: Seconds = 2.0  # time without a sign after which the screen is suspected to be frozen


class Input(Section):
    """Timing of mouse and keyboard."""

    hold_s: Seconds = 0.0  # how long a button or key is held
    between_s: Seconds = 0.0  # delay between two gestures
    drag_s: Seconds = 0.02  # delay between the parts of a drag
    after: Steps = ()  # done after the gestures of every operation, such as to bring back what shows the figures
    # Where the pointer is left, for games that draw it themselves; where it happens to be by default.
    park: Place | None = None


class Reset(Section):
    """How a new city is started, and what proves it."""

    relaunch: bool = False  # whether the game is restarted; its command contains the seed then
    steps: Steps = ()  # what is done, whether the game is running or not
    # Regions that look the same at the start of every city, such as the date and the funds.
    fresh: tuple[RegionName, ...] = ()
    # Readings and their values at the start of a city.
    expect: dict[Annotated[Name, _key_of("readings")], Number | str] = Field(default_factory=dict)
    truth: tuple[Truth, ...] = ()  # what the prompt must answer then
    terrain: RegionName  # the region that shows the land: the same for equal seeds
    same_land: bool = False  # whether every city has the same land, whatever its seed
    tries: Annotated[int, Field(strict=True, ge=1, le=10)] = 3  # number of attempts


# --- the profile ---


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of equal size, row by row from the upper left, as fractions of the picture."""

    region: Region
    columns: int
    rows: int
    cell_width: float
    cell_height: float

    @classmethod
    def fill(cls, region: Region, cell: Point) -> Self:
        """Return a grid of as many whole cells as a region holds."""
        columns = int((region.right - region.left) / cell.x + NEARLY)
        rows = int((region.bottom - region.top) / cell.y + NEARLY)
        right, bottom = region.left + columns * cell.x, region.top + rows * cell.y
        return cls(Region(region.left, region.top, right, bottom), columns, rows, cell.x, cell.y)

    def corner(self, column: float, row: float) -> Point:
        """Return the upper left corner of a cell; fractions of a cell lie inside it."""
        return Point(self.region.left + column * self.cell_width, self.region.top + row * self.cell_height)

    def cell(self, column: int, row: int) -> Point:
        """Return the middle of a cell; raise ActionError if the map has no such cell."""
        if not (0 <= column < self.columns and 0 <= row < self.rows):
            raise ActionError(f"cell ({column}, {row}) is not on the map of {self.columns}x{self.rows} cells")
        return self.corner(column + 0.5, row + 0.5)

    def middle(self, columns: int, rows: int) -> Region:
        """Return the region of at most this many columns and rows in the middle of the grid."""
        columns, rows = min(columns, self.columns), min(rows, self.rows)
        left, top = (self.columns - columns) // 2, (self.rows - rows) // 2
        first, last = self.corner(left, top), self.corner(left + columns, top + rows)
        return Region(first.x, first.y, last.x, last.y)


class GameProfile(Section):
    """Everything that is known about a game that is played through the screen."""

    removed_keys: ClassVar[Mapping[str, str]] = dict.fromkeys(("likeness", "templates"), "city.md#settings-that-went")

    title: Line  # the game's name for people
    packages: Annotated[tuple[Line, ...], Field(min_length=1)]  # debian packages that it needs
    launch: Launch  # how it is started
    screen: tuple[Pixels, Pixels]  # width and height of the virtual screen in pixels
    window: MainWindow  # the window that is its picture
    measured_on: tuple[Positive, Positive]  # width and height of the picture on which all positions were measured
    regions: dict[Name, Rectangle]  # named rectangles: left, top, right, bottom
    map: MapGrid  # where the map is
    lots: Lots | None = None  # a coarser grid over the map
    readings: Annotated[dict[Name, ReadingField], Field(min_length=1)]  # what can be read
    tools: dict[Name, ToolButton] = Field(default_factory=dict)  # what can be built with
    menus: dict[Name, Menu] = Field(default_factory=dict)  # what can be opened
    sliders: dict[Name, Slider] = Field(default_factory=dict)  # what can be set
    camera: dict[Name, Steps] = Field(default_factory=dict)  # steps that move the view, by name
    dialogs: dict[Name, Dialog] = Field(default_factory=dict)  # windows that may appear, and how they are closed
    landmarks: Annotated[dict[Name, Landmark], Field(min_length=1)]  # what must be visible for the game to be there
    pause: Pause = Pause()  # how it is paused between decisions
    settle: Settle = Settle()  # when its picture can be trusted
    input: Input = Input()  # timing of mouse and keyboard
    wait_s: Annotated[Seconds, Field(gt=0)] = 0.1  # how long the game runs after a decision by default
    # How often money comes and goes by itself; in between, placements are judged by the funds.
    accounts: Accounts = "month"
    credit: Annotated[Number, Field(ge=0)] = 0.0  # how far the funds may fall below zero by building
    reset: Reset  # how a new city is started
    _name: str = PrivateAttr("")
    _fingerprint: str = PrivateAttr("")

    def named(self, name: str, fingerprint: str) -> Self:
        """Set what the file is called and the hash of its content; return the profile."""
        self._name, self._fingerprint = name, fingerprint
        return self

    @property
    def name(self) -> str:
        """Name of the profile, such as `micropolis`."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the content of the file does."""
        return self._fingerprint

    @property
    def width(self) -> int:
        """Width of the picture in pixels."""
        return self.window.size[0]

    @property
    def height(self) -> int:
        """Height of the picture in pixels."""
        return self.window.size[1]

    @cached_property
    def grid(self) -> Grid:
        """The cells of the map."""
        return Grid.fill(self.regions[self.map.region], self.map.cell)

    @cached_property
    def lot_grid(self) -> Grid:
        """The lots; the cells of the map if there are none."""
        return self.grid if self.lots is None else Grid.fill(self.regions[self.lots.region], self.lots.size)

    @property
    def learned_regions(self) -> tuple[str, ...]:
        """Names of the regions whose pictures are learned from a fresh city."""
        paused = () if self.pause.region is None else (self.pause.region,)
        marks = (landmark.region for landmark in self.landmarks.values())
        return tuple(dict.fromkeys((*marks, *self.reset.fresh, *paused)))

    def slider_point(self, name: str, value: float) -> Point:
        """Return where a slider is clicked to set a value, clipped to its range."""
        slider = self.sliders[name]
        region, share = self.regions[slider.region], (value - slider.least) / (slider.most - slider.least)
        return Point(region.left + min(max(share, 0.0), 1.0) * (region.right - region.left), region.middle.y)

    def cells_of(self, step: BlockStep) -> int:
        """Return how many cells of the map a step of a block is used on."""
        start, end = step.ends  # a line is a rectangle of one row or column
        cell = self.map.cell
        return (1 + round(abs(end.x - start.x) / cell.x)) * (1 + round(abs(end.y - start.y) / cell.y))

    def with_middle_lots(self, columns: int, rows: int) -> Self:
        """Return the profile with at most this many lots, those in the middle."""
        if self.lots is None:
            return self
        regions = {**self.regions, self.lots.region: self.lot_grid.middle(columns, rows)}
        narrowed = self.model_copy(update={"regions": regions})
        narrowed.__dict__.pop("lot_grid", None)  # cached for the old region
        return narrowed


def operations(steps: Steps) -> tuple[Operation, ...]:
    """Return what steps do, one after the other."""
    return tuple(step.operation for step in steps for _ in range(step.times))


def _ends(drag: Region) -> tuple[Point, Point]:
    return Point(drag.left, drag.top), Point(drag.right, drag.bottom)
