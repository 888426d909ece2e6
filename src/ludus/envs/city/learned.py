"""Pictures that are learned from a game: cut from its own screen when it is known to be fresh, kept in a user's cache.

Nothing of a game's art comes with Ludus. What a landmark, a date or a tool looks like is seen on the first launch, when
the game's window, process and prompt have been checked, and must look the same ever after.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ludus.core.errors import GameLostError
from ludus.core.files import write_atomic
from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.perception.opencv import opencv

ENOUGH = 0.99  # share of equal pixels from which two pictures are the same
_MAX_BYTES = 4_000_000


def cache_folder() -> Path:
    """Returns where learned pictures are kept: `$XDG_CACHE_HOME/ludus/city`, else `~/.cache/ludus/city`."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "ludus" / "city"


def likeness(first: Frame, second: Frame) -> float:
    """Returns the share of equal pixels of two pictures; 0 if they differ in size."""
    if first.shape != second.shape:
        return 0.0
    return float(np.mean(np.all(first == second, axis=-1)))


class LearnedPictures(Mapping[str, Frame]):
    """The pictures of one profile by the name of their region.

    Attributes:
        folder: Where they are kept; one folder for every state of a profile, so that an edited one learns anew.
    """

    def __init__(self, folder: Path) -> None:
        """Reads what has been learned; a file that is no picture counts as not there."""
        self.folder = folder
        self._pictures: dict[str, Frame] = {}
        if folder.is_dir():
            for file in sorted(folder.glob("*.png")):
                picture = _read_picture(file)
                if picture is not None:
                    self._pictures[file.stem] = picture

    def __getitem__(self, name: str) -> Frame:
        return self._pictures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pictures)

    def __len__(self) -> int:
        return len(self._pictures)

    def learn(self, pictures: Mapping[str, Frame]) -> None:
        """Keeps pictures, instead of those of the same names."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            self._pictures[name] = picture.copy()
            write_atomic(self.folder / f"{name}.png", _png(picture))

    def check(self, name: str, seen: Frame) -> None:
        """Raises if a part of the screen does not look as it was learned.

        Raises:
            GameLostError: It looks different; says how much, and where the learned picture is.
        """
        alike = likeness(self._pictures[name], seen)
        if alike < ENOUGH:
            raise GameLostError(
                f"{name} does not look as it should: {alike:.1%} of its pixels are as in {self.folder / name}.png "
                f"({ENOUGH:.0%} are enough); if the game itself has changed, remove that folder to learn it anew"
            )


def _png(picture: Frame) -> bytes:
    cv2 = opencv("keeping pictures of a game")
    encoded, content = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    if not encoded:
        raise GameLostError(f"a picture of shape {picture.shape} could not be written as PNG")
    return bytes(content)


def _read_picture(file: Path) -> Frame | None:
    cv2 = opencv("keeping pictures of a game")
    if file.stat().st_size > _MAX_BYTES:
        return None
    content = np.frombuffer(file.read_bytes(), np.uint8)
    picture = cv2.imdecode(content, cv2.IMREAD_COLOR) if content.size else None
    return None if picture is None else np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)
