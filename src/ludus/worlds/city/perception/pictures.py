"""Pictures in memory and in files, by OpenCV, which is imported where it is needed first.

No game art ships with Ludus. What a landmark, a date or a tool of a game looks like is captured on its first launch,
after the window, the process and the prompt have been checked, and must look the same from then on.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import GameLostError, MissingDependencyError
from ludus.core.files import read_if_possible, write_atomic
from ludus.worlds.city.drivers.driver import Frame


def opencv(purpose: str) -> Any:  # noqa: ANN401 - a module
    """Return the module cv2; raise MissingDependencyError, which names the purpose, if it is not installed."""
    try:
        import cv2
    except ImportError as error:
        raise MissingDependencyError("opencv-python-headless", "city", purpose) from error
    return cv2


def png(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture `(height, width, 3)` as a PNG file."""
    cv2 = opencv("writing pictures")
    _, content = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))  # raises if it cannot
    return bytes(content)


_MAX_BYTES = 4_000_000
LIKENESS = 0.99  # share of equal pixels from which a part of the screen looks as it was learned


def cache_folder() -> Path:
    """Return where learned pictures are kept: `$XDG_CACHE_HOME/ludus/city`, else `~/.cache/ludus/city`."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "ludus" / "city"


def likeness(first: Frame, second: Frame) -> float:
    """Return the share of equal pixels of two pictures; 0 if they differ in size."""
    if first.shape != second.shape:
        return 0.0
    return float(np.mean(np.all(first == second, axis=-1)))


class LearnedPictures(dict[str, Frame]):
    """The pictures of one profile by the name of their region.

    Attributes:
        folder: Where they are kept; one folder per fingerprint, so that an edited profile relearns them.
    """

    def __init__(self, folder: Path) -> None:
        """Read what has been learned; invalid files are ignored."""
        found = {file.stem: read_picture(file) for file in sorted(folder.glob("*.png"))}
        super().__init__({name: picture for name, picture in found.items() if picture is not None})
        self.folder = folder

    def learn(self, pictures: Mapping[str, Frame]) -> None:
        """Save pictures, replacing those of the same names."""
        for name, picture in pictures.items():
            self[name] = picture.copy()
            write_atomic(self.folder / f"{name}.png", png(picture))

    def check(self, name: str, seen: Frame) -> None:
        """Raise GameLostError if a part of the screen does not look as it was learned."""
        alike = likeness(self[name], seen)
        if alike < LIKENESS:
            raise GameLostError(
                f"{name} does not look as expected: {alike:.1%} of its pixels match {self.folder / name}.png "
                f"({LIKENESS:.0%} are required); if the game itself has changed, remove that folder to relearn it"
            )


def read_picture(file: Path) -> Frame | None:
    """Return the picture `(height, width, 3)` in a file; None if it holds none."""
    cv2 = opencv("keeping pictures of a game")
    content = np.frombuffer(read_if_possible(file, limit=_MAX_BYTES) or b"", np.uint8)
    picture = cv2.imdecode(content, cv2.IMREAD_COLOR) if content.size else None
    return None if picture is None else np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)
