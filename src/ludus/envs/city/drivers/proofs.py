"""Proofs that a game is what it should be, by its picture, its readings and its prompt; each raises `GameLostError`."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from ludus.core.errors import GameLostError
from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.drivers.prompt import GamePrompt
from ludus.envs.city.learned import ENOUGH, LearnedPictures, likeness
from ludus.envs.city.perception.reading import Date, Reading
from ludus.envs.city.profile import GameProfile

FieldReader: TypeAlias = Callable[[Frame, str], Reading]
"""Reads a field of the profile, by its name, off a whole picture."""

LEAST_CONTRAST = 3.0  # standard deviation of a picture's values; an empty window has 0
_SAME_VALUE = 1e-6


def prove_picture(frame: Frame, what: str) -> None:
    """Raises if a picture shows nothing: an empty or black window is no game."""
    contrast = float(frame.std())
    if contrast < LEAST_CONTRAST:
        raise GameLostError(f"{what} is empty: the contrast is {contrast:.1f}, {LEAST_CONTRAST:g} at least is needed")


def prove_landmarks(profile: GameProfile, pictures: LearnedPictures, frame: Frame) -> None:
    """Raises if a landmark is not to be seen."""
    for landmark in profile.landmarks.values():
        pictures.check(landmark.region, profile.regions[landmark.region].cut(frame))


def prove_readings(profile: GameProfile, read: FieldReader, frame: Frame) -> None:
    """Raises if a field that every fresh city shows cannot be read now."""
    for name in profile.reset.expect:
        if not read(frame, name).is_readable:
            raise GameLostError(f"{name} of {profile.title} cannot be read; is it covered, or is this another game?")


def prove_truth(profile: GameProfile, prompt: GamePrompt | None) -> None:
    """Raises if the prompt does not answer what it must in a new city."""
    for truth in profile.reset.truth:
        answer = prompt.ask(truth.ask).strip() if prompt is not None else "nothing"
        if answer != truth.answer:
            raise GameLostError(f"the prompt answers {answer!r} to {truth.ask!r} in a new city, not {truth.answer!r}")


def prove_fresh(profile: GameProfile, pictures: LearnedPictures, read: FieldReader | None, frame: Frame) -> None:
    """Raises if the picture is not that of a city that has just begun."""
    for name in (*profile.reset.fresh, *([profile.paused_region] if profile.paused_region else [])):
        pictures.check(name, profile.regions[name].cut(frame))
    for name, value in profile.reset.expect.items() if read is not None else ():
        reading = read(frame, name)  # type: ignore[misc]
        if not _is_value(reading, value):
            raise GameLostError(f"{name} reads {reading.value!r} ({reading.text!r}) in a new city, not {value!r}")


def prove_terrain(seed: int, terrain: Frame, known: Mapping[int, Frame]) -> None:
    """Raises if the land is not that of the seed: not what it was before, or that of another seed."""
    prove_picture(terrain, "the land of a new city")
    if seed in known and likeness(known[seed], terrain) < ENOUGH:
        raise GameLostError(f"the land of seed {seed} is not what it was before")
    for other, land in known.items():
        if other != seed and np.array_equal(land, terrain):
            raise GameLostError(f"the land of seed {seed} is that of seed {other}: the city was not begun anew")


def _is_value(reading: Reading, wanted: float | str) -> bool:
    if isinstance(reading.value, Date):
        return f"{reading.value.year:04d}-{reading.value.month:02d}" == str(wanted)
    if isinstance(reading.value, float | int) and isinstance(wanted, float | int):
        return abs(reading.value - wanted) < _SAME_VALUE
    return reading.value is not None and str(reading.value) == str(wanted)
