"""Settings of City's environment."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from ludus.envs.settings import EnvSettings
from ludus.envs.stored import OutsideName
from ludus.worlds.city.game.rules import MAX_SIDE, MIN_SIDE, CityRules
from ludus.worlds.city.interface.theme import CityDisplay

AT_LEAST = ("population", "happiness", "funds", "balance", "land_value")  # higher is better
AT_MOST = ("traffic", "pollution")  # percent; lower is better
WORST = 100.0  # percent

EMBEDDED = "embedded"
GAME_PROFILE = OutsideName("game profile", "ludus.worlds.city.profile:is_shipped", is_code=True)
Entry = Literal["frame", "map", "readings", "menu", "built"]
Group = Literal["build", "street", "bulldoze", "tax", "funding", "menu", "camera", "explore"]
GROUPS: tuple[Group, ...] = get_args(Group)
CellGrid = Literal["tiles", "lots"]
Sites = Literal["all", "free", "beside"]
Side = Annotated[int, Field(ge=8, le=512)]
Lots = Annotated[int, Field(ge=1, le=1_000)]


class WorldRules(CityRules):
    """The rules with a map that is small enough to be learned in minutes."""

    columns: Annotated[int, Field(ge=MIN_SIDE, le=MAX_SIDE)] = 20
    rows: Annotated[int, Field(ge=MIN_SIDE, le=MAX_SIDE)] = 14


class GuideSettings(EnvSettings):
    """A guide that is asked for advice; see `ludus.worlds.city.guide`.

    Attributes:
        name: The name under which a `--plugin` file registers a guide.
        every: Decisions from one question to the next.
        observed: Whether its advice is an observation; else it can only be rewarded.
    """

    removed_keys: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("model", "timeout_s", "calls_per_hour", "allow_remote"), "city.md#guides"
    )

    name: Annotated[str, OutsideName("guide", "ludus.worlds.city.guide:stays_here"), Field(min_length=1)]
    every: Annotated[int, Field(ge=1, le=1_000_000)] = 25
    observed: bool = True


class CityConfig(EnvSettings):
    """Settings of City's environment.

    Attributes:
        game: `embedded`, or the name of a profile or the path of its file.
        rules: Of the embedded game.
        display: How the embedded game looks.
        wait_s: Game time that passes after the gestures of a decision; one second is ten days of the
            embedded game. None for 1 s in the embedded game, and for what a profile says in others.
        steps: Decisions per episode, after which it is truncated.
        actions: Groups of kinds of action beside waiting; see `actions.Catalogue`.
        kinds: Names of the kinds of action of those groups, beside waiting; None for all of them.
        cells: Whether a cell of an action is a tile of the map, or a lot where a profile has them.
        lots: Columns and rows of lots to use, in the middle of the visible map; None for all of them.
        sites: Cells that the mask allows: `all`; `free`, where nothing was built or tried in this city; `beside`, those
            of them next to one where something was. All are allowed where none is left.
        once: Kinds of action that the mask forbids once the funds have fallen by their cost, such as a power plant.
        lands: Seeds of the lands of a real game, used in turn; by default every city has a new land.
        observe: Entries of the observation; `built`, what the player has built in this city, lets a policy without
            memory do things in turn.
        frame: Height and width that the whole window is downscaled to.
        cell_pixels: Side of a cell in the picture of the map.
        metrics: `screen` reads figures off the picture; `truth` takes them from the game's state, for comparisons of
            speed and for debugging, in the embedded game alone.
        closes: Whether kinds that need the map close what covers it first; else they are not allowed while a menu, a
            dialog or a window is open, and the player has to close it.
        menu_buffer: Discovered elements of the interface that are remembered.
        goals: Targets of figures: at least, or at most for traffic and pollution; each adds a metric and a reward
            term `goal_NAME`.
        guide: The guide that is asked for advice; None for none.
        ocr: Whether OCR reads, in the background, what the known letters of a real game do not cover.
        workers: Processes that draw and read the embedded games; 0 does it in this one, None uses one per core where
            there are enough games. The games do not depend on it.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {
        "stack": "city.md#settings-that-went",
        "ocr_confidence": "city.md#settings-that-went",
    }

    game: Annotated[str, GAME_PROFILE, Field(min_length=1)] = EMBEDDED
    rules: WorldRules = WorldRules()
    display: CityDisplay = CityDisplay()
    wait_s: Annotated[float, Field(gt=0.0, le=60.0, strict=False)] | None = None
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = 300
    actions: Annotated[tuple[Group, ...], Field(min_length=1, strict=False)] = GROUPS
    kinds: Annotated[tuple[str, ...], Field(min_length=1, max_length=1_000, strict=False)] | None = None
    cells: CellGrid = "tiles"
    lots: Annotated[tuple[Lots, Lots], Field(strict=False)] | None = None
    sites: Sites = "all"
    once: Annotated[tuple[str, ...], Field(max_length=100, strict=False)] = ()
    lands: Annotated[tuple[Annotated[int, Field(ge=1, lt=2**31)], ...], Field(max_length=10_000, strict=False)] = ()
    observe: Annotated[tuple[Entry, ...], Field(min_length=1, strict=False)] = ("map", "readings", "menu")
    frame: Annotated[tuple[Side, Side], Field(strict=False)] = (84, 84)
    cell_pixels: Annotated[int, Field(ge=1, le=32)] = 4
    metrics: Literal["screen", "truth"] = "screen"
    closes: bool = False
    menu_buffer: Annotated[int, Field(ge=1, le=1000)] = 50
    goals: dict[str, Annotated[float, Field(ge=0.0, le=1e12, strict=False)]] = Field(default_factory=dict)
    guide: GuideSettings | None = None
    ocr: bool = True
    workers: Annotated[int, Field(ge=0, le=1024)] | None = None

    @field_validator("actions", "observe")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} named more than once; name each once")
        return names

    @field_validator("goals")
    @classmethod
    def _can_be_reached(cls, goals: dict[str, float]) -> dict[str, float]:
        faults = []
        for name, target in goals.items():
            if name not in (*AT_LEAST, *AT_MOST):
                faults.append(f"goals are for {', '.join((*AT_LEAST, *AT_MOST))}, got {name!r}")
            elif name in AT_MOST and not 0.0 <= target < WORST:
                faults.append(f"the goal of {name} must be a percentage from 0 to below {WORST:g}, got {target:g}")
            elif name in AT_LEAST and target <= 0.0:
                faults.append(f"the goal of {name} must be above 0, got {target:g}")
        if faults:
            raise ValueError("; ".join(faults))
        return goals

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.closes and "explore" not in self.actions:
            raise ValueError(
                "with closes: false only the kinds of the group explore close dialogs and menus; "
                "add explore to actions, or set closes: true"
            )
        named = [name for name in ("kinds", "lots", "lands") if getattr(self, name)]
        named += ["cells"] if self.cells == "lots" else []
        if self.game == EMBEDDED and named:
            raise ValueError(f"{', '.join(named)} need a game with a profile, such as game: micropolis")
        if self.game != EMBEDDED and self.workers:
            raise ValueError(f"workers need game: {EMBEDDED}; {self.game!r} runs in separate processes")
        if self.game != EMBEDDED and self.metrics == "truth":
            raise ValueError(f"metrics: truth needs game: {EMBEDDED}; {self.game!r} is known by its screen alone")
        return self
