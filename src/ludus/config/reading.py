"""Reads layers of configuration into a frozen model, or says everything that is wrong with them at once."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from ludus.config.explain import explain
from ludus.config.layers import merge_layers
from ludus.config.node import TOP_LEVEL, KeyPath, Node, Origin
from ludus.config.reader import MAX_FAULTS, Document
from ludus.config.schema import field_names
from ludus.config.shown import short
from ludus.core.errors import ConfigFileError
from ludus.core.faults import ConfigFault

ModelT = TypeVar("ModelT", bound=BaseModel)
Check: TypeAlias = Callable[[Node], Sequence[ConfigFault]]
"""Looks at the merged document for what the model itself cannot know, and returns the faults."""

_MAX_EXPLAINED = 1_000  # faults of one document that are looked at; finding the nearest name of each takes a while
_PLACE = re.compile(r"(.*):(\d+):(\d+)", re.DOTALL)


class Origins:
    """Says where each value of a resolved configuration comes from."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def of(self, path: KeyPath) -> Origin | None:
        """Returns where the value at a path was written, or None if it is the model's default.

        A value that the model made of a shorter form, such as `level` of `clip: 0.2`, comes from where that is written.
        """
        node = self.root
        for part in path:
            child = node.child(part)
            if child is None:
                return None if isinstance(node.content, dict) else node.origin
            node = child
        return node.key_origin if isinstance(node.content, dict) else node.origin


def read_config(model: type[ModelT], layers: Sequence[Document], checks: Sequence[Check] = ()) -> ModelT:
    """Returns the settings that the layers give together; a later layer wins.

    Raises:
        ConfigFileError: With every fault of every layer: its place, key, expectation and the nearest valid key.
    """
    return read_config_with_origins(model, layers, checks)[0]


def read_config_with_origins(
    model: type[ModelT], layers: Sequence[Document], checks: Sequence[Check] = ()
) -> tuple[ModelT, Origins]:
    """Does what `read_config` does, and also says where each value comes from."""
    layers = [_as_mapping(model, layer) for layer in layers]
    faults = [fault for layer in layers for fault in layer.faults]
    if not all(layer.readable for layer in layers):
        raise ConfigFileError(faults)
    root = merge_layers([layer.root for layer in layers], model)
    config, found = _validate(model, root)
    # A fault of the YAML makes one of the schema at the same place, and that one of a check; the first says enough.
    for later in (found, [fault for check in checks for fault in check(root)]):
        known = {fault.place for fault in faults}
        faults += [fault for fault in later if fault.place not in known]
    if faults or config is None:
        in_order = sorted(faults, key=partial(_order, sources=[layer.root.origin.source for layer in layers]))
        raise ConfigFileError(in_order[:MAX_FAULTS], left_out=max(len(faults) - MAX_FAULTS, 0))
    return config, Origins(root)


def part_check(path: tuple[str, ...], model: type[BaseModel]) -> Check:
    """Returns a check of a part that the main model leaves open, such as a world's own settings, by its own model."""

    def check(root: Node) -> Sequence[ConfigFault]:
        part = root.find(path)
        if part is None or not isinstance(part.content, dict):
            return ()
        return _validate(model, part, path)[1]

    return check


def _validate(model: type[ModelT], root: Node, prefix: KeyPath = ()) -> tuple[ModelT | None, list[ConfigFault]]:
    try:
        return model.model_validate(root.plain()), []
    except ValidationError as error:
        return None, explain(model, root, error.errors(include_url=False)[:_MAX_EXPLAINED], prefix)


def _as_mapping(model: type[BaseModel], layer: Document) -> Document:
    """Returns a layer that is a mapping: an empty document is an empty one, anything else is a fault."""
    root = layer.root
    if isinstance(root.content, dict) or not layer.readable:
        return layer
    if root.content is None:
        return replace(layer, root=replace(root, content={}))
    hint = f"keys: {', '.join(field_names(model))}"
    fault = ConfigFault(str(root.origin), TOP_LEVEL, "should be a mapping", short(root.plain()), hint)
    return Document(root, (*layer.faults, fault), readable=False)


def _order(fault: ConfigFault, sources: Sequence[str]) -> tuple[int, int, int]:
    """Puts faults in the order in which a person reads: layer by layer, from top to bottom."""
    place = _PLACE.fullmatch(fault.place)
    source, line, column = place.groups() if place else (fault.place, "0", "0")
    return (sources.index(source) if source in sources else len(sources)), int(line), int(column)
