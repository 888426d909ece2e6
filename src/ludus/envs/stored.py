"""Settings that come from a file: data, whatever they say.

Agent files, replays and run folders are shared, so their settings are untrusted: they may be wrong, never dangerous,
and name no file, folder, program, module or host. A setting that does name something outside is marked in the model of
the world by `OutsideName`; paths need no mark. Unmarked text must be a plain word, so that an unforeseen setting, such
as an argument of a Gymnasium environment, cannot name a file either.

Three things lift the rule, all of them acts of the user: a name that ships with Ludus; a file or folder named with
`--allow-files` (or `LUDUS_ALLOW_FILES`, which processes inherit); and a run that this user started here, whose
settings were remembered then (`remember_own_config`). A file that is code, such as a City profile,
which starts programs, has to be named itself: allowing its folder is not enough.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from ludus.config.layers import child_annotation
from ludus.config.nodes import KeyPath, show_path
from ludus.config.validation import user_folder
from ludus.core.errors import ConfigError, FormatError, StoreError, brief
from ludus.core.files import read_regular, write_atomic
from ludus.envs.world import Lazy, known_world, resolve

logger = logging.getLogger(__name__)

ALLOW_VARIABLE = "LUDUS_ALLOW_FILES"
CONFIG_FILE = "config.yaml"  # of a run
_MAX_CONFIG_BYTES = 1 << 20
# Values and letters of settings in a file; the longest of ours have 200. A map of a Gymnasium environment is drawn in
# letters, and each can cost it a kilobyte.
MOST_SETTINGS = 20_000
_MOST_SHOWN = 5  # faults of one error
_PLAIN = re.compile(r"[\w+-]([\w +-]{0,198}[\w+-])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class OutsideName:
    """Marks a setting, in its annotation, whose value names something outside the settings.

    Attributes:
        kind: What it names, for errors.
        is_shipped: Tell whether a name is one that ships with Ludus; None if none does.
        is_code: Whether what it names can start programs.
    """

    kind: str
    is_shipped: Lazy[Callable[[str], bool]] | None = None
    is_code: bool = False


_UNMARKED = OutsideName("file or module")  # as far as anyone can tell: it is no plain word


@dataclass(frozen=True, slots=True)
class Outside:
    """A value that names something outside.

    Attributes:
        path: Where it is in the settings.
        value: The name.
        what: What kind of thing it names.
    """

    path: KeyPath
    value: str
    what: OutsideName

    def fault(self) -> str:
        """Return what is wrong about it in a file, and what allows it."""
        said = f"{show_path(self.path)} names a {self.what.kind}, {brief(self.value)}"
        allow = "with --allow-files (in Python: ludus.allow_files)"
        if self.what.is_code:
            return f"{said}, which can start programs: if you trust it, name that very file {allow}"
        return f"{said}: if you trust it, name it or its folder {allow}"


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """The settings of a world as a file says them.

    Attributes:
        values: What it says, without any check.
        owner: Whose they are, for errors, such as `the agent mine.ludus`.
        config: The configuration of their run, sweep or league, which may be the user's own; see `remember_own_config`.
        is_trusted: Whether they do not come from a file at all, but from the user's own code.
    """

    values: Mapping[str, Any]
    owner: str = "the settings"
    config: Path | None = None
    is_trusted: bool = False

    def checked(self, world: str, over: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings, to be used.

        Args:
            world: The world whose settings they are.
            over: What the user says instead: the names of these settings are not used, so they are not checked.

        Raises:
            ConfigError: They name something outside that the user has not allowed, or are too many.
        """
        if not self.is_trusted:
            if (size := _size(self.values)) > MOST_SETTINGS:
                raise ConfigError(f"{self.owner} has {size} values and letters of settings; at most {MOST_SETTINGS}")
            outside = [each for each in outside_names(world, self.values) if not _is_replaced(each.path, over)]
            self._check([each for each in outside if not is_allowed(each, self.config)])
        return dict(self.values)

    def _check(self, refused: list[Outside]) -> None:
        faults = [each.fault() for each in refused]
        if faults:
            more = f"; and {len(faults) - _MOST_SHOWN} more" if len(faults) > _MOST_SHOWN else ""
            raise ConfigError(
                f"{self.owner} may not name anything outside itself: {'; '.join(faults[:_MOST_SHOWN])}{more}"
            )


def _size(value: Any) -> int:  # noqa: ANN401 - of a file
    """Return the number of values and of letters."""
    if isinstance(value, Mapping):
        return sum(_size(key) + _size(inner) for key, inner in value.items())
    return (
        sum(map(_size, value)) if isinstance(value, list | tuple) else len(str(value)) if isinstance(value, str) else 1
    )


