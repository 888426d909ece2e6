"""Mirrors: what they do to numbers, what is refused, what the conformance kit finds; the point is symmetric."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ludus.core.errors import ConfigError
from ludus.envs import make_env
from ludus.envs.base import BatchedEnv, EnvRequest, EnvSpec, Mirror, Observations, Reflection
from ludus.envs.check import CheckOptions, EnvMaker, run_checks
from ludus.envs.tiny.point import PointEnv

OPTIONS = CheckOptions(num_games=2, steps=8, end_steps=60)
SWAP = Reflection((1, 0, 2), (1.0, 1.0, -1.0))


def spec(observations: spaces.Space[Any], actions: spaces.Space[Any], mirror: Mirror) -> EnvSpec:
    return EnvSpec("test", 1, (0,), spaces.Dict({"vector": observations}), actions, 30.0, None, mirror=mirror)


def box(*high: float) -> spaces.Box:
    ends = np.array(high, np.float32)
    return spaces.Box(-ends, ends, dtype=np.float32)


def test_numbers_change_places_and_signs() -> None:
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert SWAP.apply(values).tolist() == [[2.0, 1.0, -3.0], [5.0, 4.0, -6.0]]
    assert torch.equal(SWAP.apply(SWAP.apply(values)), values)
    buttons = torch.tensor([[1, 0, 1]], dtype=torch.int8)
    assert Reflection((1, 0, 2), (1.0, 1.0, 1.0)).apply(buttons).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(
    ("source", "sign", "message"),
    [
        ((0, 1), (1.0,), "as many signs as sources"),
        ((), (), "at least one"),
        ((0, 2), (1.0, 1.0), "source 2; valid: 0 to 1"),
        ((0, 1), (1.0, 0.5), "sign 0.5; valid: 1 and -1"),
        ((1, 2, 0), (1.0, 1.0, 1.0), "must give the original: place 0 comes from 1"),
        ((1, 0), (1.0, -1.0), "with the same sign"),
    ],
)
def test_what_is_no_mirror_is_refused(source: tuple[int, ...], sign: tuple[float, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Reflection(source, sign)


@pytest.mark.parametrize(
    ("observations", "actions", "mirror", "message"),
    [
        (box(1, 1, 1), box(1, 1, 1), Mirror({}, SWAP), "entries none; expected vector"),
        (box(1, 1), box(1, 1, 1), Mirror({"vector": SWAP}, SWAP), "'vector' has 2 numbers, its reflection 3"),
        (box(1, 1, 1), box(1, 1), Mirror({"vector": SWAP}, SWAP), "the action has 2 numbers"),
        (box(1, 1, 1), spaces.Discrete(3), Mirror({"vector": SWAP}, SWAP), "no axis to mirror"),
        (box(1, 1, 1), spaces.MultiBinary(3), Mirror({"vector": SWAP}, SWAP), "cannot change their sign"),
        (
            box(1, 1, 1),
            spaces.MultiDiscrete([2, 3]),
            Mirror({"vector": SWAP}, Reflection((1, 0), (1.0, 1.0))),
            "different counts",
        ),
        (box(1, 1, 1), box(1, 2, 1), Mirror({"vector": SWAP}, SWAP), "mirrored actions leave their bounds"),
    ],
)
def test_a_spec_refuses_a_mirror_that_does_not_fit(
    observations: spaces.Space[Any], actions: spaces.Space[Any], mirror: Mirror, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"the mirror of test-v1 does not fit: .*{message}"):
        spec(observations, actions, mirror)


def test_buttons_and_choices_may_change_places() -> None:
    swap = Reflection((1, 0, 2), (1.0, 1.0, 1.0))
    for actions in (spaces.MultiBinary(3), spaces.MultiDiscrete([4, 4, 2])):
        assert spec(box(1, 1, 1), actions, Mirror({"vector": SWAP}, swap)).mirror is not None


def maker(factory: type[BatchedEnv]) -> EnvMaker:
    def make(num_games: int, seed: int, first_game: int, /) -> BatchedEnv:
        return factory(EnvRequest(num_games, "cpu", seed, first_game, {"step_limit": 5}))  # type: ignore[call-arg]

    return make


class Lopsided(PointEnv):
    """Its height is never below 0, so that no mirror image of it can be a width."""

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        high = np.array([1, 1, 1, 1, 2, 2], dtype=np.float32)
        low = -high
        low[1] = 0.0
        self.spec = replace(self.spec, observation_space=spaces.Dict({"vector": spaces.Box(low, high)}))

    def _observe(self) -> Observations:
        seen = super()._observe()["vector"].clone()
        seen[..., 1] = seen[..., 1].abs()
        return {"vector": seen}


def test_the_kit_looks_at_real_observations() -> None:
    assert "mirror" in run_checks("point-v1", OPTIONS).passed
    assert run_checks("duel-v1", OPTIONS).skipped["mirror"] == "the world has no mirror"
    (fault,) = run_checks(maker(Lopsided), OPTIONS).failed["mirror"]
    assert "observation 'vector' leaves its space" in fault
    assert "place 1 of the last axis, which comes from place 0" in fault


def test_a_mirrored_game_of_the_point_is_the_game_of_mirrored_actions() -> None:
    with make_env("point", 16, seed=3) as env, make_env("point", 16, seed=3) as other:
        mirror = env.spec.mirror
        assert mirror is not None
        see = mirror.observations["vector"].apply
        seen, mirrored = env.reset()["vector"], other.reset()["vector"]
        state = other.snapshot()
        for name in ("position", "velocity", "target"):
            state[f"point-v1/{name}"] = -state[f"point-v1/{name}"].flip(-1)
        mirrored = other.restore(state)["vector"]
        assert torch.equal(mirrored, see(seen))
        generator = torch.Generator().manual_seed(0)
        for _ in range(20):
            actions = 2.0 * torch.rand(16, 1, 2, generator=generator) - 1.0
            seen = env.step(actions).observations["vector"]
            mirrored = other.step(mirror.actions.apply(actions)).observations["vector"]
            assert torch.equal(mirrored, see(seen))
