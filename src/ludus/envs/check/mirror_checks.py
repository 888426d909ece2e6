"""Checks of the mirror: the image of what is really seen and done is valid, and its image is the original again."""

from collections.abc import Iterator

import torch
from gymnasium import spaces
from torch import Tensor

from ludus.envs.base import Reflection
from ludus.envs.check.probe import Probe, sample_actions
from ludus.envs.check.report import NotApplicableError
from ludus.envs.mirror import mirror_faults


def check_mirror(probe: Probe) -> Iterator[str]:
    """Mirror images of observations and actions lie in their spaces, and mirrored again they are the originals."""
    mirror = probe.spec.mirror
    if mirror is None:
        raise NotApplicableError("the world has no mirror")
    yield from mirror_faults(mirror, probe.spec.observation_space, probe.spec.action_space)
    steps, spec = probe.options.steps, probe.spec
    actions = torch.from_numpy(sample_actions(spec, steps, probe.num_games, probe.options.seed))
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
