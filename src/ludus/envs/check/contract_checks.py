"""Checks of the batched contract: shapes, episodes, snapshots and randomness."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConformanceError, SnapshotError, UnsupportedError
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult, action_dtypes
from ludus.envs.check.probe import (
    Frame,
    NotApplicableError,
    Probe,
    frame_difference,
    frame_of,
    host,
    named,
    observation_frame,
    record_difference,
)

_DTYPE_NAMES = ("float32", "uint8", "int8", "int16", "int32", "int64", "bool")
_TORCH_DTYPES: Mapping[str, torch.dtype] = {name: getattr(torch, name) for name in _DTYPE_NAMES}
_ENOUGH_ENDS = 8  # so many final observations equal to first ones are no coincidence
_PLAYERS = {False: "random actions", True: "bots"}
_TRIES = 8  # in a world of few possibilities, two seeds may give the same game by chance


def check_spec(probe: Probe) -> Iterator[str]:
    """The spec makes sense and the batch is the one that was asked for."""
    yield from spec_faults(probe.spec)
    with probe.open(seed=5, first_game=3) as env:
        asked = {"num_envs": probe.num_envs, "seed": 5, "first_game": 3}
        for name, value in asked.items():
            if getattr(env, name, None) != value:
                yield f"env.{name} is {getattr(env, name, None)!r}, {value!r} was asked for"
        if not isinstance(cast("object", env), BatchedEnv):
            yield f"{type(env).__name__} is not a subclass of ludus.envs.BatchedEnv"
        if env.device.type not in env.spec.device_types:
            yield f"env.device is {env.device}, spec.device_types are {env.spec.device_types}"


def spec_faults(spec: EnvSpec) -> Iterator[str]:
    """Yield what is wrong with a spec in itself."""
    if not re.fullmatch(r"[A-Za-z][\w:./-]*", spec.name) or spec.version < 0:
        yield f"spec.id {spec.id!r} must be a name and a version of at least 0"
    if not spec.teams or sorted(set(spec.teams)) != list(range(len(set(spec.teams)))):
        yield f"spec.teams {spec.teams} must number the teams 0, 1, ... without gaps"
    if not (math.isfinite(spec.rate_hz) and spec.rate_hz > 0):
        yield f"spec.rate_hz is {spec.rate_hz}, it must be positive"
    for name in ("step_limit", "max_envs"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            yield f"spec.{name} is {value}, it must be None or at least 1"
    for name in ("events", "state_metrics", "bots"):
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
        none = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        yield from observation_faults(env, env.reset(none), "reset(games)")


def check_step(probe: Probe) -> Iterator[str]:
    """Steps return observations, flags, events and state metrics as declared, and nothing else."""
    with probe.open() as env:
        env.reset()
        for _, result in probe.play(env, 0, probe.options.steps):
            faults = list(observation_faults(env, result.observations, "step().observations"))
            faults += _form_faults(env, result.final_observations, "step().final_observations")
            ended = result.ended.bool()
            rows = {name: tensor[ended] for name, tensor in result.final_observations.items()}
            faults += _range_faults(env.spec, rows, "step().final_observations of ended games")
            for name in ("terminated", "truncated"):
                faults += tensor_faults(env, getattr(result, name), (env.num_envs,), torch.bool, name)
            faults += named_faults(env, result.events, env.spec.events, "events")
            faults += named_faults(env, result.state_metrics, env.spec.state_metrics, "state_metrics")
            if faults:
                yield from faults
                return


def observation_faults(env: BatchedEnv, observations: Observations, source: str) -> Iterator[str]:
    """Yield what is wrong with observations `(games, seats, ...)` of all games."""
    faults = _form_faults(env, observations, source)
    yield from faults or _range_faults(env.spec, observations, source)


def _form_faults(env: BatchedEnv, observations: Observations, source: str) -> list[str]:
    expected = env.spec.observation_space
    if set(observations) != set(expected.spaces):
        return [f"{source} has the entries {sorted(observations)}, the space has {sorted(expected.spaces)}"]
    faults = []
    for name, space in expected.items():
        shape = (env.num_envs, env.spec.seats, *(space.shape or ()))
        faults += tensor_faults(env, observations[name], shape, _TORCH_DTYPES[str(space.dtype)], f"{source}[{name!r}]")
    return faults


def _range_faults(spec: EnvSpec, observations: Observations, source: str) -> list[str]:
    faults = []
    for name, space in spec.observation_space.items():
        values = host(observations[name])
        if not np.isfinite(values).all():
            faults.append(f"{source}[{name!r}] has NaN or Inf values")
        elif isinstance(space, spaces.Box) and ((values < space.low).any() or (values > space.high).any()):
            outside = values[(values < space.low) | (values > space.high)]
            faults.append(
                f"{source}[{name!r}] leaves its space: {outside.flat[0]} (bounds of that entry are in the spec)"
            )
    return faults


def tensor_faults(env: BatchedEnv, tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype, name: str) -> list[str]:
    """Return what is wrong with one tensor's form."""
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
    """Return what is wrong with events or state metrics."""
    if set(given) != set(declared):
        return [f"{kind} are {sorted(given)}, spec.{kind} declares {sorted(declared)}"]
    faults = []
    for name, tensor in given.items():
        faults += tensor_faults(env, tensor, (env.num_envs, env.spec.seats), torch.float32, f"{kind}[{name!r}]")
        if not faults and not np.isfinite(host(tensor)).all():
            faults.append(f"{kind}[{name!r}] has NaN or Inf values")
    return faults


