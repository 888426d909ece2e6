"""Settings of a Brawl environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ludus.core.errors import ConfigError, did_you_mean


class BrawlConfig(BaseModel):
    """What can be set about the game itself.

    Attributes:
        step_limit: Frames in a match; 2,700 are 90 s.
        stocks: Lives a fighter starts with.
        weapon_spawns: Whether weapons appear on the stage.
        fixed_weapons: Weapon of each seat for the whole match, never dropped or lost; None for normal play.
        move_table: Path of a move table; None for the one of the package.
        swap_sides: Exchanges the sides that are drawn for the seats, to play the same match the other way round.
        mirrored: Shows the stage in a mirror (pictures and `BrawlEnv.world_x` only; a seat's own view never changes).
        threads: Host threads that advance the games on a CPU; None for all cores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    step_limit: Annotated[int, Field(ge=30, le=1_000_000)] = 2_700
    stocks: Annotated[int, Field(ge=1, le=99)] = 3
    weapon_spawns: bool = True
    fixed_weapons: tuple[str, str] | None = None
    move_table: Path | None = None
    swap_sides: bool = False
    mirrored: bool = False
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None


def brawl_config(settings: Mapping[str, Any] | None) -> BrawlConfig:
    """Checks settings given by name.

    Raises:
        ConfigError: Lists every fault with the valid names.
    """
    try:
        return BrawlConfig.model_validate(dict(settings or {}))
    except ValidationError as error:
        valid = tuple(BrawlConfig.model_fields)
        faults = []
        for fault in error.errors():
            name = ".".join(str(part) for part in fault["loc"])
            hint = (
                f"{did_you_mean(name, valid)}; valid: {', '.join(valid)}" if fault["type"] == "extra_forbidden" else ""
            )
            faults.append(f"  {name}: {fault['msg']} (got {fault['input']!r}){hint}")
        raise ConfigError("brawl settings are wrong:\n" + "\n".join(faults)) from error
