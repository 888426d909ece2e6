"""An `EnvSpec` as JSON and back, so that a file can say which world it is for without making that world."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.core.errors import FormatError, UnsupportedError
from ludus.core.files import JSON
from ludus.envs.base import EnvSpec

MAX_ELEMENTS = 1 << 24  # of one space; a picture of 1,024 x 1,024 has a fifth of it
_BOX_TYPES = ("float32", "float64", "uint8", "int8", "int16", "int32", "int64")
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def spec_to_json(spec: EnvSpec) -> JSON:
    """Returns the spec as JSON that `spec_from_json` gives back equal.

    Raises:
        UnsupportedError: A space is of another kind than Box, Discrete, MultiDiscrete, MultiBinary or Dict.
    """
    return {
        "name": spec.name,
        "version": spec.version,
        "teams": list(spec.teams),
        "observation_space": space_to_json(spec.observation_space),
        "action_space": space_to_json(spec.action_space),
        "rate_hz": spec.rate_hz,
        "step_limit": spec.step_limit,
        "events": list(spec.events),
        "measures": list(spec.measures),
        "bots": list(spec.bots),
        "blocks": {
            entry: {name: list(bounds) for name, bounds in blocks.items()} for entry, blocks in spec.blocks.items()
        },
        "device_types": list(spec.device_types),
        "max_games": spec.max_games,
        "realtime": spec.realtime,
        "snapshots": spec.snapshots,
    }


def spec_from_json(document: JSON) -> EnvSpec:
    """Returns the spec that `spec_to_json` was given.

    Raises:
        FormatError: A field is missing, superfluous or has a value that it cannot have.
    """
    fields = _fields(document, "world", tuple(_READERS))
    spec = EnvSpec(**{name: read(fields[name], f"world.{name}") for name, read in _READERS.items()})
    for entry, blocks in spec.blocks.items():
        space = spec.observation_space.spaces.get(entry)
        size = space.shape[-1] if space is not None and space.shape else 0
        for name, (start, stop) in blocks.items():
            if not 0 <= start < stop <= size:
                raise FormatError(f"block {name!r} of {entry!r} is {start}..{stop}; the entry has {size} features")
    return spec


def space_to_json(space: spaces.Space[Any]) -> JSON:
    """Returns a space as JSON; bounds that are the same everywhere become one number."""
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "entries": {name: space_to_json(entry) for name, entry in space.spaces.items()}}
    if isinstance(space, spaces.Box):
        low, high = _bounds_to_json(space.low), _bounds_to_json(space.high)
        return {"kind": "box", "shape": list(space.shape), "dtype": str(space.dtype), "low": low, "high": high}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 and not space.start.any():
        return {"kind": "multi_discrete", "counts": [int(count) for count in space.nvec]}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "shape": list(space.shape)}
    raise UnsupportedError(
        f"space {space} cannot be stored; valid: Box, Discrete, MultiDiscrete with one axis from 0, MultiBinary, Dict"
    )


def space_from_json(document: JSON, where: str = "space") -> spaces.Space[Any]:
    """Returns the space that `space_to_json` was given.

    Raises:
        FormatError: It is of no known kind, a field is wrong, or it is absurdly large.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "dict":
        entries = _fields(document, where, ("kind", "entries"))["entries"]
        if not isinstance(entries, dict) or not entries:
            raise FormatError(f"{where}.entries must name at least one space")
        return spaces.Dict({name: space_from_json(entry, f"{where}.{name}") for name, entry in entries.items()})
    if kind == "box":
        return _box(_fields(document, where, ("kind", "shape", "dtype", "low", "high")), where)
    if kind == "discrete":
        fields = _fields(document, where, ("kind", "n", "start"))
        return spaces.Discrete(_count(fields["n"], f"{where}.n"), start=_whole(fields["start"], f"{where}.start"))
    if kind == "multi_discrete":
        counts = _list(_fields(document, where, ("kind", "counts"))["counts"], f"{where}.counts")
        return spaces.MultiDiscrete([_count(count, f"{where}.counts") for count in counts])
    if kind == "multi_binary":
        return spaces.MultiBinary(_shape(_fields(document, where, ("kind", "shape"))["shape"], where))
    raise FormatError(
        f"{where} is of kind {str(kind)[:40]!r}; valid: box, discrete, multi_discrete, multi_binary, dict"
    )


def _box(fields: Mapping[str, Any], where: str) -> spaces.Box:
    if fields["dtype"] not in _BOX_TYPES:
        raise FormatError(f"{where}.dtype is {str(fields['dtype'])[:40]!r}; valid: {', '.join(_BOX_TYPES)}")
    dtype, shape = np.dtype(fields["dtype"]), _shape(fields["shape"], where)
    low, high = (_bounds(fields[side], dtype, shape, f"{where}.{side}") for side in ("low", "high"))
    if (low > high).any():
        raise FormatError(f"{where} has a low bound above its high one")
    return spaces.Box(low, high, dtype=dtype.type)


