"""Settings that are given in Python, as layers of configuration: they merge and fail like those of a file."""

from collections.abc import Mapping
from os import PathLike

import numpy as np
from pydantic import BaseModel

from ludus.config.nodes import KeyPath, Node, Origin, short, show_path
from ludus.config.yaml import MAX_NESTING, Document
from ludus.core.errors import ConfigFault


def as_document(value: object, source: str, path: KeyPath = ()) -> Document:
    """Return a value as a document: mappings, lists, tuples, text, numbers, booleans, None, paths and models.

    Args:
        value: Anything else in it becomes a fault.
        source: Where it was given, such as `ludus.train(ppo=...)`.
        path: Where the value belongs in the document; the document then holds nothing else.
    """
    faults: list[ConfigFault] = []
    origin = Origin(source)
    node = _node(value, origin, path, faults)
    for key in reversed(path):
        node = Node({str(key): node}, origin, origin)
    return Document(node, tuple(faults))


def _node(value: object, origin: Origin, path: KeyPath, faults: list[ConfigFault]) -> Node:
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, PathLike):
        value = str(value)
    elif isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_unset=True)
    expectation = ""
    if len(path) > MAX_NESTING:
        expectation = f"mappings and lists are nested deeper than {MAX_NESTING}"
    elif isinstance(value, Mapping):
        content = {str(key): _node(inner, origin, (*path, str(key)), faults) for key, inner in value.items()}
        return Node(content, origin, origin)
    elif isinstance(value, list | tuple):
        items = [_node(inner, origin, (*path, index), faults) for index, inner in enumerate(value)]
        return Node(items, origin, origin)
    elif value is None or isinstance(value, str | bool | int | float):
        return Node(value, origin, origin)
    else:
        expectation = "should be text, a number, true, false, None, a list or a mapping"
    faults.append(ConfigFault(str(origin), show_path(path), expectation, short(value)))
    return Node(None, origin, origin)
