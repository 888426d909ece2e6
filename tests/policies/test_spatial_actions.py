"""Policies that see every cell of a map: all entrances, files, stacks, and that they find places never seen before."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import ActionGrid, ActionKinds, EnvSpec
from ludus.nn.heads import MaskedCategoricalHead, SpatialHead
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy

ROWS, COLUMNS, PIXELS = 4, 5, 2
CELLS = ROWS * COLUMNS
SMALL = {"channels": [4], "kernels": [2], "strides": [2], "features": 8}


SAID = ActionKinds("mask", ((False,), (True,), (True,)), places=ActionGrid("map", ROWS, COLUMNS))


def _spec(**changes: Any) -> EnvSpec:
    settings: dict[str, Any] = {
        "name": "maptest",
        "version": 1,
        "teams": (0,),
        "observation_space": spaces.Dict(
            {
                "map": spaces.Box(0, 255, (ROWS * PIXELS, COLUMNS * PIXELS, 3), np.uint8),
                "vector": spaces.Box(-1.0, 1.0, (3,), np.float32),
                "mask": spaces.Box(0, 1, (3 + CELLS,), np.bool_),
            }
        ),
        "action_space": spaces.MultiDiscrete([3, CELLS]),
        "rate_hz": 1.0,
        "step_limit": None,
        "actions": replace(SAID, **changes),
    }
    return EnvSpec(**settings)


def _frames(rows: int, generator: torch.Generator) -> dict[str, Tensor]:
    mask = torch.rand(rows, 3 + CELLS, generator=generator) < 0.8
    mask[:, 0] = mask[:, -1] = True
    return {
        "map": torch.randint(0, 256, (rows, ROWS * PIXELS, COLUMNS * PIXELS, 3), generator=generator).byte(),
        "vector": torch.rand(rows, 3, generator=generator),
        "mask": mask,
    }


def _policy(**settings: Any) -> Policy:
    torch.manual_seed(0)
    policy = Policy(_spec(), PolicyConfig.model_validate({"net_arch": {"pi": [16], "vf": [16]}, **settings}))
    for parameter in policy.head.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return policy


@pytest.mark.parametrize("memory", [{}, {"recurrent": {"size": 8}}, {"recurrent": {"size": 8, "skip": True}}])
@pytest.mark.parametrize("explore", [False, True])
def test_step_and_unroll_agree(memory: dict[str, Any], explore: bool) -> None:
    policy = _policy(**memory, **({"exploration": {"frequency": 0.5}} if explore else {}))
    assert isinstance(policy.head, SpatialHead)
    generator, rows, steps = torch.Generator().manual_seed(1), 6, 4
    noise = policy.draw_noise(steps, rows, generator, explore=True)
    frames = [_frames(rows, generator) for _ in range(steps)]
    episode_starts = torch.zeros(steps, rows, dtype=torch.bool)
    state, played = policy.initial(rows), []
    for frame, drawn in zip(frames, noise, strict=True):
        played.append(policy.step(frame, state, episode_starts[0], drawn))
        state = played[-1].memory
        for row, (kind, cell) in enumerate(played[-1].actions.tolist()):
            assert frame["mask"][row, kind]
            assert cell == 0 if kind == 0 else frame["mask"][row, 3 + cell]
    together = {name: torch.stack([frame[name] for frame in frames]) for name in frames[0]}
    actions = torch.stack([step.actions for step in played])
    unrolled = policy.unroll(together, policy.initial(rows), episode_starts, actions)
    assert torch.allclose(unrolled.log_probs, torch.stack([step.log_probs for step in played]), atol=1e-5)
    assert torch.allclose(unrolled.values, torch.stack([step.values for step in played]), atol=1e-5)


def test_files_know_places_and_configs_can_do_without() -> None:
    policy = _policy()
    described = PolicyDescription.read(PolicyDescription.of(policy.spec, policy.config).model_dump_json())
    assert described.spec().actions.places == ActionGrid("map", ROWS, COLUMNS)
    again = Policy(described.spec(), described.config)
    again.load_state(policy.state())
    frame = _frames(3, torch.Generator().manual_seed(3))
    episode_starts = torch.zeros(3, dtype=torch.bool)
    assert torch.equal(again.step(frame, {}, episode_starts).actions, policy.step(frame, {}, episode_starts).actions)
    plain = Policy(_spec(), PolicyConfig.model_validate({"spatial": None, "cnn": SMALL}))
    assert type(plain.head) is MaskedCategoricalHead
    assert plain.step(frame, {}, episode_starts).actions.shape == (3, 2)


def test_snapshots_play_side_by_side_as_they_do_alone() -> None:
    policy = _policy()
    states = [policy.state(), {name: 1.1 * tensor for name, tensor in policy.state().items()}]
    stack = StackedPolicy(policy, 2)
    for slot, state in enumerate(states):
        stack.load(slot, state)
    frame = _frames(6, torch.Generator().manual_seed(4))
    slots, episode_starts = torch.tensor([0, 1, 1, 0, 1, 0]), torch.zeros(6, dtype=torch.bool)
    stack.choose(slots)
    noise = policy.draw_noise(1, 6, torch.Generator().manual_seed(5))[0]
    together = stack.step(frame, stack.initial(6), episode_starts, noise)
    for slot, state in enumerate(states):
        policy.load_state(state)
        alone = policy.step(frame, policy.initial(6), episode_starts, noise)
        mine = slots == slot
        assert torch.equal(together.actions[mine], alone.actions[mine])
        assert torch.allclose(together.log_probs[mine], alone.log_probs[mine], atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"places": ActionGrid("map", 5, 4)}, "multiple of 5"),
        ({"places": ActionGrid("map", 4, 4)}, "these 16 cells"),
        ({"places": ActionGrid("picture", 4, 5)}, "which is missing"),
        ({"places": ActionGrid("vector", 4, 5)}, "must be a picture"),
        ({"uses": ((False,), (False,), (False,))}, "no kind of action needs a cell"),
    ],
)
def test_places_that_do_not_fit_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _spec(**changes)


def test_what_is_learned_of_some_places_holds_at_others() -> None:
    """Red cells are to be dug (kind 1), green ones watered (kind 2); only the left three columns are practised."""
    torch.manual_seed(0)
    policy = Policy(_spec(), PolicyConfig.model_validate({"net_arch": {"pi": [32], "vf": [8]}}))
    optimiser = torch.optim.Adam(policy.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(6)

    def lesson(rows: int, columns: range) -> tuple[dict[str, Tensor], Tensor]:
        row = torch.randint(ROWS, (rows,), generator=generator)
        column = torch.randint(columns.start, columns.stop, (rows,), generator=generator)
        kind = torch.randint(1, 3, (rows,), generator=generator)
        cells = torch.randint(0, 40, (rows, ROWS, COLUMNS, 3), generator=generator)
        cells[torch.arange(rows), row, column, kind - 1] = 220
        picture = cells.repeat_interleave(PIXELS, 1).repeat_interleave(PIXELS, 2).byte()
        frame = {"map": picture, "vector": torch.zeros(rows, 3), "mask": torch.ones(rows, 3 + CELLS).bool()}
        return frame, torch.stack((kind, row * COLUMNS + column), dim=1)

    for _ in range(150):
        frame, right = lesson(64, range(3))
        segment = {name: tensor.unsqueeze(0) for name, tensor in frame.items()}
        unrolled = policy.unroll(segment, {}, torch.zeros(1, 64, dtype=torch.bool), right.unsqueeze(0))
        optimiser.zero_grad()
        (-unrolled.log_probs.mean()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    frame, right = lesson(200, range(3, COLUMNS))
    chosen = policy.step(frame, {}, torch.zeros(200, dtype=torch.bool)).actions
    assert float((chosen == right).all(1).float().mean()) > 0.95
