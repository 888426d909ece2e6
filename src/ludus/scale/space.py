"""Search spaces: values of a configuration that a sweep draws instead of reading them.

A mapping with the key `sweep` stands in the place of a value, such as `{sweep: log_uniform, low: 1e-4, high: 3e-3}`.
Optuna knows a value by its code: the number itself, or the index of a choice, since choices may be lists and mappings,
which no searcher can compare.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.config import Document, KeyPath, Node, part_check, short, show_path, suggest
from ludus.core.errors import ConfigFault

SWEEP = "sweep"  # the key that marks a search space, and at the top level the section of the sweep itself
_MOST_CHOICES = 1_000

Code: TypeAlias = float | int


class _Range(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: float
    high: float

    @model_validator(mode="after")
    def _ends_differ(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low:g} and {self.high:g}")
        if self.is_log and self.low <= 0:
            raise ValueError(f"low must be above 0 on a logarithmic scale, got {self.low:g}")
        return self

    @property
    def is_log(self) -> bool:
        """Whether it is even in the logarithm of the value."""
        return False

    def clip(self, code: Code) -> Code:
        """Return the nearest value in the range."""
        return min(max(float(code), self.low), self.high)

    def move(self, code: Code, up: bool) -> Code:
        """Return a value of 0.8 or 1.2 times this one, in the range."""
        return self.clip(code * (1.2 if up else 0.8))


class UniformSpace(_Range):
    """A number between `low` and `high`, even on a linear scale.

    Attributes:
        sweep: The kind of the space, `uniform`.
        low: Lowest value.
        high: Highest value.
    """

    sweep: Literal["uniform"] = "uniform"


class LogUniformSpace(_Range):
    """A number between `low` and `high`, even on a logarithmic scale.

    Attributes:
        sweep: The kind of the space, `log_uniform`.
        low: Lowest value, above 0.
        high: Highest value.
    """

    sweep: Literal["log_uniform"] = "log_uniform"

    @property
    def is_log(self) -> bool:
        """True."""
        return True


class IntegerSpace(_Range):
    """A whole number from `low` to `high`, both included.

    Attributes:
        sweep: The kind of the space, `integer`.
        low: Lowest value.
        high: Highest value.
        log: Whether it is even on a logarithmic scale.
    """

    sweep: Literal["integer"] = "integer"
    low: int
    high: int
    log: bool = False

    @property
    def is_log(self) -> bool:
        """As `log` says."""
        return self.log

    def clip(self, code: Code) -> Code:
        """Return the nearest whole number in the range."""
        return min(max(round(code), self.low), self.high)

    def move(self, code: Code, up: bool) -> Code:
        """Return a number of 0.8 or 1.2 times this one, but of another one at least, in the range."""
        distance = max(round(0.2 * code), 1)
        return self.clip(code + distance if up else code - distance)


class ChoiceSpace(BaseModel):
    """One of several values of any form.

    Attributes:
        sweep: The kind of the space, `choice`.
        values: The values; those with an order, such as sizes, in that order, since population-based training moves to
            neighbours.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sweep: Literal["choice"] = "choice"
    values: tuple[Any, ...] = Field(min_length=2, max_length=_MOST_CHOICES)

    @property
    def is_log(self) -> bool:
        """False."""
        return False

    def move(self, code: Code, up: bool) -> Code:
        """Return the index of a neighbour; that of the first or last value stays where there is none."""
        return min(max(int(code) + (1 if up else -1), 0), len(self.values) - 1)


