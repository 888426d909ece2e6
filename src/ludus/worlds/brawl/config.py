"""Settings of a Brawl environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ludus.envs.settings import MatchSettings
from ludus.envs.stored import OutsideName


class BrawlConfig(MatchSettings):
    """What can be set about the game itself.

    Attributes:
        step_limit: Frames in a match; 2,700 are 90 s.
        stocks: Lives a fighter starts with.
        weapon_spawns: Whether weapons appear on the stage.
        fixed_weapons: Weapon of each seat for the whole match, never dropped or lost; None for normal play.
        rules: Which move table of the package is played: `standard`, or `clash`, where a blow against a fighter who is
            not stunned lets both choose a strike, a guard or a throw at the same instant.
        move_table: Path of a move table of one's own; None for that of `rules`.
        swap_sides: Exchanges the sides that are drawn for the seats, to play the same match the other way round.
        mirrored: Shows the stage in a mirror (pictures and `BrawlEnv.view` only; a seat's own view never changes).
        threads: Host threads that advance the games on a CPU; None for all cores.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {
        "reaction_frames": "strategy.md#with-a-reaction-time-the-triangle-and-exploiters"
    }

    step_limit: Annotated[int, Field(ge=30, le=1_000_000)] = 2_700
    stocks: Annotated[int, Field(ge=1, le=99)] = 3
    weapon_spawns: bool = True
    fixed_weapons: Annotated[tuple[str, str] | None, Field(strict=False)] = None
    rules: Literal["standard", "clash"] = "standard"
    move_table: Annotated[Path | None, OutsideName("move table"), Field(strict=False)] = None
    swap_sides: bool = False
    mirrored: bool = False
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
