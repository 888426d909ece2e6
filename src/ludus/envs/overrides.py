"""Settings of a world with others laid over them, as stages of a curriculum and evaluations have them.

A part with fields of its own is changed field by field: `{"pushes": {"every_s": 2.0}}` leaves all else about pushes as
it was. Everything else is one value and is replaced as a whole: `{"setters": {"kickoff": 1}}` leaves no other setter.
"""

from collections.abc import Mapping
from typing import Any

from ludus.config.schema import as_model, child_annotation
from ludus.core.errors import UnknownNameError
from ludus.envs.registry import settings_model
from ludus.envs.trials import laid_over


def with_overrides(world: str, settings: Mapping[str, Any], *overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with others in their place, the last word counting.

    Args:
        world: Whose settings they are; of one that tells nothing of them, all mappings are merged.
        settings: What is changed; it stays as it is.
        overrides: What is laid over it.
    """
    merged = dict(settings)
    for override in overrides:
        if override:
            model = _model(world)
            merged = laid_over(merged, override) if model is None else _replaced(model, merged, override)
    return merged


def _replaced(annotation: Any, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    merged = dict(lower)
    for name, value in upper.items():
        inner, before = child_annotation(annotation, name), merged.get(name)
        is_part = as_model(inner) is not None and isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = _replaced(inner, before or {}, value) if is_part else value
    return merged


def _model(world: str) -> Any:  # noqa: ANN401 - a model, as an annotation
    try:
        return settings_model(world)
    except UnknownNameError:
        return None
