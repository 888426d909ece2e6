"""Checks of choices: masks say 0 or 1 and leave something to do, and scripted players keep to them."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv, EnvSpec, Observations
from ludus.envs.check.probe import Probe, host
from ludus.envs.check.report import NotApplicableError
from ludus.envs.choices import are_allowed


def check_choices(probe: Probe) -> Iterator[str]:
    """The mask allows something of every factor; bots play what is allowed, and 0 where a factor does not count."""
    spec = probe.spec
    if spec.action_mask is None and not spec.action_uses:
        raise NotApplicableError("the world has neither a mask nor factors that do not always count")
    with probe.open() as env:
        faults = list(mask_faults(spec, env.reset()))
        for _, result in probe.play(env, 0, probe.options.steps):
            faults = faults or list(mask_faults(spec, result.observations))
        yield from faults
    for name in spec.bots:
        with probe.open() as env:
            yield from _bot_faults(probe, env, name)


def mask_faults(spec: EnvSpec, observations: Observations) -> Iterator[str]:
    """Yields what is wrong with the mask among observations `(games, seats, ...)`."""
    if spec.action_mask is None:
        return
    mask = host(observations[spec.action_mask]).astype(np.float64)
    if not np.isin(mask, (0.0, 1.0)).all():
        yield f"the mask {spec.action_mask!r} has numbers other than 0 and 1"
    ends = np.cumsum(spec.choices.counts)
    for factor, part in enumerate(np.split(mask, ends[:-1], axis=-1)):
        if not part.any(-1).all():
            yield f"the mask {spec.action_mask!r} allows nothing of factor {factor}, so everything counts as allowed"


def _bot_faults(probe: Probe, env: BatchedEnv, name: str) -> Iterator[str]:
    bots, observations = env.bots([name]), env.reset()
    everyone = torch.zeros((env.num_games, env.spec.seats), dtype=torch.int32, device=env.device)
    for step in range(probe.options.steps):
        actions = probe.actions(env, step)
        bots.act(everyone, actions)
        if not are_allowed(env.spec.choices, _mask(env.spec, observations), actions).all():
            yield f"bot {name!r} plays what the mask does not allow, or a factor that does not count, in step {step}"
            return
        observations = env.step(actions).observations


def _mask(spec: EnvSpec, observations: Observations) -> Tensor | None:
    return None if spec.action_mask is None else observations[spec.action_mask]
