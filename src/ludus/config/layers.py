"""Layers of configuration: presets, `extends` and overrides; later layers win, and every value keeps its origin.

Annotations of the settings models say which model, mapping or list belongs at which path of a document.
"""

import itertools
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Discriminator, RootModel, WrapValidator
from pydantic.fields import FieldInfo

from ludus.config.nodes import Node, Origin, cut, mask, short, show_path, single, suggest
from ludus.config.yaml import MAX_CONFIG_BYTES, MAX_NESTING, Document, parse_document, read_document
from ludus.core.errors import ConfigFault, UnknownNameError

_UNKNOWN: Any = Any

EXTENDS = "extends"
MAX_PARENTS = 20
_FILE_ENDINGS = (".yaml", ".yml")
_PART = re.compile(r'"([^"]*)"|([^".=]+)')
_LONGEST_SHOWN = 80
_EXAMPLE = "write key.path=value, such as ppo.n_steps=128"
_ENDING = ".yaml"


@dataclass(frozen=True, slots=True)
class Shape:
    """Values allowed at one path, apart from null.

    Attributes:
        members: The alternatives, each as an annotation.
        discriminator: The key whose value chooses among them, if one does.
        short_form: Whether a validator expands a short form first, such as a number to a schedule.
    """

    members: tuple[Any, ...]
    discriminator: str | None = None
    short_form: bool = False

    @property
    def only(self) -> Any:  # noqa: ANN401 - an annotation can be anything
        """The one alternative, or `Any` if there are several."""
        return self.members[0] if len(self.members) == 1 else _UNKNOWN

    def tags(self) -> dict[str, Any]:
        """Return the alternatives by their values of the discriminator."""
        return {tag: member for member in self.members for tag in _tags(member, self.discriminator)}

    def labelled(self, label: str) -> Any:  # noqa: ANN401
        """Return the alternative that pydantic calls `label`, or `Any`."""
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
    """Return what an annotation allows, without its wrappers."""
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
    """Return the annotation of a model's field with its metadata."""
    return Annotated[field.annotation, field]


