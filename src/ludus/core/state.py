"""Checks of saved state: what comes from a file is compared with a declaration before any part takes it.

A part declares the JSON that it saves as a `StateModel` beside its code, and compares saved tensors with its own:
names, shapes, types and, where a number is an index or a count, its range. So a file that is whole but was edited gives
an error that names the key, never a traceback in the middle of a run.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Self, TypeAlias

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from ludus.core.errors import LudusError, StateError, brief

Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
Share: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0)]
Range: TypeAlias = tuple[float, float]
MAX_COUNT = 2**53  # of counters in int64 tensors: far above any run, and sums of them do not overflow
FLAG: Range = (0, 1)
FINITE: Range = (-1e30, 1e30)  # for floats of which no more is known
WORD: Range = (-(2**30), 2**30)  # for int32 that is not an index: nothing that is added to it overflows

_LONGEST_KEY = 100  # that an error shows
_SHOWN = 3  # faults of a document, or wrong names, that an error lists
_SAME_CONFIG = "use the same config"


class StateModel(BaseModel):
    """Base of what parts save as JSON: no unknown keys, no conversion between types, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, document: object, what: str) -> Self:
        """Return the checked document, which errors call `what`; raise StateError if a key or a value is wrong."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            shown = "; ".join(
                f"{'.'.join(str(each)[:_LONGEST_KEY] for each in (what, *fault['loc']))} is "
                + ("missing" if fault["type"] == "missing" else f"{brief(fault['input'])}: {fault['msg']}")
                for fault in faults[:_SHOWN]
            )
            more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
            raise StateError(f"{shown}{more}; {_SAME_CONFIG}, or another checkpoint") from None


def clone_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of named tensors, without gradients.

    A run copies its state after every iteration. On a GPU it takes the host longer to start the copy of a small tensor
    than it takes the device to make it, so all tensors of one type are copied by one call; on a CPU that is slower.
    """
    plain = {name: tensor.detach() for name, tensor in tensors.items()}
    alone = {name: tensor for name, tensor in plain.items() if not tensor.is_cuda or tensor.dtype == torch.bool}
    groups: dict[torch.dtype, dict[str, Tensor]] = {}
    for name in plain.keys() - alone.keys():
        groups.setdefault(plain[name].dtype, {})[name] = plain[name]
    copies = {name: tensor.clone() for name, tensor in alone.items()}
    for group in groups.values():
        copies |= zip(group, clone_alike(list(group.values())), strict=True)
    return {name: copies[name] for name in tensors}


def clone_alike(tensors: list[Tensor]) -> Sequence[Tensor]:
    """Return copies of tensors of one type, of numbers, by one call: what is multiplied by 1 keeps its bits."""
    return torch._foreach_mul(tensors, 1)  # noqa: SLF001 - torch has no public name for it


def check_tensors(
    given: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    what: str,
    *,
    ranges: Mapping[str, Range] = MappingProxyType({}),
    advice: str = _SAME_CONFIG,
    error: type[LudusError] = StateError,
) -> None:
    """Raise `error` unless saved tensors have the names, shapes and types of a part's own.

    Values are looked at only where there are `ranges` (least, greatest); without any this never waits for a device.
    `what` names the part in the error, `advice` says what to do about it.
    """
    label = f"the state of {what} does not fit"
    for fault, names in (("is missing", own.keys() - given.keys()), ("is unknown", given.keys() - own.keys())):
        if names:
            listed = ", ".join(map(brief, sorted(names)[:_SHOWN]))
            raise error(f"{label}: {listed} {fault}; expected {brief(sorted(own))}; {advice}")
    for name, tensor in own.items():
        if given[name].shape != tensor.shape or given[name].dtype != tensor.dtype:
            raise error(f"{label}: {name!r} is {_form(given[name])}, expected {_form(tensor)}; {advice}")
    for name, (low, high) in ranges.items():
        check_range(given[name], low, high, f"{label}: {name!r}", advice=advice, error=error)


def load_tensors(
    given: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    what: str,
    *,
    ranges: Mapping[str, Range] = MappingProxyType({}),
    advice: str = _SAME_CONFIG,
) -> None:
    """Copy saved tensors, from any device, into a part's own ones once `check_tensors` has accepted all of them."""
    check_tensors(given, own, what, ranges=ranges, advice=advice)
    for name, tensor in own.items():
        tensor.copy_(given[name])


def check_range(
    values: Tensor,
    low: float,
    high: float,
    what: str,
    *,
    advice: str = _SAME_CONFIG,
    error: type[LudusError] = StateError,
) -> None:
    """Raise `error`, naming the first wrong value, unless all `values` lie between `low` and `high`; NaN never does."""
    wrong = values[~((values >= low) & (values <= high))].flatten()
    if wrong.numel():
        raise error(f"{what} is {wrong[0].item():.10g}; valid: {low:.10g} to {high:.10g}; {advice}")


def check_index(index: int, count: int, what: str) -> None:
    """Raise StateError unless `index` is one of `count` things."""
    if not 0 <= index < count:
        raise StateError(f"{what} is {index}; valid: 0 to {count - 1}; {_SAME_CONFIG}")


def check_names(given: Iterable[str], own: Iterable[str], what: str) -> None:
    """Raise StateError unless the saved names are a part's own, in any order."""
    if {*given} != {*own}:
        raise StateError(f"{what} has {brief(sorted(given))}; expected {brief(sorted(own))}; {_SAME_CONFIG}")


def load_generator(generator: torch.Generator, given: Mapping[str, Tensor], what: str, *, name: str = "random") -> None:
    """Give a generator the state of that name that `Generator.get_state` returned; raise StateError if it is wrong."""
    own = generator.get_state()
    advice = f"use one that was saved on {generator.device.type}"
    check_tensors({key: given[key] for key in given if key == name}, {name: own}, what, advice=advice)
    try:
        generator.set_state(given[name].cpu())
    except RuntimeError as error:
        raise StateError(
            f"the state of {what} does not fit: {name!r} is no random state ({error}); {advice}"
        ) from error


def _form(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"
