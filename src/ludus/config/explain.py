"""Turns pydantic's faults into ours: place in the file, path of the key, plain words and the nearest valid name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from ludus.config.node import KeyPath, Node, show_path
from ludus.config.schema import (
    as_model,
    child_annotation,
    field_names,
    key_annotation,
    literals,
    shape_of,
)
from ludus.config.shown import short, suggest
from ludus.core.errors import nearest_name
from ludus.core.faults import ConfigFault

HIDDEN = "hidden_value"  # type of a fault whose value must not be shown, because it may be a secret

_UNKNOWN_KEY, _MISSING, _OF_KEY = "extra_forbidden", "missing", "[key]"
_WORDS = {
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "dict_type": "should be a mapping",
    "finite_number": "should be a finite number",
    "float_parsing": "should be a number",
    "float_type": "should be a number",
    "int_from_float": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "list_type": "should be a list",
    "mapping_type": "should be a mapping",
    "model_attributes_type": "should be a mapping",
    "model_type": "should be a mapping",
    "path_type": "should be a path",
    "string_type": "should be text",
    "tuple_type": "should be a list",
    _MISSING: "is required",
    _UNKNOWN_KEY: "unknown key",
}
_BY_VALIDATORS = ("value_error", "assertion_error")  # their messages name the values that matter


@dataclass(slots=True)
class _Walk:
    """How far a fault's location could be followed in the document.

    Attributes:
        node: The deepest value of the document on the way.
        annotation: What belongs at the end of the way.
        holder: What belongs one step before the end.
        path: Keys and indices on the way, as they are in the document.
        whole: Whether the document has everything on the way.
        is_key: Whether the fault is in a key instead of its value.
        union: Path of the first choice without a discriminator on the way, and the alternative taken there.
    """

    node: Node
    annotation: Any
    holder: Any = Any
    path: KeyPath = ()
    whole: bool = True
    is_key: bool = False
    union: tuple[KeyPath, str] | None = None

    def follow(self, location: Sequence[str | int]) -> None:
        for part in location:
            shape = shape_of(self.annotation)
            if len(shape.members) > 1 and isinstance(part, str):
                if shape.discriminator is None:
                    self.union = self.union or (self.path, part)
                self.annotation = shape.labelled(part)
            elif part == _OF_KEY:
                self.is_key, self.annotation = True, key_annotation(self.holder)
            else:
                self._enter(part)

    def _enter(self, part: str | int) -> None:
        self.holder, self.annotation = self.annotation, child_annotation(self.annotation, part)
        child = self.node.child(part) if self.whole else None
        if child is None:
            self.whole = False
        else:
            self.node, self.path = child, (*self.path, part)


def explain(
    model: type[BaseModel], root: Node, errors: Iterable[ErrorDetails], prefix: KeyPath = ()
) -> list[ConfigFault]:
    """Returns our faults for those that pydantic found in a document.

    Args:
        model: What the document was checked against.
        root: The document, or the part of it that belongs to the model.
        errors: Pydantic's faults.
        prefix: Where the part stands in the document.
    """
    faults: list[tuple[_Walk, ConfigFault]] = []
    for error in errors:
        walk = _Walk(root, model)
        walk.follow(error["loc"])
        faults.append((walk, _fault(walk, error, prefix)))
    return _without_untaken(faults)


def _fault(walk: _Walk, error: ErrorDetails, prefix: KeyPath) -> ConfigFault:
    kind = error["type"]
    node, path = walk.node, (*prefix, *walk.path)
    if kind == _MISSING:
        missing = str(error["loc"][-1])
        return ConfigFault(str(node.origin), show_path((*path, missing)), _WORDS[kind])
    expectation, hint = _words(error), ""
    if kind == _UNKNOWN_KEY:
        model = as_model(walk.holder)
        hint = suggest(str(path[-1]), field_names(model)) if model is not None else ""
    elif kind.startswith("union_tag"):
        return _tag_fault(walk, path)
    elif words := literals(walk.annotation):
        expectation = f"should be one of {', '.join(words)}"
        name = str(path[-1]) if walk.is_key else str(node.content)
        near = nearest_name(name, words)
        hint = f"did you mean {near!r}?" if near is not None else ""
    elif expectation == _WORDS["dict_type"]:
        hint = _mapping_hint(walk.annotation)
    at_key = walk.is_key or kind == _UNKNOWN_KEY
    is_shown = not (_is_secret(walk, kind) or (kind in _BY_VALIDATORS and _is_collection(node)))
    got = short(node.plain()) if is_shown else ""
    return ConfigFault(str(node.key_origin if at_key else node.origin), show_path(path), expectation, got, hint)


def _words(error: ErrorDetails) -> str:
    """Returns what was expected, in our words where we have some."""
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    message = error["msg"]
    for beginning in ("Input ", "Value error, ", "Assertion failed, "):
        message = message.removeprefix(beginning)
    return message


def _tag_fault(walk: _Walk, path: KeyPath) -> ConfigFault:
    """Returns the fault of a mapping that does not say which of several it is."""
    shape = shape_of(walk.annotation)
    key, tags = shape.discriminator or "kind", tuple(shape.tags())
    node = walk.node.child(key)
    shown = show_path((*path, key))
    if node is None:
        return ConfigFault(str(walk.node.origin), shown, f"is required: one of {', '.join(tags)}")
    near = nearest_name(str(node.content), tags)
    hint = f"did you mean {near!r}?" if near is not None else ""
    return ConfigFault(str(node.origin), shown, f"should be one of {', '.join(tags)}", short(node.plain()), hint)


def _mapping_hint(annotation: Any) -> str:  # noqa: ANN401 - an annotation can be anything
    """Says which keys the mapping that is asked for has."""
    model, shape = as_model(annotation), shape_of(annotation)
    if model is not None:
        return f"keys: {', '.join(field_names(model))}"
    if shape.discriminator is None:
        return ""
    short_form = ", or the short form of one" if shape.short_form else ""
    return f"with the key {shape.discriminator}, one of {', '.join(shape.tags())}{short_form}"


def _is_secret(walk: _Walk, kind: str) -> bool:
    model = as_model(walk.holder)
    return kind == HIDDEN or (model is not None and bool(model.model_config.get("hide_input_in_errors")))


def _is_collection(node: Node) -> bool:
    return isinstance(node.content, dict | list)


def _without_untaken(faults: list[tuple[_Walk, ConfigFault]]) -> list[ConfigFault]:
    """Keeps, of a choice without a discriminator, only the faults of the alternative that was probably meant.

    Pydantic lists the faults of every alternative. The one that was meant fits the value's form, so that its faults
    lie deeper than the choice; if no form fits, the expectations of all become one fault.
    """
    kept: list[ConfigFault] = []
    choices: dict[KeyPath, dict[str, list[tuple[_Walk, ConfigFault]]]] = {}
    for walk, fault in faults:
        if walk.union is None:
            kept.append(fault)
        else:
            place, alternative = walk.union
            choices.setdefault(place, {}).setdefault(alternative, []).append((walk, fault))
    for place, alternatives in choices.items():
        fitting = [
            [fault for _, fault in found]
            for found in alternatives.values()
            if all(len(walk.path) > len(place) or fault.expectation == _WORDS[_MISSING] for walk, fault in found)
        ]
        if fitting:
            kept.extend(sorted(fitting, key=len)[0])
        else:
            kept.append(_joined([found[0][1] for found in alternatives.values()]))
    return kept


def _joined(faults: list[ConfigFault]) -> ConfigFault:
    first = faults[0]
    expectations = dict.fromkeys(fault.expectation for fault in faults)
    hint = next((fault.hint for fault in faults if fault.hint), "")
    return ConfigFault(first.place, first.key, ", or ".join(expectations), first.got, hint)
