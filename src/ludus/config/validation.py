"""Validate layers of configuration into a frozen model, or report all faults at once with position and nearest key.

User defaults (name, device, folder of runs and report targets) come from one optional file outside all projects.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from ludus.config.layers import (
    as_model,
    child_annotation,
    field_names,
    key_annotation,
    literals,
    merge_layers,
    shape_of,
)
from ludus.config.nodes import TOP_LEVEL, KeyPath, Node, Origin, short, show_path, suggest
from ludus.config.yaml import MAX_FAULTS, Document, read_document
from ludus.core.errors import ConfigFault, ConfigFileError, nearest_name

ModelT = TypeVar("ModelT", bound=BaseModel)
Check: TypeAlias = Callable[[Node], Sequence[ConfigFault]]
"""Checks the merged document for what the model itself cannot know, and returns the faults."""

_MAX_EXPLAINED = 1_000  # faults explained per document; finding the nearest name of each takes a while
_PLACE = re.compile(r"(.*):(\d+):(\d+)", re.DOTALL)
HIDDEN = "hidden_value"  # error type whose value must not be shown, because it may be a secret
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
_BY_VALIDATORS = ("value_error", "assertion_error")  # their messages name the relevant values

FILE_VARIABLE = "LUDUS_CONFIG"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Origins:
    """Origin of each value of a resolved configuration."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def of(self, path: KeyPath) -> Origin | None:
        """Return where the value at a path was written, or None if it is the model's default.

        A value expanded from a short form, such as `level` of `clip: 0.2`, has the origin of the short form.
        """
        node = self.root
        for part in path:
            child = node.child(part)
            if child is None:
                return None if isinstance(node.content, dict) else node.origin
            node = child
        return node.key_origin if isinstance(node.content, dict) else node.origin


def read_config(model: type[ModelT], layers: Sequence[Document], checks: Sequence[Check] = ()) -> ModelT:
    """Merge and validate layers; a later layer wins.

    Raises:
        ConfigFileError: With every fault of every layer: position, key, expectation and nearest valid key.
    """
    return read_config_with_origins(model, layers, checks)[0]


def read_config_with_origins(
    model: type[ModelT], layers: Sequence[Document], checks: Sequence[Check] = ()
) -> tuple[ModelT, Origins]:
    """Read like `read_config`, and also return where each value comes from."""
    layers = [_as_mapping(model, layer) for layer in layers]
    faults = [fault for layer in layers for fault in layer.faults]
    if not all(layer.readable for layer in layers):
        raise ConfigFileError(faults)
    root = merge_layers([layer.root for layer in layers], model)
    config, found = _validate(model, root)
    # A YAML fault causes one of the schema at the same position, and that one of a check; report the first only.
    for later in (found, [fault for check in checks for fault in check(root)]):
        known = {fault.place for fault in faults}
        faults += [fault for fault in later if fault.place not in known]
    if faults or config is None:
        in_order = sorted(faults, key=partial(_order, sources=[layer.root.origin.source for layer in layers]))
        raise ConfigFileError(in_order[:MAX_FAULTS], left_out=max(len(faults) - MAX_FAULTS, 0))
    return config, Origins(root)


def part_check(path: tuple[str, ...], model: type[BaseModel]) -> Check:
    """Return a check by its own model of a part that the main model leaves open, such as a world's settings."""

    def check(root: Node) -> Sequence[ConfigFault]:
        part = root.find(path)
        if part is None or not isinstance(part.content, dict):
            return ()
        return _validate(model, part, path)[1]

    return check


def _validate(model: type[ModelT], root: Node, prefix: KeyPath = ()) -> tuple[ModelT | None, list[ConfigFault]]:
    document = root.plain()
    try:
        return model.model_validate(document, context=document), []  # so that a validator can see other sections
    except ValidationError as error:
        return None, explain(model, root, error.errors(include_url=False)[:_MAX_EXPLAINED], prefix)


def _as_mapping(model: type[BaseModel], layer: Document) -> Document:
    """Return a layer as a mapping: an empty document is an empty mapping, anything else is a fault."""
    root = layer.root
    if isinstance(root.content, dict) or not layer.readable:
        return layer
    if root.content is None:
        return replace(layer, root=replace(root, content={}))
    hint = f"keys: {', '.join(field_names(model))}"
    fault = ConfigFault(str(root.origin), TOP_LEVEL, "should be a mapping", short(root.plain()), hint)
    return Document(root, (*layer.faults, fault), readable=False)


def _order(fault: ConfigFault, sources: Sequence[str]) -> tuple[int, int, int]:
    """Sort key of faults: layer by layer, from top to bottom."""
    place = _PLACE.fullmatch(fault.place)
    source, line, column = place.groups() if place else (fault.place, "0", "0")
    return (sources.index(source) if source in sources else len(sources)), int(line), int(column)