def _ended(result: StepResult) -> NDArray[np.bool_]:
    return np.asarray(host(result.ended), dtype=np.bool_)


def check_ends(probe: Probe) -> Iterator[str]:
    """A game is terminated or truncated, never both, as the spec says, and no later than the step limit."""
    limit, options = probe.spec.step_limit, probe.options
    with probe.open() as env:
        env.reset()
        lengths = np.zeros(env.num_envs, dtype=np.int64)
        count = options.steps if limit is None else max(min(limit + 1, options.end_steps), options.steps)
        for step, result in probe.play(env, 0, count):
            lengths += 1
            if bool((result.terminated & result.truncated).any()):
                yield f"a game is both terminated and truncated in step {step}"
                return
            if not probe.spec.truncates and bool(result.truncated.any()):
                yield f"a game is truncated in step {step}, but spec.truncates is False"
                return
            if limit is not None and int(lengths.max()) > limit:
                yield f"game {int(lengths.argmax())} runs for {int(lengths.max())} steps, spec.step_limit is {limit}"
                return
            lengths[_ended(result)] = 0


def check_restart(probe: Probe) -> Iterator[str]:
    """A game that ends restarts within the step, exactly as `reset` by mask would have started it."""
    probe.need_repeatable()
    with probe.open() as env:
        env.reset()
        for step, result in probe.play(env, 0, probe.options.end_steps):
            if bool(result.ended.any()):
                last_step, ended, after = step, _ended(result), observation_frame(result.observations)
                break
        else:
            raise NotApplicableError(_no_end(probe))
    with probe.open() as env:
        env.reset()
        probe.advance(env, 0, last_step)
        started = observation_frame(env.reset(torch.as_tensor(ended, device=env.device)))
    difference = frame_difference(after, started, np.flatnonzero(ended).tolist())
    yield from named("after an end, the step does not return the next episode's first observation", difference)


def check_final_observations(probe: Probe) -> Iterator[str]:
    """Final observations are the old episode's last ones, not the new episode's first ones."""
    ends, varies = 0, False
    with probe.open() as env:
        before = observation_frame(env.reset())
        for _, result in probe.play(env, 0, probe.options.end_steps):
            frame = frame_of(result)
            ended = _ended(result)
            varies = varies or _changed(before, frame, np.flatnonzero(~ended).tolist())
            for game in np.flatnonzero(ended).tolist():
                ends += 1
                if _final_differs(frame, game):
                    return
            if ends >= _ENOUGH_ENDS:
                break
            before = {name: frame[name] for name in before}
    if ends == 0:
        raise NotApplicableError(_no_end(probe))
    if not varies:
        raise NotApplicableError("observations never change, so first and last ones are alike")
    yield f"in all of {ends} ends, final_observations are those of the next episode's start"


def _changed(before: Frame, frame: Frame, games: list[int]) -> bool:
    return frame_difference(before, {name: frame[name] for name in before}, games) is not None


def _final_differs(frame: Frame, game: int) -> bool:
    names = [name for name in frame if name.startswith("observations")]
    return any(frame[f"final_{name}"][game].tobytes() != frame[name][game].tobytes() for name in names)


