"""Tensors that callers hand in: whatever their type, place and layout, the same match; checked when they change."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ludus.core.errors import ActionError
from ludus.envs.registry import make_env
from ludus.worlds.brawl.env import BrawlEnv

GAMES, STEPS = 6, 120
PLAYERS = ["random", "aggressive", "edge-guarder", "based"]

Layout = Callable[[Tensor], Tensor]


def same(tensor: Tensor) -> Tensor:
    return tensor


def strided(tensor: Tensor) -> Tensor:
    """The same values with gaps between them."""
    wide = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1]), 9, dtype=tensor.dtype)
    view = wide[..., ::2]
    view.copy_(tensor)
    return view


def play(actions_like: Layout, assignment_like: Layout, *, anew: bool) -> tuple[Tensor, Tensor]:
    """Plays bots and returns their keys and the last observations; `anew`: every step brings other tensors."""
    with make_env("brawl", GAMES, seed=4, config={"threads": 1, "step_limit": 90}) as env:
        env.reset()
        bots = env.bots(PLAYERS)
        plain = (torch.arange(GAMES * 2, dtype=torch.int32) % 5 - 1).view(GAMES, 2)  # some seats have no bot
        actions = actions_like(torch.zeros((GAMES, 2, 10), dtype=torch.int8))
        assignment = assignment_like(plain)
        history, kept = [], []
        for _ in range(STEPS):
            if anew:
                kept += [actions, assignment]  # so that the memory of the next ones is another
                actions, assignment = actions_like(actions.clone()), assignment_like(plain.clone())
            bots.act(assignment, actions)
            result = env.step(actions)
            history.append(actions.to(torch.int8, copy=True))
        return torch.stack(history), result.observations["vector"].clone()


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize(
    ("actions_like", "assignment_like"),
    [
        (same, same),
        (strided, same),
        (same, strided),
        (same, Tensor.long),
        (lambda actions: actions.to(torch.uint8), same),
        (lambda actions: actions.bool(), lambda assignment: strided(assignment.long())),
    ],
    ids=["plain", "strided actions", "strided assignment", "int64 assignment", "uint8 actions", "bool actions"],
)
def test_any_tensor_gives_the_same_match(actions_like: Layout, assignment_like: Layout, anew: bool) -> None:
    keys, seen = play(same, same, anew=False)
    other_keys, other_seen = play(actions_like, assignment_like, anew=anew)
    assert torch.equal(keys, other_keys)
    assert torch.equal(seen, other_seen)
    assert int(keys.sum()) > 1000
    assert int(keys[:, 0, 0].sum()) == 0  # nobody plays this seat


def test_strided_actions_keep_the_values_between() -> None:
    with make_env("brawl", GAMES, config={"threads": 1}) as env:
        view = strided(torch.zeros((GAMES, 2, 10), dtype=torch.int8))
        base = view._base
        assert base is not None
        env.bots(["random"]).act(torch.zeros((GAMES, 2), dtype=torch.int32), view)
        assert bool((base[..., 1::2] == 9).all())
        assert 0 < int(view.sum()) < view.numel()


def test_steps_change_neither_the_actions_nor_hold_them() -> None:
    with make_env("brawl", GAMES, seed=1, config={"threads": 1}) as env, make_env("brawl", GAMES, seed=1) as twin:
        assert isinstance(env, BrawlEnv)
        right = torch.zeros((GAMES, 2, 10), dtype=torch.int8)
        right[..., 3] = 1
        given = right.clone()
        env.step(given)
        assert torch.equal(given, right)
        given.zero_()  # a later step must not see what a caller does to tensors of an earlier one
        for current in (env, twin):
            current.reset(seed=1)
            for _ in range(20):
                current.step(right.clone())
        assert torch.equal(env.snapshot()["players"], twin.snapshot()["players"])


def test_an_assignment_is_looked_at_again_when_it_changes() -> None:
    with make_env("brawl", GAMES, config={"threads": 1}) as env:
        bots = env.bots(["random", "based"])
        actions = torch.zeros((GAMES, 2, 10), dtype=torch.int8)
        assignment = torch.zeros((GAMES, 2), dtype=torch.int32)
        bots.act(assignment, actions)
        assignment[2, 1] = 2
        for _ in range(2):  # a bad one is refused again and again
            with pytest.raises(ActionError, match=r"bot 2.*random, based"):
                bots.act(assignment, actions)
        assignment[2, 1] = 1
        bots.act(assignment, actions)
        with pytest.raises(ActionError, match="bot 5"):
            bots.act(torch.full_like(assignment, 5), actions)


def test_assignments_made_in_inference_mode_are_checked_every_time() -> None:
    with make_env("brawl", GAMES, config={"threads": 1}) as env, torch.inference_mode():
        bots = env.bots(["random"])
        actions = torch.zeros((GAMES, 2, 10), dtype=torch.int8)
        assignment = torch.zeros((GAMES, 2), dtype=torch.int32)
        bots.act(assignment, actions)
        assignment[0, 0] = 1
        with pytest.raises(ActionError, match="bot 1"):
            bots.act(assignment, actions)