def _bounds_to_json(bounds: NDArray[Any]) -> JSON:
    flat = [_number_to_json(value) for value in bounds.flatten().tolist()]
    return flat[0] if flat and all(value == flat[0] for value in flat) else list(flat)


def _number_to_json(value: float) -> int | float | str:
    return value if math.isfinite(value) else str(value)


def _bounds(raw: object, dtype: np.dtype[Any], shape: tuple[int, ...], where: str) -> NDArray[Any]:
    values = raw if isinstance(raw, list) else [raw]
    numbers: list[Any] = [_INFINITIES.get(value, value) if isinstance(value, str) else value for value in values]
    if not all(type(number) in (int, float) for number in numbers):
        raise FormatError(f"{where} must be numbers, 'inf' or '-inf'")
    if isinstance(raw, list) and len(raw) != math.prod(shape):
        raise FormatError(f"{where} has {len(raw)} numbers for the shape {shape}")
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    if not all(limits.min <= number <= limits.max or (dtype.kind == "f" and math.isinf(number)) for number in numbers):
        raise FormatError(f"{where} has a number outside the range of {dtype}")
    return np.broadcast_to(np.array(numbers, dtype).reshape(shape if isinstance(raw, list) else ()), shape).copy()


def _shape(raw: object, where: str) -> tuple[int, ...]:
    shape = tuple(_count(axis, f"{where}.shape") for axis in _list(raw, f"{where}.shape"))
    if not 1 <= len(shape) <= 8 or math.prod(shape) > MAX_ELEMENTS:
        raise FormatError(f"{where}.shape is {str(shape)[:80]}; valid: 1 to 8 axes with at most {MAX_ELEMENTS} in all")
    return shape


def _fields(document: object, where: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(document, dict) or set(document) != set(names):
        got = ", ".join(sorted(map(str, document)))[:200] if isinstance(document, dict) else type(document).__name__
        raise FormatError(f"{where} must have exactly {', '.join(names)}; got {got}")
    return document


def _list(raw: object, where: str) -> list[Any]:
    if not isinstance(raw, list):
        raise FormatError(f"{where} must be a list, got {str(raw)[:40]!r}")
    return raw


def _whole(raw: object, where: str) -> int:
    if type(raw) is not int or not -(2**31) <= raw < 2**31:
        raise FormatError(f"{where} must be a whole number below 2**31, got {str(raw)[:40]!r}")
    return raw


def _count(raw: object, where: str) -> int:
    if _whole(raw, where) < 1 or _whole(raw, where) > MAX_ELEMENTS:
        raise FormatError(f"{where} must be 1 to {MAX_ELEMENTS}, got {raw}")
    return _whole(raw, where)


def _text(raw: object, where: str) -> str:
    if not isinstance(raw, str) or not 0 < len(raw) <= 200:
        raise FormatError(f"{where} must be a text of 1 to 200 characters, got {str(raw)[:40]!r}")
    return raw


def _flag(raw: object, where: str) -> bool:
    if not isinstance(raw, bool):
        raise FormatError(f"{where} must be true or false, got {str(raw)[:40]!r}")
    return raw


def _rate(raw: object, where: str) -> float:
    if type(raw) not in (int, float) or not isinstance(raw, int | float) or not 0 < raw < 1e9:
        raise FormatError(f"{where} must be a number above 0, got {str(raw)[:40]!r}")
    return float(raw)


def _optional_count(raw: object, where: str) -> int | None:
    return None if raw is None else _whole(raw, where)


def _texts(raw: object, where: str) -> tuple[str, ...]:
    return tuple(_text(text, where) for text in _list(raw, where))


def _teams(raw: object, where: str) -> tuple[int, ...]:
    teams = tuple(_whole(team, where) for team in _list(raw, where))
    if not teams:
        raise FormatError(f"{where} must have a team for each seat, got none")
    return teams


def _observation_space(raw: JSON, where: str) -> spaces.Dict:
    space = space_from_json(raw, where)
    if not isinstance(space, spaces.Dict):
        raise FormatError(f"{where} must be of kind dict")
    return space


def _blocks(raw: object, where: str) -> dict[str, dict[str, tuple[int, int]]]:
    if not isinstance(raw, dict) or not all(isinstance(part, dict) for part in raw.values()):
        raise FormatError(f"{where} must map entries to blocks")
    blocks: dict[str, dict[str, tuple[int, int]]] = {}
    for entry, part in raw.items():
        blocks[entry] = {}
        for name, bounds in part.items():
            if len(_list(bounds, where)) != 2:
                raise FormatError(f"{where}.{entry}.{name} must have a start and a stop")
            blocks[entry][name] = (_whole(bounds[0], where), _whole(bounds[1], where))
    return blocks


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "name": _text,
    "version": _whole,
    "teams": _teams,
    "observation_space": _observation_space,
    "action_space": space_from_json,
    "rate_hz": _rate,
    "step_limit": _optional_count,
    "events": _texts,
    "measures": _texts,
    "bots": _texts,
    "blocks": _blocks,
    "device_types": _texts,
    "max_games": _optional_count,
    "realtime": _flag,
    "snapshots": _flag,
}