def outside_names(world: str, values: Mapping[str, Any]) -> Iterator[Outside]:
    """Yield everything in settings of a world that names, or may name, something outside; without shipped names."""
    record = known_world(world)
    model = None if record is None or record.config is None else resolve(record.config)
    yield from _outside(Any if model is None else model, values, ())


def _outside(annotation: Any, value: Any, path: KeyPath) -> Iterator[Outside]:  # noqa: ANN401 - of a file
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or not _PLAIN.fullmatch(key):
                yield Outside((*path, str(key)), str(key), _UNMARKED)
            yield from _outside(child_annotation(annotation, str(key)), inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _outside(child_annotation(annotation, index), inner, (*path, index))
    elif isinstance(value, str | PurePath):
        what = _what(annotation, str(value))
        if what is not None and (what.is_shipped is None or not resolve(what.is_shipped)(str(value))):
            yield Outside(path, str(value), what)


def _what(annotation: Any, value: str) -> OutsideName | None:  # noqa: ANN401
    """Return what a text names outside; None if it is a plain word."""
    parts = [*_parts(annotation)]
    marked = next((part for part in parts if isinstance(part, OutsideName)), None)
    if marked is not None:
        return marked
    if any(isinstance(part, type) and issubclass(part, PurePath) for part in parts):
        return OutsideName("file")
    if any(get_origin(part) is Literal and value in get_args(part) for part in parts) or _PLAIN.fullmatch(value):
        return None
    return _UNMARKED


def _parts(annotation: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the bare types of an annotation, with all metadata around them."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        for item in metadata:
            yield from item.metadata if isinstance(item, FieldInfo) else (item,)
        yield from _parts(inner)
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _parts(member)
    else:
        yield annotation


def _is_replaced(path: KeyPath, over: Mapping[str, Any] | None) -> bool:
    """Return whether settings that are laid over others say something else at a path."""
    value: Any = over
    for part in path:
        if not isinstance(value, Mapping):
            return value is not None
        if part not in value:
            return False
        value = value[part]
    return True


def allow_files(path: str | Path) -> None:
    """Let settings that come from files name files in a folder, or one file; also in processes started from now on.

    A file that is code, such as a game profile for City, which starts programs, has to be named itself.

    Raises:
        ConfigError: There is no such file or folder.
    """
    found = Path(path)
    if not found.exists():
        raise ConfigError(f"--allow-files {found}: there is no such file or folder {found.absolute()}")
    allowed = os.environ.get(ALLOW_VARIABLE, "")
    os.environ[ALLOW_VARIABLE] = os.pathsep.join(filter(None, (allowed, str(found.resolve()))))


def is_allowed(outside: Outside, config: Path | None = None) -> bool:
    """Return whether the user has allowed what is named: with `allow_files`, or in a configuration of their own."""
    found = Path(_identity(outside.value))
    allowed = [Path(each) for each in os.environ.get(ALLOW_VARIABLE, "").split(os.pathsep) if each]
    if any(found == each or (each in found.parents and not outside.what.is_code) for each in allowed):
        return True
    return config is not None and _identity(outside.value) in _known_names(config)


def remember_own_config(content: str, named: Sequence[Outside]) -> None:
    """Remember what the configuration of a run, sweep or league of this user names, so that it may go on naming it.

    The record is a file named by the SHA-256 of the configuration. A copied folder with the same configuration gains
    nothing: the record holds absolute paths, which still lead to the user's own files.
    """
    if named:
        target = _own_configs() / hashlib.sha256(content.encode()).hexdigest()
        try:
            write_atomic(target, json.dumps(sorted({_identity(each.value) for each in named})).encode())
        except StoreError as error:
            logger.warning("[WARN] %s: resume and evaluate this run with --allow-files", error)


def _known_names(config: Path) -> frozenset[str]:
    """Return what a configuration names outside if this user trained with it on this machine; else nothing."""
    try:
        content = read_regular(config, limit=_MAX_CONFIG_BYTES)
        kept = read_regular(_own_configs() / hashlib.sha256(content).hexdigest(), limit=_MAX_CONFIG_BYTES)
    except FormatError:
        return frozenset()
    return frozenset(json.loads(kept))


def _identity(value: str) -> str:
    """Return the whole path of a file that is there; other names as they are."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        return str(Path(value).resolve(strict=True))
    return f"={value}"


def _own_configs() -> Path:
    """Return `$XDG_STATE_HOME/ludus/own`, else `~/.local/state/ludus/own`."""
    return user_folder("XDG_STATE_HOME", "~/.local/state") / "own"