def field_names(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a model, as they are written in a document."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def as_model(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """Return the model of an annotation, if it is exactly one."""
    only = shape_of(annotation).only
    return only if isinstance(only, type) and issubclass(only, BaseModel) else None


def literals(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the words that an annotation allows, if it is a literal."""
    only = shape_of(annotation).only
    return tuple(str(word) for word in get_args(only)) if get_origin(only) is Literal else ()


def child_annotation(annotation: Any, part: str | int) -> Any:  # noqa: ANN401
    """Return the annotation of a key or index; `Any` where that is unknown."""
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
    """Return the annotation of the keys of a mapping."""
    arguments = get_args(shape_of(annotation).only)
    return arguments[0] if arguments else _UNKNOWN


def chosen(annotation: Any, node: Node) -> Any:  # noqa: ANN401
    """Return the alternative chosen by the discriminator of a value, or the annotation itself."""
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


class PresetDirectory:
    """The presets of a package, or its files of another kind, one YAML file each; empty without the folder.

    Attributes:
        package: The package.
        kind: Kind of the files; the folder has its plural as a name.
    """

    def __init__(self, package: str, kind: str = "preset") -> None:
        """Open the directory of a package such as `ludus.worlds.brawl`; an empty name is an empty directory."""
        self.package, self.kind = package, kind

    def names(self) -> tuple[str, ...]:
        """Return the names of all files, sorted; a file whose name begins with `_` is a base for others."""
        return tuple(name for name in self._stems() if not name.startswith("_"))

    def file(self, name: str) -> Path:
        """Return the file of a name.

        Raises:
            UnknownNameError: There is no such file.
        """
        folder = self._folder()
        if folder is None or name not in self._stems():
            raise UnknownNameError(self.kind, name, self.names() or ("none",))
        return folder / f"{name}{_ENDING}"

    def about(self, name: str) -> str:
        """Return the description of a file: the comment at its start."""
        with self.file(name).open(encoding="utf-8") as stream:
            comment = itertools.takewhile(lambda line: line.startswith("#"), stream)
            return " ".join(line.strip("# \n") for line in comment)

    def _stems(self) -> tuple[str, ...]:
        folder = self._folder()
        if folder is None or not folder.is_dir():
            return ()
        return tuple(sorted(file.stem for file in folder.iterdir() if file.suffix == _ENDING))

    def _folder(self) -> Path | None:
        return Path(str(files(self.package) / f"{self.kind}s")) if self.package else None


def read_layers(file: Path, presets: PresetDirectory) -> list[Document]:
    """Read a file and all that it extends, the most general first.

    `extends: NAME` names a file of the directory; `extends: other.yaml` or `extends: folder/other.yaml` a file
    relative to the extending file, which also holds the fault if that cannot be followed. All files together have the
    size limit of one, since reading takes seconds per 200 kB.
    """
    return extended_layers(read_document(file), file, presets)


def extended_layers(document: Document, file: Path, presets: PresetDirectory) -> list[Document]:
    """Return a document and all that it extends, like `read_layers`; `file` is where it was, or would be, written."""
    documents: list[Document] = []
    followed: list[Path] = []
    while True:
        parent = document.root.child(EXTENDS)
        documents.append(replace(document, root=document.root.without(EXTENDS)))
        if parent is None:
            break
        followed.append(file.resolve())
        following, fault = _parent_file(parent, file, followed, presets)
        if fault is not None:
            documents[-1] = replace(documents[-1], faults=(*documents[-1].faults, fault), readable=False)
        if following is None:
            break
        file, document = following, read_document(following)
    return documents[::-1]


def _parent_file(
    node: Node, child: Path, followed: Sequence[Path], presets: PresetDirectory
) -> tuple[Path | None, ConfigFault | None]:
    """Return the extended file, or the fault."""

    def fault(expectation: str, hint: str = "") -> tuple[None, ConfigFault]:
        return None, ConfigFault(str(node.origin), EXTENDS, expectation, short(node.plain()), hint)

    name = node.content
    if not isinstance(name, str) or not name:
        return fault(f"should be the name of a {presets.kind} or a file beside this one")
    if "/" in name or name.endswith(_FILE_ENDINGS):
        if Path(name).is_absolute():
            return fault("should be a path relative to this file")
        parent = child.parent / name
        if not _is_file(parent):
            return fault(f"there is no file {short(str(parent))}")
    elif name in presets.names():
        parent = presets.file(name)
    else:
        return fault(
            f"should be a {presets.kind}, or the path of a file ending in .yaml", suggest(name, presets.names())
        )
    if parent.resolve() in followed:
        chain = " -> ".join(path.name for path in (*followed[followed.index(parent.resolve()) :], parent))
        return fault(f"is a circular reference: {chain}")
    if len(followed) > MAX_PARENTS:
        return fault(f"more than {MAX_PARENTS} files extend each other")
    if (total := sum(map(_size_bytes, (*followed, parent)))) > MAX_CONFIG_BYTES:
        return fault(f"files that extend each other have {total} bytes in all; at most {MAX_CONFIG_BYTES} are read")
    return parent, None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no permission, or a name that is too long
        return False


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reading it reports why
        return 0


def merge_layers(layers: Sequence[Node], annotation: Any = Any) -> Node:  # noqa: ANN401 - whatever a model says
    """Merge layers: sections key by key; for a list or scalar (also null) the last layer wins.

    A mapping whose keys are free, such as `opponents`, replaces the earlier one, unless its key is written with a plus
    (`opponents+`) or an override names one of its keys (`opponents.based=2`): then it adds to it. A mapping whose
    discriminator (`kind`) changes replaces the earlier one too. `annotation` tells where there are such mappings.
    """
    start = Origin("command line")
    merged = Node({}, start, start)
    for layer in layers:
        merged = _merge(merged, layer, annotation)
    return merged


def _merge(lower: Node, upper: Node, annotation: Any) -> Node:  # noqa: ANN401
    if not isinstance(lower.content, dict) or not isinstance(upper.content, dict):
        return upper
    if _has_free_keys(annotation) and not upper.adds:
        return upper
    discriminator = shape_of(annotation).discriminator
    if discriminator is not None:
        before, after = lower.child(discriminator), upper.child(discriminator)
        if after is not None and before is not None and before.content != after.content:
            return upper
        annotation = chosen(annotation, upper if after is not None else lower)
    merged = dict(lower.content)
    for written_key, written_node in upper.content.items():
        key, node = _addressed(written_key, written_node, annotation)
        earlier = merged.get(key) or Node({}, node.origin, node.key_origin)
        merged[key] = _merge(earlier, node, child_annotation(annotation, key))
    # The mappings that an override implies have no position of their own; prefer that in a file.
    written = upper if upper.origin.line is not None or lower.origin.line is None else lower
    return Node(merged, written.origin, written.key_origin)


def _has_free_keys(annotation: Any) -> bool:  # noqa: ANN401
    """Return whether a mapping is a list of values by names that users choose, such as weights.

    The keys of `dict[str, Any]` belong to a world; values that are models are sections with a name, which merge, unless
    they have a short form, as the path of a weight has in a number.
    """
    only = shape_of(annotation).only
    origin, arguments = get_origin(only), get_args(only)
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping) and bool(arguments)
    if not is_mapping or arguments[1] is Any:
        return False
    return as_model(arguments[1]) is None or shape_of(arguments[1]).short_form


def _addressed(key: str, node: Node, annotation: Any) -> tuple[str, Node]:  # noqa: ANN401
    """Return the key that is meant, without its plus, and the node that then adds."""
    name = key.removesuffix("+")
    if name != key and _has_free_keys(child_annotation(annotation, name)):
        return name, replace(node, adds=True)
    return key, node


def read_overrides(words: Sequence[str]) -> list[Document]:
    """Return one layer per `key.path=value`, in order.

    A key with dots or equals signs of its own is quoted: `opponents."based:delay=8"=0.5`.
    """
    return [_read_override(word) for word in words]


def _read_override(word: str) -> Document:
    origin = Origin(f"command line: {_shown(word)}")
    path, value = _split(word)
    if not path:
        return _rejected(origin, word, f"should be a key, an equals sign and a value; {_EXAMPLE}")
    if len(path) > MAX_NESTING:
        return _rejected(origin, word, f"is a path of more than {MAX_NESTING} keys")
    document = parse_document(value, origin.source, on_command_line=True)
    faults = tuple(replace(fault, key=show_path(tuple(path))) for fault in document.faults)
    return Document(single(path, document.root), faults, document.readable)


def _split(word: str) -> tuple[list[str], str]:
    """Return the keys and the value of an override; no keys if it is malformed."""
    keys: list[str] = []
    place = 0
    while part := _PART.match(word, place):
        keys.append(part.group(1) if part.group(2) is None else part.group(2).strip())
        place = part.end()
        if word[place : place + 1] == "=":
            return keys, word[place + 1 :]
        if word[place : place + 1] != ".":
            break
        place += 1
    return [], ""


def _rejected(origin: Origin, word: str, expectation: str) -> Document:
    fault = ConfigFault(str(origin), short(word), expectation)
    return Document(Node({}, origin, origin), (fault,), readable=False)


def _shown(word: str) -> str:
    return cut(mask(word.encode("unicode_escape").decode("ascii")), _LONGEST_SHOWN)
