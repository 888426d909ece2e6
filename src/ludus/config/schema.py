"""Walks the annotations of settings models beside a document: which model, mapping or list belongs at which place."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Discriminator, RootModel, WrapValidator
from pydantic.fields import FieldInfo

from ludus.config.node import Node

_UNKNOWN: Any = Any


@dataclass(frozen=True, slots=True)
class Shape:
    """What may stand at one place, apart from null.

    Attributes:
        members: The alternatives, each as an annotation.
        discriminator: The key whose value chooses among them, if one does.
        short_form: Whether something else is turned into one of them first, such as a number into a schedule.
    """

    members: tuple[Any, ...]
    discriminator: str | None = None
    short_form: bool = False

    @property
    def only(self) -> Any:  # noqa: ANN401 - an annotation can be anything
        """The one alternative, or `Any` if there are several."""
        return self.members[0] if len(self.members) == 1 else _UNKNOWN

    def tags(self) -> dict[str, Any]:
        """Returns the alternatives by their values of the discriminator."""
        return {tag: member for member in self.members for tag in _tags(member, self.discriminator)}

    def labelled(self, label: str) -> Any:  # noqa: ANN401
        """Returns the alternative that pydantic calls `label`, or `Any`."""
        if self.discriminator is not None:
            return self.tags().get(label, _UNKNOWN)
        for member in self.members:
            bare = shape_of(member).only
            if isinstance(bare, type) and bare.__name__ == label:
                return member
        for member in self.members:
            kind = get_origin(shape_of(member).only)
            name = "literal" if kind is Literal else getattr(kind, "__name__", None)
            if name is not None and f"{name}[" in label:
                return member
        return _UNKNOWN


def shape_of(annotation: Any) -> Shape:  # noqa: ANN401
    """Returns what an annotation allows, without the wrappings."""
    discriminator: str | None = None
    short_form = False
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            annotation, *metadata = get_args(annotation)
            for item in _flat(metadata):
                short_form = short_form or isinstance(item, BeforeValidator | WrapValidator)
                discriminator = _discriminator(item) or discriminator
        elif isinstance(annotation, type) and issubclass(annotation, RootModel):
            annotation = field_annotation(annotation.model_fields["root"])
        elif get_origin(annotation) in (Union, types.UnionType):
            members = tuple(member for member in get_args(annotation) if member is not types.NoneType)
            if len(members) != 1:
                return Shape(members, discriminator, short_form)
            annotation = members[0]
        else:
            return Shape((annotation,), None, short_form)


def field_annotation(field: FieldInfo) -> Any:  # noqa: ANN401
    """Returns the annotation of a model's field with all that belongs to it."""
    return Annotated[field.annotation, field]


def field_names(model: type[BaseModel]) -> tuple[str, ...]:
    """Returns the keys that a model takes, as they are written in a document."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def as_model(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """Returns the model that stands at a place, if it is one and only one."""
    only = shape_of(annotation).only
    return only if isinstance(only, type) and issubclass(only, BaseModel) else None


def literals(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Returns the words that a place allows, if it allows only certain words."""
    only = shape_of(annotation).only
    return tuple(str(word) for word in get_args(only)) if get_origin(only) is Literal else ()


def child_annotation(annotation: Any, part: str | int) -> Any:  # noqa: ANN401
    """Returns the annotation of what stands under a key or index; `Any` where that is not known."""
    only = shape_of(annotation).only
    model = as_model(annotation)
    if model is not None:
        for name, field in model.model_fields.items():
            if part in (name, field.alias):
                return field_annotation(field)
        return _UNKNOWN
    origin, arguments = get_origin(only), get_args(only)
    if not isinstance(origin, type) or not arguments:
        return _UNKNOWN
    if issubclass(origin, Mapping):
        return arguments[1]
    if origin is tuple and isinstance(part, int) and Ellipsis not in arguments:
        return arguments[part] if part < len(arguments) else _UNKNOWN
    return arguments[0] if issubclass(origin, Sequence | set | frozenset) else _UNKNOWN


def key_annotation(annotation: Any) -> Any:  # noqa: ANN401
    """Returns the annotation of the keys of a mapping."""
    arguments = get_args(shape_of(annotation).only)
    return arguments[0] if arguments else _UNKNOWN


def chosen(annotation: Any, node: Node) -> Any:  # noqa: ANN401
    """Returns the alternative that a document's value chooses by its discriminator, or the annotation itself."""
    shape = shape_of(annotation)
    tag = node.child(shape.discriminator) if shape.discriminator is not None else None
    return shape.tags().get(str(tag.content), _UNKNOWN) if tag is not None else annotation


def _flat(metadata: Sequence[Any]) -> Iterator[Any]:
    for item in metadata:
        yield item
        if isinstance(item, FieldInfo):
            yield from item.metadata


def _discriminator(item: object) -> str | None:
    found = item.discriminator if isinstance(item, FieldInfo | Discriminator) else None
    found = found.discriminator if isinstance(found, Discriminator) else found
    return found if isinstance(found, str) else None


def _tags(member: Any, discriminator: str | None) -> tuple[str, ...]:  # noqa: ANN401
    shape = shape_of(member)
    if len(shape.members) > 1:
        return tuple(tag for inner in shape.members for tag in _tags(inner, discriminator))
    model = as_model(member)
    field = model.model_fields.get(discriminator) if model is not None and discriminator is not None else None
    return literals(field_annotation(field)) if field is not None else ()
