"""Checks of who plays and who watches: refused actions, bots, drawing and closing."""

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ActionError, LudusError, UnknownNameError, UnsupportedError
from ludus.envs.base import BatchedEnv, EnvSpec, action_dtypes
from ludus.envs.check.probe import Frame, Probe, host, record_difference
from ludus.envs.check.report import NotApplicableError


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
    if probe.spec.realtime:
        return
    difference = record_difference(_plain_record(probe), after)
    if difference is not None:
        yield f"refused actions have changed the games: {difference}"


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


def _plain_record(probe: Probe) -> list[Frame]:
    with probe.open() as env:
        env.reset()
        return probe.record(env, 0, probe.options.steps)


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
    seats = torch.arange(env.num_games * env.spec.seats, device=env.device).view(env.num_games, env.spec.seats)
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
    """Says whether actions `(games, seats, ...)` lie in the action space."""
    if actions.dtype not in action_dtypes(spec.action_space):
        return False
    values, space = host(actions).astype(np.float64), spec.action_space
    if isinstance(space, spaces.Discrete):
        return bool(((values >= space.start) & (values < space.start + space.n)).all())
    if isinstance(space, spaces.MultiDiscrete):
        return bool(((values >= space.start) & (values < space.start + space.nvec)).all())
    if isinstance(space, spaces.Box):
        return bool(((values >= space.low) & (values <= space.high)).all())
    return bool(np.isin(values, (0, 1)).all())


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
    if probe.spec.realtime:
        return
    difference = record_difference(_plain_record(probe), after)
    if difference is not None:
        yield f"drawing has changed the games: {difference}"


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
