"""Checks of form: the spec, and the names, shapes, types, devices and ranges of all that a world returns."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, action_dtypes
from ludus.envs.check.probe import Probe, host

_TORCH_DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}


def check_spec(probe: Probe) -> Iterator[str]:
    """The spec makes sense and the batch is the one that was asked for."""
    yield from spec_faults(probe.spec)
    with probe.open(seed=5, first_game=3) as env:
        asked = {"num_games": probe.num_games, "seed": 5, "first_game": 3}
        for name, value in asked.items():
            if getattr(env, name, None) != value:
                yield f"env.{name} is {getattr(env, name, None)!r}, {value!r} was asked for"
        if not isinstance(cast("object", env), BatchedEnv):
            yield f"{type(env).__name__} is not a subclass of ludus.envs.BatchedEnv"
        if env.device.type not in env.spec.device_types:
            yield f"env.device is {env.device}, spec.device_types are {env.spec.device_types}"


def spec_faults(spec: EnvSpec) -> Iterator[str]:
    """Yields what is wrong with a spec in itself."""
    if not re.fullmatch(r"[A-Za-z][\w:./-]*", spec.name) or spec.version < 0:
        yield f"spec.id {spec.id!r} must be a name and a version of at least 0"
    if not spec.teams or sorted(set(spec.teams)) != list(range(len(set(spec.teams)))):
        yield f"spec.teams {spec.teams} must number the teams 0, 1, ... without gaps"
    if not (math.isfinite(spec.rate_hz) and spec.rate_hz > 0):
        yield f"spec.rate_hz is {spec.rate_hz}, it must be positive"
    for name in ("step_limit", "max_games"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            yield f"spec.{name} is {value}, it must be None or at least 1"
    for name in ("events", "measures", "bots"):
        values = getattr(spec, name)
        if len(set(values)) != len(values):
            yield f"spec.{name} names something twice: {values}"
    try:
        action_dtypes(spec.action_space)
    except UnsupportedError as error:
        yield str(error)
    if not spec.observation_space.spaces:
        yield "spec.observation_space has no entries"
    for name, space in spec.observation_space.items():
        if not isinstance(space, spaces.Box) or str(space.dtype) not in _TORCH_DTYPES:
            yield f"observation entry {name!r} is {space}; it must be a Box of {', '.join(_TORCH_DTYPES)}"
    yield from _block_faults(spec)


def _block_faults(spec: EnvSpec) -> Iterator[str]:
    for entry, blocks in spec.blocks.items():
        space = spec.observation_space.spaces.get(entry)
        if space is None or not space.shape:
            yield f"spec.blocks speaks of {entry!r}, which is no observation entry with an axis"
            continue
        for name, (start, stop) in blocks.items():
            if not 0 <= start < stop <= space.shape[-1]:
                yield f"block {name!r} ({start}, {stop}) lies outside the last axis of {entry!r}, {space.shape[-1]}"


def check_reset(probe: Probe) -> Iterator[str]:
    """`reset` returns observations as the space says, with and without a seed."""
    with probe.open() as env:
        yield from observation_faults(env, env.reset(), "reset()")
        yield from observation_faults(env, env.reset(seed=3), "reset(seed=3)")
        nobody = torch.zeros(env.num_games, dtype=torch.bool, device=env.device)
        yield from observation_faults(env, env.reset(nobody), "reset(games)")


def check_step(probe: Probe) -> Iterator[str]:
    """Steps return observations, flags, events and measures as declared, and nothing else."""
    with probe.open() as env:
        env.reset()
        for _, result in probe.play(env, 0, probe.options.steps):
            faults = list(observation_faults(env, result.observations, "step().observations"))
            faults += _form_faults(env, result.final_observations, "step().final_observations")
            ended = result.ended.bool()
            rows = {name: tensor[ended] for name, tensor in result.final_observations.items()}
            faults += _range_faults(env.spec, rows, "step().final_observations of ended games")
            for name in ("terminated", "truncated"):
                faults += tensor_faults(env, getattr(result, name), (env.num_games,), torch.bool, name)
            faults += named_faults(env, result.events, env.spec.events, "events")
            faults += named_faults(env, result.measures, env.spec.measures, "measures")
            if faults:
                yield from faults
                return


def observation_faults(env: BatchedEnv, observations: Observations, source: str) -> Iterator[str]:
    """Yields what is wrong with observations `(games, seats, ...)` of all games."""
    faults = _form_faults(env, observations, source)
    yield from faults or _range_faults(env.spec, observations, source)


def _form_faults(env: BatchedEnv, observations: Observations, source: str) -> list[str]:
    expected = env.spec.observation_space
    if set(observations) != set(expected.spaces):
        return [f"{source} has the entries {sorted(observations)}, the space has {sorted(expected.spaces)}"]
    faults = []
    for name, space in expected.items():
        shape = (env.num_games, env.spec.seats, *(space.shape or ()))
        faults += tensor_faults(env, observations[name], shape, _TORCH_DTYPES[str(space.dtype)], f"{source}[{name!r}]")
    return faults


def _range_faults(spec: EnvSpec, observations: Observations, source: str) -> list[str]:
    faults = []
    for name, space in spec.observation_space.items():
        values = host(observations[name])
        if not np.isfinite(values).all():
            faults.append(f"{source}[{name!r}] has values that are not finite")
        elif isinstance(space, spaces.Box) and ((values < space.low).any() or (values > space.high).any()):
            outside = values[(values < space.low) | (values > space.high)]
            faults.append(
                f"{source}[{name!r}] leaves its space: {outside.flat[0]} (bounds of that entry are in the spec)"
            )
    return faults


def tensor_faults(env: BatchedEnv, tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype, name: str) -> list[str]:
    """Returns what is wrong with one tensor's form."""
    if not isinstance(cast("object", tensor), Tensor):
        return [f"{name} is {type(tensor).__name__}, not a tensor"]
    faults = []
    if tuple(tensor.shape) != shape:
        faults.append(f"{name} has shape {tuple(tensor.shape)}, expected {shape}")
    if tensor.dtype != dtype:
        faults.append(f"{name} is {tensor.dtype}, expected {dtype}")
    if tensor.device != env.device:
        faults.append(f"{name} is on {tensor.device}, env.device is {env.device}")
    return faults


def named_faults(env: BatchedEnv, given: Mapping[str, Tensor], declared: tuple[str, ...], kind: str) -> list[str]:
    """Returns what is wrong with events or measures."""
    if set(given) != set(declared):
        return [f"{kind} are {sorted(given)}, spec.{kind} declares {sorted(declared)}"]
    faults = []
    for name, tensor in given.items():
        faults += tensor_faults(env, tensor, (env.num_games, env.spec.seats), torch.float32, f"{kind}[{name!r}]")
        if not faults and not np.isfinite(host(tensor)).all():
            faults.append(f"{kind}[{name!r}] has values that are not finite")
    return faults
