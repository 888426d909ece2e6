"""What several tests of the walker need: OpenGL, where the machine has it, and references that are made once."""

from collections.abc import Iterator

import pytest

from ludus.core.errors import VideoError
from ludus.worlds.mimic import env
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.reference import Reference, normal_reference
from ludus.worlds.mimic.rendering.gl import open_context


@pytest.fixture(scope="session", autouse=True)
def references() -> Iterator[None]:
    """Make the reference of every kind of walker once: it takes longer than the rest of an environment together."""
    made: dict[str, Reference] = {}

    def remember(walker: Walker) -> Reference:
        if walker.text not in made:
            made[walker.text] = normal_reference(walker)
        return made[walker.text]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(env, "normal_reference", remember)
        yield


@pytest.fixture(scope="session")
def opengl() -> None:
    """Skip a test that draws on a machine that cannot."""
    try:
        open_context(64, 64).free()
    except VideoError as error:
        pytest.skip(f"needs OpenGL, from the Debian packages libegl1 and libegl-mesa0, or libosmesa6: {error}")