Space: TypeAlias = UniformSpace | LogUniformSpace | IntegerSpace | ChoiceSpace
KINDS: dict[str, type[Space]] = {
    "uniform": UniformSpace, "log_uniform": LogUniformSpace, "integer": IntegerSpace, "choice": ChoiceSpace,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dimension:
    """One key that is searched.

    Attributes:
        path: Path of the key.
        space: Its values.
        place: Where it was written, `file:line:column`.
    """

    path: KeyPath
    space: Space
    place: str = ""

    @property
    def name(self) -> str:
        """The path as text, such as `ppo.learning_rate`."""
        return show_path(self.path)

    def decode(self, code: Code) -> Any:  # noqa: ANN401 - a choice can be anything
        """Return the value of a code."""
        return self.space.values[int(code)] if isinstance(self.space, ChoiceSpace) else code

    def encode(self, value: object) -> Code | None:
        """Return the code of a value; None if the space does not have it."""
        if isinstance(self.space, ChoiceSpace):
            return next((index for index, known in enumerate(self.space.values) if known == value), None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return value if self.space.clip(value) == value else None

    def distribution(self) -> Any:  # noqa: ANN401 - Optuna is optional
        """Return the codes as a distribution of Optuna."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        space = self.space
        if isinstance(space, ChoiceSpace):
            return CategoricalDistribution(range(len(space.values)))
        if isinstance(space, IntegerSpace):
            return IntDistribution(space.low, space.high, log=space.log)
        return FloatDistribution(space.low, space.high, log=space.is_log)

    def describe(self) -> dict[str, Any]:
        """Return the space as JSON, with its name."""
        return {"name": self.name, "log": self.space.is_log, **self.space.model_dump(mode="json")}


class SpaceText(str):
    """Stands in a document for a search space, so that it replaces what lower layers have there, and is replaced."""

    __slots__ = ("space", "values")

    space: Space
    values: tuple[Node, ...]  # that the schema of runs checks: both ends, or every choice, each with its own origin


def take_spaces(document: Document) -> Document:
    """Return a document with a `SpaceText` in the place of every search space; those that are wrong are its faults."""
    faults: list[ConfigFault] = []
    root = _taken(document.root, (), document.root, faults)
    return replace(document, root=root, faults=(*document.faults, *faults), readable=document.readable and not faults)


def _taken(node: Node, path: KeyPath, root: Node, faults: list[ConfigFault]) -> Node:
    if isinstance(node.content, list):
        items = [_taken(each, (*path, index), root, faults) for index, each in enumerate(node.content)]
        return replace(node, content=items)
    if not isinstance(node.content, dict):
        return node
    if not path or SWEEP not in node.content:
        below = {
            key: each if (*path, key) == (SWEEP,) else _taken(each, (*path, key), root, faults)
            for key, each in node.content.items()
        }
        return replace(node, content=below)
    kind = node.content[SWEEP]
    model = KINDS.get(kind.content) if isinstance(kind.content, str) else None
    if model is None:
        expectation, hint = f"should be one of {', '.join(KINDS)}", suggest(str(kind.content), KINDS)
        key = show_path((*path, SWEEP))
        faults.append(ConfigFault(str(kind.origin), key, expectation, short(kind.content), hint))
        return node
    wrong = list(part_check(path, model)(root))  # type: ignore[arg-type] # lists have indices
    if wrong:
        faults += wrong
        return node
    text = SpaceText(show_path(path))
    text.space = model.model_validate(node.plain())
    choices = node.content.get("values")
    ends = [each for name in ("low", "high") if (each := node.content.get(name)) is not None]
    listed = choices.content if choices is not None and isinstance(choices.content, list) else ends
    text.values = tuple(replace(each, key_origin=node.key_origin) for each in listed)
    return replace(node, content=text)


def spaces_in(node: Node, path: KeyPath = ()) -> Iterator[tuple[Dimension, tuple[Node, ...]]]:
    """Yield the search spaces of merged layers, in their order, with the values that are to be checked."""
    content = node.content
    if isinstance(content, SpaceText):
        yield Dimension(path, content.space, str(node.origin)), content.values
    elif isinstance(content, dict):
        for key, each in content.items():
            yield from spaces_in(each, (*path, key))
    elif isinstance(content, list):
        for index, each in enumerate(content):
            yield from spaces_in(each, (*path, index))


def with_node(root: Node, path: KeyPath, node: Node) -> Node:
    """Return a document with another value at a path; mappings on the way are made where they are missing."""
    if not path:
        return node
    first, *rest = path
    below = root.child(first) or Node({}, node.origin, node.key_origin)
    changed = with_node(below, tuple(rest), node)
    if not isinstance(root.content, list):
        known = root.content if isinstance(root.content, dict) else {}
        return replace(root, content={**known, str(first): changed})
    return replace(root, content=[changed if index == first else each for index, each in enumerate(root.content)])
