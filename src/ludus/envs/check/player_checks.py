"""Checks of what players rely on: seats and bots, mirror images, and the choices that actions are made of."""

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ActionError, LudusError, UnknownNameError, UnsupportedError
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, Reflection, action_dtypes
from ludus.envs.check.probe import Frame, NotApplicableError, Probe, host, named, record_difference, sample_actions
from ludus.envs.spaces import action_bounds, are_allowed, mirror_faults


def check_actions(probe: Probe) -> Iterator[str]:
    """Actions of wrong shape, type or device raise ActionError and leave the games as they were."""
    with probe.open() as env:
        env.reset()
        for kind, actions in _wrong_actions(probe, env).items():
            try:
                env.step(actions)
            except ActionError:
                continue
            except Exception as error:
                yield f"actions {kind} raise {type(error).__name__}, not ActionError: {error}"
            else:
                yield f"actions {kind} are accepted"
        after = probe.record(env, 0, probe.options.steps)
    yield from _changes(probe, after, "refused actions have changed the games")


def _wrong_actions(probe: Probe, env: BatchedEnv) -> dict[str, Tensor]:
    right = probe.actions(env, 0)
    return {
        "of a game too many": torch.cat([right, right[:1]]),
        "without the axis of the seats": right[:, 0],
        "with an axis too many": right.unsqueeze(-1),
        "of type float64": right.to(torch.float64),
        "that are a list": cast("Tensor", right.tolist()),
        "on another device": right.to("meta"),
    }


def _changes(probe: Probe, after: list[Frame], fault: str) -> Iterator[str]:
    """Yield the fault if the steps of a new batch, with nothing before them, are others."""
    if not probe.spec.realtime:
        yield from named(fault, record_difference(probe.usual[1:], after))


def check_bots(probe: Probe) -> Iterator[str]:
    """Bots write valid actions into their own seats and into no others; unknown names are refused."""
    with probe.open() as env:
        env.reset()
        try:
            env.bots(["no such bot"])
        except (UnknownNameError, UnsupportedError):
            pass
        except Exception as error:
            yield f"bots(['no such bot']) raises {type(error).__name__}, not UnknownNameError: {error}"
        else:
            yield "bots(['no such bot']) is accepted"
        if not probe.spec.bots:
            raise NotApplicableError("the world has no bots (spec.bots)")
        for name in probe.spec.bots:
            yield from _bot_faults(probe, env, name)


def _bot_faults(probe: Probe, env: BatchedEnv, name: str) -> Iterator[str]:
    try:
        bots = env.bots([name])
    except LudusError as error:
        yield f"spec.bots names {name!r}, but bots([{name!r}]) raises {type(error).__name__}: {error}"
        return
    if tuple(bots.names) != (name,):
        yield f"bots([{name!r}]).names is {bots.names}"
    seats = torch.arange(env.num_envs * env.spec.seats, device=env.device).view(env.num_envs, env.spec.seats)
    for step in range(min(probe.options.steps, 10)):
        assignment = torch.where((seats + step) % 2 == 0, 0, -1).to(torch.int32)
        actions = probe.actions(env, step)
        given, given_assignment = host(actions), assignment.clone()
        bots.act(assignment, actions)
        free = np.asarray(host(assignment)) < 0
        if not np.array_equal(host(actions)[free], given[free]):
            yield f"bot {name!r} writes into seats that it does not play (assignment -1)"
            return
        if not torch.equal(assignment, given_assignment):
            yield f"bot {name!r} changes the assignment it was given"
            return
        if not _valid_actions(env.spec, actions):
            yield f"bot {name!r} writes actions outside {env.spec.action_space}"
            return
        env.step(actions)


def _valid_actions(spec: EnvSpec, actions: Tensor) -> bool:
    """Return whether actions `(games, seats, ...)` lie in the action space."""
    low, high = action_bounds(spec.action_space)
    inside = (actions.cpu() >= low) & (actions.cpu() <= high)
    return actions.dtype in action_dtypes(spec.action_space) and bool(inside.all())


def check_render(probe: Probe) -> Iterator[str]:
    """`render` gives an RGB picture and leaves the games as they were."""
    with probe.open() as env:
        env.reset()
        try:
            picture = env.render()
        except UnsupportedError as error:
            raise NotApplicableError("the world cannot be drawn") from error
        if not isinstance(picture, np.ndarray) or picture.dtype != np.uint8:
            yield f"render() gives {type(picture).__name__} of {getattr(picture, 'dtype', 'no type')}, expected uint8"
        elif picture.ndim != 3 or picture.shape[2] != 3:
            yield f"render() gives a picture of shape {picture.shape}, expected (height, width, 3)"
        after = probe.record(env, 0, probe.options.steps)
    yield from _changes(probe, after, "drawing has changed the games")


