"""The modes in which a run evaluates its agent, read from a checkpoint, so that a command can play them again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ludus.core.errors import CheckpointError
from ludus.envs.overrides import with_overrides
from ludus.policies.finding import find_checkpoint
from ludus.store import load_checkpoint, read_manifest

_CONFIG = "config"


def stored_modes(path: str | Path) -> dict[str, dict[str, Any]]:
    """Returns the world's settings of every mode by name; none if the run has no modes, or there is no run.

    Args:
        path: Folder of a run or a checkpoint, or a file of `ludus export`, which knows no modes.

    Raises:
        CheckpointError: There is no checkpoint, or its settings are not those of a run.
    """
    if Path(path).is_file():
        return {}
    folder = find_checkpoint(Path(path)).path
    if f"{_CONFIG}.json" not in read_manifest(folder).files:  # an agent that was saved alone, such as a snapshot
        return {}
    try:
        return _modes(load_checkpoint(folder, parts=(_CONFIG,)).documents[_CONFIG])
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(folder, f"{_CONFIG}.json", f"is not that of a run: {error!r}") from error


def _modes(config: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - whatever a file holds
    evaluation = config.get("evaluation") or {}
    world, settings = str(config["world"]["name"]), _mapping(config["world"].get("settings"))
    common, modes = _mapping(evaluation.get("settings")), _mapping(evaluation.get("modes"))
    return {str(name): with_overrides(world, settings, common, _mapping(own)) for name, own in modes.items()}


def _mapping(value: Any) -> Mapping[str, Any]:  # noqa: ANN401
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no mapping")
    return value or {}
