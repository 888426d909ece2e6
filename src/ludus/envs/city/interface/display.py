"""Settings of how the embedded city builder looks."""

from typing import Annotated

from pydantic import Field, field_validator

from ludus.core.errors import did_you_mean
from ludus.envs.city.interface.layout import MIN_SIZE
from ludus.envs.city.interface.themes import THEMES
from ludus.envs.settings import EnvSettings

RESOLUTIONS = ((640, 400), (800, 600), (1280, 720))  # that are drawn and tested in every theme


class CityDisplay(EnvSettings):
    """How the game looks.

    Attributes:
        themes: Names of themes; the games of a batch take them in turns.
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
    """

    themes: Annotated[tuple[str, ...], Field(min_length=1, strict=False)] = ("classic",)
    width: Annotated[int, Field(ge=MIN_SIZE[0], le=3840)] = 640
    height: Annotated[int, Field(ge=MIN_SIZE[1], le=2160)] = 400

    @field_validator("themes")
    @classmethod
    def _known(cls, themes: tuple[str, ...]) -> tuple[str, ...]:
        for name in themes:
            if name not in THEMES:
                raise ValueError(f"unknown theme {name!r}{did_you_mean(name, THEMES)}; valid: {', '.join(THEMES)}")
        return themes
