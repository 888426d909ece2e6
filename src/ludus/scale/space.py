"""Search spaces: values of a configuration that a sweep draws instead of reading them.

A mapping with the key `sweep` stands in the place of a value, such as `{sweep: log_uniform, low: 1e-4, high: 3e-3}`.
Optuna knows a value by its code: the number itself, or the index of a choice, since choices may be lists and mappings,
which no searcher can compare.
"""

import math
from collections.abc import Iterator, Sequence
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


def find_spaces(document: Document) -> tuple[list[Dimension], list[ConfigFault]]:
    """Return the search spaces of a document, in its order, and what is wrong with them."""
    found: list[Dimension] = []
    faults: list[ConfigFault] = []
    for path, node in _marked(document.root):
        kind = node.child(SWEEP)
        name = kind.content if kind is not None else None
        model = KINDS.get(name) if isinstance(name, str) else None
        if kind is None or model is None:
            origin = node.origin if kind is None else kind.origin
            expectation, hint = f"should be one of {', '.join(KINDS)}", suggest(str(name), KINDS)
            faults.append(ConfigFault(str(origin), show_path((*path, SWEEP)), expectation, short(name), hint))
            continue
        wrong = list(part_check(path, model)(document.root))  # type: ignore[arg-type] # lists have indices
        if "/" in show_path(path):
            wrong.append(ConfigFault(str(node.key_origin), show_path(path), "cannot be searched: its key has a slash"))
        faults += wrong
        if not wrong:
            found.append(Dimension(path, model.model_validate(node.plain()), str(node.origin)))
    return found, faults


def probes(root: Node, dimension: Dimension) -> list[Node]:
    """Return the values that the schema checks for a space: both ends, or every choice, each with its own origin."""
    node = root.find(dimension.path)
    if node is None:
        return []
    if isinstance(dimension.space, ChoiceSpace):
        listed = node.child("values")
        found: Sequence[Node] = listed.content if listed is not None and isinstance(listed.content, list) else ()
    else:
        found = [end for end in map(node.child, ("low", "high")) if end is not None]
    return [replace(each, key_origin=node.key_origin) for each in found]


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


def without_path(root: Node, path: KeyPath) -> Node:
    """Return a document without the value at a path of keys; nothing is removed from lists."""
    first, *rest = path
    below = root.child(first)
    if below is None or not isinstance(root.content, dict):
        return root
    if not rest:
        return root.without(str(first))
    return replace(root, content={**root.content, str(first): without_path(below, tuple(rest))})


def _marked(node: Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
    """Yield the outermost mappings with the mark, apart from the section at the top level."""
    if isinstance(node.content, dict):
        if path and SWEEP in node.content:
            yield path, node
            return
        for key, child in node.content.items():
            if path or key != SWEEP:
                yield from _marked(child, (*path, key))
    elif isinstance(node.content, list):
        for index, child in enumerate(node.content):
            yield from _marked(child, (*path, index))
