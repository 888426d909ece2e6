"""Who uses a key of a run: the presets that set it; of a key that none sets, why there is one, by `justified.yaml`.

A key with neither fails the build: it has to go.
"""

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs.generate.markdown import code
from ruamel.yaml import YAML

import ludus

_JUSTIFIED = Path(__file__).with_name("justified.yaml")
_PRESETS = "presets/*.yaml"
_MOST = 3  # presets that a cell names


class UnusedKeyError(Exception):
    """A key of a run that no preset sets and that nothing justifies, or a justification of no key."""


def usage(path: str) -> str:
    """Return who uses a key of a run, such as `ppo.n_steps`; keys of phases begin with `curriculum[].`."""
    users = _users().get(path, ())
    if users:
        more = f" and {len(users) - _MOST} more" if len(users) > _MOST else ""
        return ", ".join(map(code, users[:_MOST])) + more
    for pattern, reason in justified().items():
        if path == pattern or fnmatch.fnmatchcase(path, pattern):  # brackets of lists are no pattern
            return reason
    raise UnusedKeyError(f"{path}: no preset sets it; delete it, or say in {_JUSTIFIED.name} which result supports it")


def check_justified(paths: Collection[str]) -> None:
    """Raise UnusedKeyError if a reason is given for keys that do not exist."""
    for pattern in justified():
        if not any(fnmatch.fnmatchcase(path, pattern) or path == pattern for path in paths):
            raise UnusedKeyError(f"{_JUSTIFIED.name}: no key is named {pattern}; delete the line")


@cache
def justified() -> Mapping[str, str]:
    """Return the reasons for keys that no preset sets, by patterns of their paths."""
    found: dict[str, str] = YAML(typ="safe").load(_JUSTIFIED.read_text(encoding="utf-8"))
    return found


@cache
def _users() -> Mapping[str, tuple[str, ...]]:
    """Return the presets that set a key, by its path; those that other presets extend count with these."""
    package = Path(next(iter(ludus.__path__)))
    found: dict[str, dict[str, None]] = {}
    for file in sorted(package.rglob(_PRESETS)):
        world = file.parents[1].name
        preset = f"gym {file.stem}" if world == "adapters" else f"{world} {file.stem}"
        for path in _paths(YAML(typ="safe").load(file.read_text(encoding="utf-8"))):
            found.setdefault(path, {})[preset] = None
    return {path: tuple(sorted(presets, key=lambda name: ("_" in name, name))) for path, presets in found.items()}


def _paths(value: Any, prefix: str = "") -> Iterator[str]:  # noqa: ANN401 - what a YAML file holds
    """Yield the dotted path of everything in a document; entries of lists share one, which ends in `[]`."""
    if prefix:
        yield prefix
    if isinstance(value, dict):
        for key, inner in value.items():
            name = str(key).removesuffix("+")
            yield from _paths(inner, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{prefix}[]")
