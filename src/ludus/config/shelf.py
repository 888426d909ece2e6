"""The shelf of a world: its presets or suites, one YAML file each, in a folder of the world's package."""

from importlib.resources import files
from pathlib import Path

from ludus.core.errors import UnknownNameError

_ENDING = ".yaml"


class Shelf:
    """The presets of one package, or its files of another kind; a package without the folder has an empty shelf.

    Attributes:
        package: Whose files they are.
        kind: What one of them is; the folder has the name of several.
    """

    def __init__(self, package: str, kind: str = "preset") -> None:
        """Makes the shelf of a package such as `ludus.envs.brawl`; an empty name is an empty shelf."""
        self.package, self.kind = package, kind

    def names(self) -> tuple[str, ...]:
        """Returns the names of all files, sorted; a file whose name begins with `_` is for others to extend."""
        return tuple(name for name in self._stems() if not name.startswith("_"))

    def file(self, name: str) -> Path:
        """Returns the file of a name.

        Raises:
            UnknownNameError: There is none of this name.
        """
        folder = self._folder()
        if folder is None or name not in self._stems():
            raise UnknownNameError(self.kind, name, self.names() or ("none",))
        return folder / f"{name}{_ENDING}"

    def about(self, name: str) -> str:
        """Returns what a file says about itself: the comment in its first line."""
        with self.file(name).open(encoding="utf-8") as stream:
            first = stream.readline().strip()
        return first.lstrip("# ") if first.startswith("#") else ""

    def _stems(self) -> tuple[str, ...]:
        folder = self._folder()
        if folder is None or not folder.is_dir():
            return ()
        return tuple(sorted(file.stem for file in folder.iterdir() if file.suffix == _ENDING))

    def _folder(self) -> Path | None:
        return Path(str(files(self.package) / f"{self.kind}s")) if self.package else None