def check_close(probe: Probe) -> Iterator[str]:
    """`close` may be called twice, also on a batch that was never played."""
    for played in (False, True):
        with probe.open() as env:
            if played:
                env.reset()
                env.step(probe.actions(env, 0))
            env.close()
            try:
                env.close()
            except Exception as error:
                yield f"the second close() raises {type(error).__name__}: {error}"


def check_mirror(probe: Probe) -> Iterator[str]:
    """Mirror images of observations and actions lie in their spaces, and mirrored again they are the originals."""
    mirror = probe.spec.mirror
    if mirror is None:
        raise NotApplicableError("the world has no mirror")
    yield from mirror_faults(mirror, probe.spec.observation_space, probe.spec.action_space)
    steps, spec = probe.options.steps, probe.spec
    actions = torch.from_numpy(sample_actions(spec, steps, probe.num_envs, probe.options.seed))
    yield from _faults(mirror.actions, actions, spec.action_space, "the action")
    with probe.open() as env:
        env.reset()
        for _, result in probe.play(env, 0, steps):
            # Entries of other names and numbers outside their space are what the check of steps is for.
            for name, reflection in mirror.observations.items():
                if name not in result.observations:
                    continue
                space = spec.observation_space[name]
                faults = list(_faults(reflection, result.observations[name], space, f"observation {name!r}"))
                yield from faults
                if faults:
                    return


def _faults(reflection: Reflection, values: Tensor, space: spaces.Space[object], what: str) -> Iterator[str]:
    image = reflection.apply(values)
    if not torch.equal(reflection.apply(image), values):
        yield f"the mirror image of the mirror image of {what} is not the original"
    if not isinstance(space, spaces.Box) or _outside(values, space).any():
        return
    outside = _outside(image, space)
    if outside.any():
        first = tuple(outside.nonzero()[0].tolist())
        yield (
            f"the mirror image of {what} leaves its space: {image[first].item()} at place {first[-1]} of the last "
            f"axis, which comes from place {reflection.source[first[-1]]}"
        )


def _outside(values: Tensor, space: spaces.Box) -> Tensor:
    low, high = (torch.from_numpy(end).to(values.device) for end in (space.low, space.high))
    return (values < low) | (values > high)


def check_choices(probe: Probe) -> Iterator[str]:
    """The mask allows something of every factor; bots play what is allowed, and 0 where a factor does not count."""
    spec = probe.spec
    if spec.actions.mask is None and not spec.actions.uses:
        raise NotApplicableError("the world has neither a mask nor factors that do not always count")
    with probe.open() as env:
        faults = list(mask_faults(spec, env.reset()))
        for _, result in probe.play(env, 0, probe.options.steps):
            faults = faults or list(mask_faults(spec, result.observations))
        yield from faults
    for name in spec.bots:
        with probe.open() as env:
            yield from _masked_bot_faults(probe, env, name)


def mask_faults(spec: EnvSpec, observations: Observations) -> Iterator[str]:
    """Yield what is wrong with the mask among observations `(games, seats, ...)`."""
    if spec.actions.mask is None:
        return
    mask = host(observations[spec.actions.mask]).astype(np.float64)
    if not np.isin(mask, (0.0, 1.0)).all():
        yield f"the mask {spec.actions.mask!r} has numbers other than 0 and 1"
    ends = np.cumsum(spec.choices.counts)
    for factor, part in enumerate(np.split(mask, ends[:-1], axis=-1)):
        if not part.any(-1).all():
            yield f"the mask {spec.actions.mask!r} allows nothing of factor {factor}, so everything counts as allowed"


def _masked_bot_faults(probe: Probe, env: BatchedEnv, name: str) -> Iterator[str]:
    bots, observations = env.bots([name]), env.reset()
    everyone = torch.zeros((env.num_envs, env.spec.seats), dtype=torch.int32, device=env.device)
    for step in range(probe.options.steps):
        actions = probe.actions(env, step)
        bots.act(everyone, actions)
        if not are_allowed(env.spec.choices, _mask(env.spec, observations), actions).all():
            yield f"bot {name!r} plays what the mask does not allow, or a factor that does not count, in step {step}"
            return
        observations = env.step(actions).observations


def _mask(spec: EnvSpec, observations: Observations) -> Tensor | None:
    return None if spec.actions.mask is None else observations[spec.actions.mask]