def check_partial_reset(probe: Probe) -> Iterator[str]:
    """`reset` with a mask leaves the other games untouched, now and later."""
    probe.need_repeatable()
    if probe.num_envs < 2:
        raise NotApplicableError("the world has only one game")
    half = probe.options.steps // 2
    before = {name: probe.usual[half][name] for name in probe.usual[0]}
    undisturbed = probe.usual[1 + half :]
    mask = np.arange(probe.num_envs) % 2 == 0
    others = np.flatnonzero(~mask).tolist()
    with probe.open() as env:
        env.reset()
        probe.advance(env, 0, half)
        none = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        difference = frame_difference(before, observation_frame(env.reset(none)))
        yield from named("reset with a mask of no games changes something", difference)
        after = observation_frame(env.reset(torch.as_tensor(mask, device=env.device)))
        yield from named("reset of other games changes an observation", frame_difference(before, after, others))
        difference = record_difference(undisturbed, probe.record(env, half, probe.options.steps - half), others)
        yield from named("reset of other games changes a game's future", difference)


def _no_end(probe: Probe) -> str:
    return f"no game ended in {probe.options.end_steps} steps; make the world with a smaller step limit"


class _Known(NamedTuple):
    """A snapshot in the middle of play, what was seen then, and what came after it."""

    snapshot: Mapping[str, Tensor]
    seen: Frame
    future: list[Frame]
    bots: bool


def check_snapshot(probe: Probe) -> Iterator[str]:
    """A restored game has the same past and the same future, bit for bit, also in another batch."""
    probe.need_repeatable()
    if not probe.spec.snapshots:
        raise NotApplicableError("spec.snapshots is False")
    count = probe.options.steps
    for bots in (False, True) if probe.spec.bots else (False,):
        with probe.open() as env:
            seen = observation_frame(env.reset())
            last = probe.advance(env, 0, count, bots=bots)
            if last is not None:
                seen = observation_frame(last.observations)
            taken = env.snapshot()
            copied = {name: tensor.clone() for name, tensor in taken.items()}
            known = _Known(copied, seen, probe.record(env, count, count, bots=bots), bots)
            if any(not torch.equal(taken[name], copied[name]) for name in copied):
                yield "later steps write into the snapshot"
            yield from _restore_faults(probe, env, known, "the same batch")
        with probe.open(seed=probe.options.seed + 1) as env:
            env.reset()
            yield from _restore_faults(probe, env, known, "another batch")


def _restore_faults(probe: Probe, env: BatchedEnv, known: _Known, where: str) -> Iterator[str]:
    given = {name: tensor.clone() for name, tensor in known.snapshot.items()}
    difference = frame_difference(known.seen, observation_frame(env.restore(given)))
    yield from named(f"restore in {where} does not return the observations of the snapshot", difference)
    count = probe.options.steps
    difference = record_difference(known.future, probe.record(env, count, count, bots=known.bots))
    yield from named(f"after restore in {where}, play continues differently (with {_PLAYERS[known.bots]})", difference)
    if any(not torch.equal(given[name], known.snapshot[name]) for name in given):
        yield f"play after restore in {where} writes into the snapshot that was given"


def check_foreign_snapshot(probe: Probe) -> Iterator[str]:
    """A snapshot that does not fit is refused with SnapshotError, and without support with UnsupportedError."""
    with probe.open() as env:
        env.reset()
        if not probe.spec.snapshots:
            try:
                env.snapshot()
            except UnsupportedError:
                return
            yield "spec.snapshots is False, but snapshot() does not raise UnsupportedError"
            return
        snapshot = env.snapshot()
    name = sorted(snapshot)[0]
    foreign = {
        "of nothing": {},
        f"without {name!r}": {key: tensor for key, tensor in snapshot.items() if key != name},
        "with a name too many": snapshot | {"a foreign name": torch.zeros(1)},
    }
    for kind, given in foreign.items():
        with probe.open() as env:
            yield from _refusal_faults(env, given, kind)
    if probe.spec.max_envs is None or probe.num_envs < probe.spec.max_envs:
        with probe.open(games=probe.num_envs + 1) as env:
            yield from _refusal_faults(env, snapshot, "of another number of games")


def _refusal_faults(env: BatchedEnv, snapshot: Mapping[str, Tensor], kind: str) -> Iterator[str]:
    try:
        env.restore(snapshot)
    except SnapshotError:
        return
    except Exception as error:
        yield f"restore of a snapshot {kind} raises {type(error).__name__}, not SnapshotError: {error}"
        return
    yield f"restore accepts a snapshot {kind}"


