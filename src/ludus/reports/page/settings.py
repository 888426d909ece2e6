"""The configuration as a table: grouped by its top-level keys, with a column a group of runs, and what differs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GENERAL = "general"
# What may differ between seeds of one configuration: none of it changes what is learned.
_NOT_LEARNING = ("seed", "monitoring", "checkpoints", "guard")
_OFF = ("null", "false", "[]", "{}")  # a setting that an older version does not know is as good as switched off
_LONGEST = 400  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        path: Its key, such as `ppo.learning_rate.start`.
        values: What it is in each group, as text; None where a group has no such setting.
        differs: Whether groups differ in it.
    """

    path: str
    values: tuple[str | None, ...]
    differs: bool


def settings_by_part(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[Setting]]:
    """Returns all settings by top-level key; seeds of one group that differ are listed as `0, 1, 2`.

    Args:
        groups: The configurations of each group's runs; of runs whose configuration is lost, an empty one.
    """
    columns = [_merged([_flat(config) for config in configs]) for configs in groups]
    paths = dict.fromkeys(path for column in columns for path in column)
    parts: dict[str, list[Setting]] = {}
    for path in paths:
        values = tuple(column.get(path) for column in columns)
        differs = len({_meant(value) for value, column in zip(values, columns, strict=True) if column}) > 1
        part, _, rest = path.partition(".")
        parts.setdefault(part if rest else GENERAL, []).append(Setting(path, values, differs))
    return dict(sorted(parts.items(), key=lambda item: item[0] != GENERAL))


def learn_alike(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Says whether two configurations differ in nothing but the seed and what changes no learning."""
    ours, theirs = (
        _flat({name: value for name, value in config.items() if name not in _NOT_LEARNING})
        for config in (first, second)
    )
    return all(_meant(ours.get(path)) == _meant(theirs.get(path)) for path in {**ours, **theirs})


def _meant(value: str | None) -> str | None:
    return None if value in _OFF else value


def _merged(columns: Sequence[Mapping[str, str]]) -> dict[str, str]:
    paths = dict.fromkeys(path for column in columns for path in column)
    return {path: ", ".join(dict.fromkeys(column[path] for column in columns if path in column)) for path in paths}


def _flat(config: Mapping[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in config.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{path}.")
        else:
            found[path] = _shown(value)
    return found


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