@dataclass(slots=True)
class _Walk:
    """A pydantic error location, followed in the document.

    Attributes:
        node: The deepest existing value on the path.
        annotation: Annotation at the end of the path.
        holder: Annotation one step before the end.
        path: Keys and indices, as they are in the document.
        whole: Whether the whole path exists in the document.
        is_key: Whether the error is in a key instead of its value.
        union: Path of the first union without a discriminator, and the alternative taken there.
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
            if part == _OF_KEY:
                self.is_key, self.annotation = True, key_annotation(self.holder)
            elif len(shape.members) > 1 and isinstance(part, str):
                if shape.discriminator is None:
                    self.union = self.union or (self.path, part)
                self.annotation = shape.labelled(part)
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
    """Convert pydantic's errors to faults with position, key path, expectation and the nearest valid name.

    Args:
        model: The model.
        root: The document, or the part of it that belongs to the model.
        errors: Pydantic's errors.
        prefix: Path of the part in the document.

    A model may say which keys it once had: `removed_keys: ClassVar[Mapping[str, str]]`, from the key to the page of
    `docs/research`, with its anchor, that says why it went.
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
        why = getattr(model, "removed_keys", {}).get(path[-1])
        if why is not None:
            expectation, hint = "was removed", f"docs/research/{why} says why"
        elif model is not None:
            hint = suggest(str(path[-1]), field_names(model))
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
    """Return what was expected, in our own words where there are any."""
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    message = error["msg"]
    for beginning in ("Input ", "Value error, ", "Assertion failed, "):
        message = message.removeprefix(beginning)
    return message


def _tag_fault(walk: _Walk, path: KeyPath) -> ConfigFault:
    """Return the fault of a mapping with a missing or unknown discriminator."""
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
    """Return the keys of the expected mapping."""
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
    """Keep, of a union without a discriminator, only the faults of the alternative that was probably meant.

    Pydantic lists the errors of every alternative. The intended one fits the value's form, so its errors lie deeper
    than the union; if no form fits, the expectations of all become one fault.
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


def _variable_name(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name):
        raise PydanticCustomError(
            HIDDEN,
            "should be the name of the environment variable that holds the address, such as LUDUS_WEBHOOK; an address "
            "is a secret, and secrets come from the environment, never from a file",
        )
    return name


def _expand(folder: Path) -> Path:
    try:
        return folder.expanduser()
    except RuntimeError as error:
        raise ValueError("should be a folder whose home is known") from error


class UserDefaults(BaseModel):
    """Defaults of a user for every run.

    Attributes:
        name: User name in summaries.
        device: Device of games, policy and learner, such as `cuda`.
        runs_folder: Folder in which new runs get their folders.
        webhook_env: Environment variable with the webhook URL to which messages are posted, where that is enabled.
        wandb_project: Weights & Biases project to which runs are logged, where that is enabled.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    device: Annotated[str, Field(min_length=1)] | None = None
    runs_folder: Annotated[Path, AfterValidator(_expand)] | None = None
    webhook_env: Annotated[str, AfterValidator(_variable_name)] | None = None
    wandb_project: Annotated[str, Field(min_length=1, max_length=128)] | None = None


def user_defaults_file() -> Path:
    """Return the file of user defaults, whether or not it exists.

    It is `$LUDUS_CONFIG`, else `$XDG_CONFIG_HOME/ludus/config.yaml`, else `~/.config/ludus/config.yaml`.
    """
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    return user_folder("XDG_CONFIG_HOME", "~/.config") / "config.yaml"


def user_folder(variable: str, default: str) -> Path:
    """Return our folder in a base folder of the user's: that of an XDG variable, or else its default."""
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():  # the XDG specification says to ignore others
        base = Path(default)
        with contextlib.suppress(RuntimeError):  # a user without a home
            base = base.expanduser()
    return base / "ludus"


def read_user_defaults() -> UserDefaults:
    """Return the user defaults; all empty if there is no file.

    Raises:
        ConfigFileError: The file has faults, or `$LUDUS_CONFIG` names a missing file.
    """
    return read_config(UserDefaults, [user_defaults_document()])


def user_defaults_document() -> Document:
    """Return the user defaults with their origins, not yet validated."""
    file = user_defaults_file()
    if os.environ.get(FILE_VARIABLE) or _is_there(file):
        return read_document(file, f"the file of user defaults (${FILE_VARIABLE})")
    start = Origin(str(file), 1, 1)
    return Document(Node({}, start, start))


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # another user's home folder, not readable
        return False
