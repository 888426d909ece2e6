"""What is shown of one decision of one game."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ludus.envs.city.catalogue import NOT_JUDGED
from ludus.envs.city.demo.track import Track
from ludus.envs.city.drivers.driver import Frame, Point, Region
from ludus.envs.city.embedded_table import EmbeddedTable
from ludus.envs.city.perception.embedded import embedded_fields
from ludus.envs.city.screen_table import ScreenTable
from ludus.envs.city.seen import Seen, seen_fields
from ludus.envs.city.table import CityTable
from ludus.envs.stage import Thought

if TYPE_CHECKING:
    from ludus.envs.city.env import CityEnv

MIDDLE = Point(0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Shown:
    """One decision of a game.

    Attributes:
        picture: The screen after it.
        seen: What was read of the screen.
        step: Its number in the city; 0 before the first.
        steps: Decisions that a city has at most.
        kind: What was decided; empty before the first.
        probability: How likely that was, by the agent's own choice; None if nobody told.
        considered: The most likely kinds with their probabilities, the first one first.
        placed: What became of a placement, as in `ActionKind.judge`.
        is_placement: Whether that is judged at all.
        found: Elements of the interface that were never seen before; None where nobody looked for them.
        track: The way of the pointer.
        hint: What a guide said; empty without one.
    """

    picture: Frame
    seen: tuple[Seen, ...]
    step: int
    steps: int
    kind: str = ""
    probability: float | None = None
    considered: tuple[tuple[str, float], ...] = ()
    placed: int = NOT_JUDGED
    is_placement: bool = False
    found: int | None = None
    track: Track = field(default_factory=lambda: Track(MIDDLE))
    hint: str = ""


def show(env: "CityEnv", before: Shown | None, thought: Thought | None, most: int) -> Shown:
    """Returns the present state of the first game, after its last decision.

    Args:
        env: The games.
        before: What was shown last.
        thought: What the agent thought of the last decision.
        most: Kinds that are told at most among those that were considered.
    """
    table, catalogue = env.table, env.table.catalogue
    kind, step = int(env.tracker.last_kind[0]), int(env.tracker.step[0])
    head = Shown(
        table.picture(0),
        seen_fields(table, 0),
        step,
        env.config.steps,
        hint=env.counsel.hints[0] if env.counsel is not None else "",
    )
    start = before.track.end if before is not None else MIDDLE
    if step == 0 or kind < 0:
        return replace(head, track=Track(start))
    shares = dict(zip(catalogue.names, thought.kinds, strict=True)) if thought is not None else {}
    name = catalogue.kinds[kind].name
    return replace(
        head,
        kind=name,
        probability=shares.get(name),
        considered=tuple(sorted(shares.items(), key=lambda item: -item[1])[:most]),
        placed=int(table.sight.placed[0]),
        is_placement=bool(catalogue.is_placement[kind]),
        found=int(table.sight.discovered[0]) if catalogue.kinds[kind].group == "explore" else None,
        track=Track(start, table.done(0)),
    )


def field_regions(table: CityTable) -> dict[str, Region]:
    """Returns where the fields of the first game are read, by name."""
    if isinstance(table, EmbeddedTable):
        interface = table.games.interfaces[0]
        return {each.name: each.region for each in embedded_fields(interface.layout, interface.theme)}
    if isinstance(table, ScreenTable):
        return {name: table.profile.readings[name].region for name, _ in table.fields}
    return {}
