"""What the YAML file of a game may say: the shape of a profile, key by key; `profile.py` makes a `GameProfile` of it.

Places are fractions of the game's window. They are written as pixels of a picture of the size `measured_on`, because
that is what people measure; with `measured_on: [1, 1]` they are written as fractions.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ludus.envs.city.drivers.driver import Button
from ludus.envs.city.perception.reading import Kind
from ludus.envs.city.profile_lots import LotGrid
from ludus.envs.city.profile_words import Box, Count, Line, Name, Number, Pixels, Place, Positive, Seconds, Section

Accounts = Literal["year", "month", "day"]


class Step(Section):
    """One thing to do; exactly one of `click`, `move`, `drag`, `key`, `scroll`, `wait_s` and `prompt`.

    Attributes:
        click: Where to click.
        move: Where to move the pointer.
        drag: From where to where: x, y, x, y.
        key: Name of a key to press, such as `Escape`.
        scroll: Notches of the wheel at `at`; positive is up.
        wait_s: How long the game runs.
        prompt: A line for the game's prompt; `{seed}` stands for the city's seed.
        at: Where the wheel is turned.
        button: Of `click` and `drag`.
        times: How often all this is done.
    """

    click: Place | None = None
    move: Place | None = None
    drag: Box | None = None
    key: Line | None = None
    scroll: Annotated[int, Field(strict=True, ge=-100, le=100)] | None = None
    wait_s: Seconds | None = None
    prompt: Line | None = None
    at: Place | None = None
    button: Button = "left"
    times: Count = 1

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        things = ("click", "move", "drag", "key", "scroll", "wait_s", "prompt")
        given = [name for name in things if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"should have exactly one of {', '.join(things)}; it has {', '.join(given) or 'none'}")
        if (self.scroll is None) != (self.at is None):
            raise ValueError("scroll and at belong together: at is where the wheel is turned")
        return self


Steps = tuple[Step, ...]


class Prompt(Section):
    """A prompt that the game offers on its terminal, for truth, audits and resets; never for an agent.

    Attributes:
        ready: The line that it writes when it is ready for a command.
        answer: A command that writes another command's answer on one line between marks: `{command}` stands for that
            command, `{mark}` for the mark.
        first: Commands for when the game has just been started.
    """

    ready: Line
    answer: Line
    first: tuple[Line, ...] = ()


class Launch(Section):
    """How the game is started.

    Attributes:
        command: The program and its arguments. In it, and in the other values here, `{seed}`, `{width}`, `{height}`
            and `{home}` stand for the city's seed, the screen's size and the game's own home folder.
        copy: A folder of the game's data to copy to `{home}/game` first, so that nothing played can change it.
        folder: Where it runs; a temporary folder if left out.
        environment: Variables that it needs.
        files: Files to write into its home folder first, by their path there.
        prompt: What its terminal offers.
        timeout_s: How long it may take until its window is there, and again until that shows something.
        still_s: For how long its picture must stay the same then, before the game counts as up.
        clock_speed: How many times as fast as ours the game's clock runs, if libfaketime is installed: a game that
            puts its drawing off by the clock is seen earlier then.
    """

    command: Annotated[tuple[Line, ...], Field(min_length=1)]
    copy_of: Annotated[Line | None, Field(alias="copy")] = None
    folder: Line | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    files: dict[Line, str] = Field(default_factory=dict)
    prompt: Prompt | None = None
    timeout_s: Seconds = 60.0
    still_s: Annotated[float, Field(strict=True, ge=0.05, le=60.0)] = 0.1
    clock_speed: Annotated[float, Field(strict=True, ge=1.0, le=100.0)] = 1.0


class MainWindow(Section):
    """The window that is the game's picture.

    Attributes:
        title: A regular expression for its whole title.
        size: Its width and height in pixels.
    """

    title: Line
    size: tuple[Pixels, Pixels]


class MapGrid(Section):
    """The part of the picture that shows the map.

    Attributes:
        region: Its name among `regions`.
        cell: Width and height of a cell of the map.
    """

    region: Name
    cell: tuple[Positive, Positive]


class ReadingField(Section):
    """Something that can be read off the picture.

    Attributes:
        kind: What it is.
        region: Its name among `regions`.
        prefix: Words before the value that belong to the picture.
        least: No smaller value is believed.
        most: No larger value is believed.
    """

    kind: Kind
    region: Name
    prefix: str = ""
    least: Number | None = None
    most: Number | None = None


class ToolButton(Section):
    """A tool that is chosen by a click and used by a click on the map.

    Attributes:
        at: Where its button is.
        cost: What one use costs.
        most: What it costs at most, on difficult ground; `cost` if left out.
        cells: Width and height of what it makes, in cells of the map.
        label: What the game writes when it is chosen.
    """

    at: Place
    cost: Annotated[Number, Field(ge=0)]
    most: Annotated[Number, Field(ge=0)] | None = None
    cells: Annotated[int, Field(strict=True, ge=1, le=16)] = 1
    label: str = ""


class MenuButton(Section):
    """A menu.

    Attributes:
        at: Where it is opened.
        items: Where its items are once it is open.
        closed: Whether no action ever opens it: what it holds ends, saves or loads cities, or changes their time.
    """

    at: Place
    items: dict[Name, Place] = Field(default_factory=dict)
    closed: bool = False


class SliderField(Section):
    """A slider: the value at the left end of its region is `least`, at the right end `most`.

    Attributes:
        region: Its name among `regions`, from the middle of the knob at one end to that at the other.
        least: Value at the left end.
        most: Value at the right end.
        dialog: The dialog in which it is, if it is in one.
    """

    region: Name
    least: Number
    most: Number
    dialog: Name | None = None


class DialogWindow(Section):
    """A window of its own that the game opens over its picture.

    Attributes:
        window: A regular expression for its whole title.
        close: What closes it.
        ends_game: Whether the city is over when it appears.
    """

    window: Line
    close: Steps = ()
    ends_game: bool = False


class LandmarkField(Section):
    """A part of the picture that always looks the same while the game is as it should be.

    Attributes:
        region: Its name among `regions`.
        restore: What brings it back if it is gone.
    """

    region: Name
    restore: Steps = ()


class Truth(Section):
    """What the prompt must answer."""

    ask: Line
    answer: str


class Ticks(Section):
    """A clock of the game's own, such as its months: what is waited for is the same however busy the machine is.

    Attributes:
        run: What sets a paused game going for `{ticks}` ticks, after which it pauses by itself; with 0 it pauses.
        ended: What the prompt answers when it has paused.
        tick_s: How much of a wait one tick is.
    """

    run: Annotated[Steps, Field(min_length=1)]
    ended: Truth
    tick_s: Annotated[Seconds, Field(gt=0)]


class Pause(Section):
    """How the game is paused and goes on: the same steps for both, or by stopping its process.

    Attributes:
        steps: What toggles it; none if the process is stopped instead.
        region: Name of the region that looks the same whenever the game is paused, and different while it runs.
        ticks: How it runs for some time of its own clock; without it the steps are done, and again when it is over.
    """

    steps: Steps = ()
    region: Name | None = None
    ticks: Ticks | None = None

    @model_validator(mode="after")
    def _region_tells(self) -> Self:
        if bool(self.steps) != (self.region is not None):
            raise ValueError("steps that toggle the pause need a region that tells whether it is paused, and only they")
        return self


class Sign(Section):
    """Two harmless things to do in turn, each of which shows: a sign that all before it has been drawn.

    Attributes:
        region: Where it shows.
        first: What is done the first time, the third ...
        second: What is done the second time, the fourth ...
    """

    region: Name
    first: Annotated[Steps, Field(min_length=1)]
    second: Annotated[Steps, Field(min_length=1)]


class Settle(Section):
    """When the picture can be trusted after something was done.

    Attributes:
        watch: Regions in which it is awaited; all of the picture if none.
        sign: What shows that everything has been drawn; without one the game gets `lag_s`.
        lag_s: The longest that the game takes to draw what was done, if there is no sign.
        captures: So many equal captures in a row are still.
        poll_s: Between captures.
        timeout_s: After so long without a sign the screen is suspected to be frozen.
    """

    watch: tuple[Name, ...] = ()
    sign: Sign | None = None
    lag_s: Seconds = 0.25
    captures: Annotated[int, Field(strict=True, ge=2, le=100)] = 2
    poll_s: Annotated[Seconds, Field(gt=0)] = 0.004
    timeout_s: Seconds = 2.0


class Input(Section):
    """How slowly the game must be touched.

    Attributes:
        hold_s: How long a button or key is held.
        between_s: Between two gestures.
        drag_s: Between the parts of a drag.
        park: Where the pointer is left; where it happens to be if left out. For games that draw it themselves.
    """

    hold_s: Seconds = 0.0
    between_s: Seconds = 0.0
    drag_s: Seconds = 0.02
    park: Place | None = None


class Reset(Section):
    """How a new city is begun, and what proves it.

    Attributes:
        relaunch: Whether the game is started anew; its command has the seed then.
        steps: What is done, with the game running or not as it happens to be.
        fresh: Regions that look the same at the start of every city, such as the date and the funds.
        expect: Readings and their values at the start of a city.
        truth: What the prompt must answer then.
        terrain: The region that shows the land: the same for equal seeds.
        tries: How often it is tried.
    """

    relaunch: bool = False
    steps: Steps = ()
    fresh: tuple[Name, ...] = ()
    expect: dict[Name, Number | str] = Field(default_factory=dict)
    truth: tuple[Truth, ...] = ()
    terrain: Name
    tries: Annotated[int, Field(strict=True, ge=1, le=10)] = 3


class ProfileFile(Section):
    """The whole file.

    Attributes:
        title: The game's name for people.
        packages: Debian packages that it needs.
        launch: How it is started.
        screen: Width and height of the virtual screen in pixels.
        window: The window that is its picture.
        measured_on: Width and height of the picture on which all places were measured.
        regions: Named rectangles: left, top, right, bottom.
        map: Where the map is.
        lots: A coarser grid over the map, for decisions that do more at once.
        readings: What can be read.
        tools: What can be built with.
        menus: What can be opened.
        sliders: What can be set.
        camera: Steps that move the view, by name.
        dialogs: Windows that may appear, and how they are closed.
        landmarks: What must be seen for the game to be there.
        templates: Regions whose pictures are kept for perception.
        pause: How it is paused between decisions.
        settle: When its picture can be trusted.
        input: How it is touched.
        wait_s: How long the game runs after a decision, if nothing else is said.
        accounts: How often money comes and goes by itself; in between, what is built is judged by the funds.
        reset: How a new city is begun.
    """

    title: Line
    packages: Annotated[tuple[Line, ...], Field(min_length=1)]
    launch: Launch
    screen: tuple[Pixels, Pixels]
    window: MainWindow
    measured_on: tuple[Positive, Positive]
    regions: dict[Name, Box]
    map: MapGrid
    lots: LotGrid | None = None
    readings: Annotated[dict[Name, ReadingField], Field(min_length=1)]
    tools: dict[Name, ToolButton] = Field(default_factory=dict)
    menus: dict[Name, MenuButton] = Field(default_factory=dict)
    sliders: dict[Name, SliderField] = Field(default_factory=dict)
    camera: dict[Name, Steps] = Field(default_factory=dict)
    dialogs: dict[Name, DialogWindow] = Field(default_factory=dict)
    landmarks: Annotated[dict[Name, LandmarkField], Field(min_length=1)]
    templates: tuple[Name, ...] = ()
    pause: Pause = Pause()
    settle: Settle = Settle()
    input: Input = Input()
    wait_s: Annotated[Seconds, Field(gt=0)] = 0.1
    accounts: Accounts = "month"
    reset: Reset
