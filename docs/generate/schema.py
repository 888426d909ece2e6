"""Tables of settings, made from the pydantic models that check them.

Types, defaults and valid values come from the JSON schema of a model; meanings come from the `Attributes:` section of
its docstring.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args

from docs.generate.markdown import code, plain, table
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

HEADER = ("key", "meaning", "type", "default", "valid values")
_SCHEDULES = {"ConstantSchedule", "LinearSchedule", "ExponentialSchedule", "CosineSchedule", "KlAdaptiveConfig"}
_NAMES = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "null", "object": "mapping"}
_MOST_LISTED = 12  # valid values that a cell lists
_FAR = 1e4  # bounds beyond this only catch typos


class MissingMeaningError(Exception):
    """A setting whose docstring does not say what it is for."""


def settings_table(
    model: type[BaseModel],
    meanings_of_others: Mapping[str, str] = MappingProxyType({}),
    link: Callable[[str], str] = lambda _: "",
    usage: Callable[[str], str] | None = None,
) -> str:
    """Return the table of one model's own keys; sections of it are tables of their own.

    `meanings_of_others` is for fields that the model's docstring does not describe; `link` returns the address of the
    table of a section, or nothing. With `usage`, one more column says who uses a key that is no section.
    """
    schema = model.model_json_schema()
    said = dict(meanings_of_others) | meanings(model)
    rows = []
    for name, field in model.model_fields.items():
        shown = schema["properties"].get(field.alias or name, {})
        meaning = said.get(name, "")
        if not meaning:
            raise MissingMeaningError(f"{model.__module__}.{model.__qualname__}.{name}: add it to `Attributes:`")
        kind = type_of(shown, schema)
        address = link(name) if "section" in kind else ""
        if address:
            word = "sections" if "sections" in kind else "section"
            kind = kind.replace(word, f"[{word}]({address})", 1)
        row = (code(name), meaning, kind, _default(field), valid(shown, schema))
        rows.append(row if usage is None else (*row, "" if "section" in kind else usage(name)))
    return table(HEADER if usage is None else (*HEADER, "used by, or measured in"), rows)


def sections(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the models inside a model with their key, depth first; schedules and weights are values, not sections."""
    for name, field in model.model_fields.items():
        for inner in _models_in(field.annotation):
            if inner.__name__ in _SCHEDULES | {"WeightPath"}:
                continue
            key = f"{prefix}{name}"
            many = "[]" if "tuple" in str(field.annotation) else ""
            yield f"{key}{many}", inner
            yield from sections(inner, f"{key}{many}.")


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return what the docstring, or a comment behind the field, says about each field; base classes count too."""
    said: dict[str, str] = {}
    for ancestor in reversed(model.__mro__):
        if issubclass(ancestor, BaseModel) and ancestor is not BaseModel:
            said |= _comments(ancestor) | _attributes(ancestor.__doc__ or "")
    if "kind" in model.model_fields:
        said.setdefault("kind", "Which kind of section this is.")
    return said


def summary(model: type[BaseModel]) -> str:
    """Return the text of a model's docstring before its attributes."""
    text, _, _ = inspect.cleandoc(model.__doc__ or "").partition("\nAttributes:")
    return "\n\n".join(plain(part) for part in text.split("\n\n"))


def type_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the type of a value as people write it in YAML."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        names = {option["$ref"].rpartition("/")[2] for option in options if "$ref" in option}
        if names and names <= _SCHEDULES:
            return "float or schedule"
        return " or ".join(dict.fromkeys(type_of(option, root) for option in options))
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name == "WeightPath":
            return "float or points"
        return "float or schedule" if name in _SCHEDULES else "section"
    if "enum" in schema or "const" in schema:
        return "str"
    if schema.get("type") == "array":
        return _list_type(schema, root)
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"mapping of {type_of(values, root)}" if isinstance(values, dict) and values else "mapping"
    return _NAMES.get(str(schema.get("type")), "any")


def _list_type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    items = schema.get("prefixItems")
    if items:
        return "[" + ", ".join(type_of(item, root) for item in items) + "]"
    inner = type_of(schema.get("items", {}), root)
    return f"list of {inner}s" if inner == "section" else f"list of {inner}"


def valid(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the valid values: names, or bounds that are near enough to matter."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        found = [valid(option, root) for option in options if "$ref" not in option]
        return ", ".join(text for text in dict.fromkeys(found) if text)
    if "enum" in schema:
        return ", ".join(code(str(name)) for name in schema["enum"][:_MOST_LISTED])
    if "const" in schema:
        return code(str(schema["const"]))
    if schema.get("type") == "array":
        return valid(schema.get("items", {}), root)
    return _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    texts = []
    if low is not None and abs(low) <= _FAR:
        texts.append(f"≥ {low:g}")
    if above is not None:
        texts.append(f"> {above:g}")
    if high is not None and abs(high) <= _FAR:
        texts.append(f"≤ {high:g}")
    if below is not None and abs(below) <= _FAR:
        texts.append(f"< {below:g}")
    return ", ".join(texts)


def _default(field: Any) -> str:  # noqa: ANN401 - pydantic's FieldInfo, whose default can be anything
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return "" if default is PydanticUndefined else shown_default(default)


def shown_default(value: object) -> str:
    """Return a default as it would be written in YAML; nothing for a section of its own."""
    if value is None:
        return "`null`"
    if isinstance(value, BaseModel):
        fields = value.model_dump()
        if fields.get("kind") == "constant":
            return f"`{fields['level']:g}`"
        if type(value).__name__ == "WeightPath":
            points = fields["points"]
            return f"`{points[0][1]:g}`" if len(points) == 1 else code(str(points))
        return ""
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, int):
        return f"`{value:_}`" if abs(value) >= _FAR else f"`{value}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    if isinstance(value, tuple | list):
        return code("[" + ", ".join(str(item) for item in value) + "]")
    if isinstance(value, Mapping):
        return code("{" + ", ".join(f"{key}: {item}" for key, item in value.items()) + "}")
    return code(str(value))


def _attributes(docstring: str) -> dict[str, str]:
    """Return the entries of the section `Attributes:` of a Google-style docstring."""
    _, found, rest = inspect.cleandoc(docstring).partition("Attributes:\n")
    if not found:
        return {}
    lines = []
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break  # the next section
        lines.append(line)
    entries = re.split(r"^(?=\w+: )", textwrap.dedent("\n".join(lines)), flags=re.MULTILINE)
    pairs = (entry.partition(": ") for entry in entries if ": " in entry)
    return {name: plain(text) for name, _, text in pairs}


def _comments(model: type[BaseModel]) -> dict[str, str]:
    """Return the comments behind fields, `name: type = default  # meaning`."""
    source = textwrap.dedent(inspect.getsource(model))
    lines = source.splitlines()
    said = {}
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]  # a class
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            _, _, comment = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
            if comment and not comment.startswith("noqa"):
                said[node.target.id] = f"{comment[0].upper()}{comment[1:]}."
    return said


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for argument in get_args(annotation):
        yield from _models_in(argument)