def _whole_record(probe: Probe, seed: int | None = None) -> list[Frame]:
    """Return first observations and steps of a new batch, of the usual seed unless told otherwise."""
    with probe.open(seed=seed) as env:
        first = observation_frame(env.reset())
        return [first, *probe.record(env, 0, probe.options.steps)]


def check_equal_seeds(probe: Probe) -> Iterator[str]:
    """Equal seeds and actions give equal games, from the start or through `reset(seed=...)`."""
    probe.need_repeatable()
    yield from named("two batches of the same seed", record_difference(probe.usual, _whole_record(probe)))
    new, used = _seeded_record(probe, used=False), _seeded_record(probe, used=True)
    yield from named("reset(seed=...) after some play is not the same as in a new batch", record_difference(new, used))


def _seeded_record(probe: Probe, *, used: bool) -> list[Frame]:
    """Return what comes after `reset(seed=...)` of a batch of another seed, new or with some episodes behind it."""
    with probe.open(seed=probe.options.seed + 1) as env:
        if used:
            for _ in range(2):
                env.reset()
                probe.advance(env, 0, 7)
        first = observation_frame(env.reset(seed=probe.options.seed))
        if env.seed != probe.options.seed:
            raise ConformanceError(f"env.seed is {env.seed} after reset(seed={probe.options.seed})")
        return [first, *probe.record(env, 0, probe.options.steps)]


def check_different_seeds(probe: Probe) -> Iterator[str]:
    """Different seeds give different games, and so do different game indices."""
    probe.need_repeatable()
    if not probe.options.random:
        raise NotApplicableError("the world was declared to have no randomness (CheckOptions.random)")
    others = range(probe.options.seed + 1, probe.options.seed + 1 + _TRIES)
    if all(record_difference(probe.usual, _whole_record(probe, seed)) is None for seed in others):
        yield f"seeds {probe.options.seed} ... {others[-1]} all give the same games"
    if probe.num_envs > 1 and all(_games_alike(probe, seed) for seed in others):
        yield "all games of a batch are alike: randomness must depend on the game index (first_game + i)"


def _games_alike(probe: Probe, seed: int) -> bool:
    """Return whether all games of a batch look the same when they are given the same actions."""
    games = range(1, probe.num_envs)
    with probe.open(seed=seed) as env:
        frame = observation_frame(env.reset())
        for step in range(probe.options.steps):
            if any(frame_difference(frame, frame, [game], shift=game) is not None for game in games):
                return False
            actions = probe.actions(env, step)
            frame = observation_frame(env.step(actions[:1].expand_as(actions).clone()).observations)
    return True


def check_batch(probe: Probe) -> Iterator[str]:
    """A batch of N games equals N batches of one, bit for bit, with random keys and with bots."""
    probe.need_repeatable()
    if probe.num_envs < 2:
        raise NotApplicableError("the world has only one game")
    for bots in (False, True) if probe.spec.bots else (False,):
        together = _together(probe, bots)
        for game in range(probe.num_envs):
            with probe.open(games=1, first_game=game) as env:
                first = observation_frame(env.reset())
                alone = [first, *probe.record(env, 0, probe.options.steps, row=game, bots=bots)]
            found = record_difference(together, alone, [game], shift=game)
            if found is not None:
                yield f"with {_PLAYERS[bots]}, a game alone is not the game in a batch of {probe.num_envs}: {found}"
                break


def _together(probe: Probe, bots: bool) -> list[Frame]:
    if not bots:
        return probe.usual
    with probe.open() as env:
        return [observation_frame(env.reset()), *probe.record(env, 0, probe.options.steps, bots=True)]


def check_inputs(probe: Probe) -> Iterator[str]:
    """`step` leaves the actions and `reset` leaves the mask as they were given."""
    with probe.open() as env:
        env.reset()
        for step in range(probe.options.steps):
            actions = probe.actions(env, step)
            kept = actions.clone()
            env.step(actions)
            if not torch.equal(actions, kept):
                yield f"step wrote into the actions it was given, in step {step}"
                break
        mask = torch.arange(env.num_envs, device=env.device) % 2 == 0
        kept = mask.clone()
        env.reset(mask)
        if not torch.equal(mask, kept):
            yield "reset wrote into the mask it was given"
