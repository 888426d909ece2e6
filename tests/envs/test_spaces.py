"""The structure of spaces: choices, masks and mirrors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus import make_env
from ludus.core.errors import ConfigError
from ludus.envs.base import ActionKinds, BatchedEnv, EnvRequest, EnvSpec, Mirror, Observations, Reflection, check_fits
from ludus.envs.check import CheckOptions, EnvMaker, run_checks
from ludus.envs.spaces import are_allowed, draw_actions, draw_evenly
from ludus.envs.tiny.base import TinyBots
from ludus.envs.tiny.single_player import DigEnv, PointEnv

SAID = ActionKinds(mask="mask", uses=((False,), (True,)), exploratory=(1,))


def _spec(said: dict[str, Any] | None = None, **changes: Any) -> EnvSpec:
    fields: dict[str, Any] = {
        "name": "field",
        "version": 1,
        "teams": (0,),
        "observation_space": spaces.Dict({"mask": spaces.Box(0, 1, (5,), np.int8)}),
        "action_space": spaces.MultiDiscrete([2, 3]),
        "rate_hz": 1.0,
        "step_limit": None,
    }
    return EnvSpec(**fields | changes | {"actions": replace(SAID, **(said or {}))})


def test_what_fits_is_taken() -> None:
    choices = _spec().choices
    assert choices.counts == (2, 3)
    assert choices.use_table().tolist() == [[False], [True]]
    assert choices.exploratory_kinds().tolist() == [False, True]
    assert _spec({"exploratory": ()}).choices.exploratory_kinds().tolist() == [True, True]
    assert _spec({"uses": ()}).choices.use_table().tolist() == [[True], [True]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"said": {"mask": "masks"}}, "mask is 'masks', which is missing"),
        ({"action_space": spaces.MultiDiscrete([2, 4])}, r"must be a Box of shape \(6,\)"),
        ({"action_space": spaces.MultiBinary(5)}, "are no choices; valid: Discrete and MultiDiscrete"),
        ({"action_space": spaces.Discrete(5, start=1)}, "are no choices"),
        ({"said": {"uses": ((True,),)}}, "for each of the 2 kinds which of the 1 other factors count; got 1 rows of 1"),
        ({"said": {"uses": ((True, True), (True, True))}}, "got 2 rows of 2"),
        ({"said": {"exploratory": (2,)}}, r"exploratory are \(2,\); valid: different numbers from 0 to 1"),
        ({"said": {"exploratory": (1, 1)}}, "valid: different numbers"),
        ({"said": {"names": ("wait", "wait")}}, "must be 2 different names"),
        (
            {
                "observation_space": spaces.Dict({"mask": spaces.Box(0.0, 1.0, (5,), np.float32)}),
                "mirror": Mirror({"mask": Reflection(tuple(range(5)), (1.0,) * 5)}, Reflection((1, 0), (1.0, 1.0))),
                "action_space": spaces.MultiDiscrete([3, 3]),
                "said": {"mask": None, "uses": ((True,),) * 3},
            },
            "change places",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _spec(**changes)


def test_games_with_other_choices_are_other_games_for_a_policy() -> None:
    with pytest.raises(ConfigError, match=r"actions\.uses is"):
        check_fits(_spec(), _spec({"uses": ()}), "stage 'late'")


def test_even_draws_by_hand() -> None:
    allowed = torch.tensor([[True, False, True, True]]).expand(5, -1)
    noise = torch.tensor([0.0, 0.3333, 0.3334, 0.6667, 1.0 - 2.0**-24])
    assert draw_evenly(allowed, noise).tolist() == [0, 0, 2, 3, 3]


def test_drawn_actions_are_allowed_and_even() -> None:
    choices, count = _spec().choices, 6000
    mask = torch.tensor([[1, 1, 1, 0, 1]]).expand(count, -1)
    drawn = draw_actions(choices, mask, torch.rand(count, 2, generator=torch.Generator().manual_seed(0)))
    assert are_allowed(choices, mask, drawn).all()
    rows, counts = torch.unique(drawn, dim=0, return_counts=True)
    assert rows.tolist() == [[0, 0], [1, 0], [1, 2]]  # the kind first, then the cell if it counts
    assert counts.tolist() == pytest.approx([3000, 1500, 1500], abs=200)
    wrong = torch.tensor([[0, 1], [1, 1]])
    assert are_allowed(choices, mask[:2], wrong).tolist() == [False, False]
    assert are_allowed(choices, None, wrong).tolist() == [False, True]


# --- the tiny world ---


def _play(bot: str, games: int = 64) -> tuple[float, float]:
    """Return and forbidden actions of an episode."""
    env = make_env("dig-v1", games, seed=3)
    env.reset()
    bots, actions = env.bots([bot]), torch.zeros(games, 1, 3, dtype=torch.int64)
    everyone, total, forbidden = torch.zeros(games, 1, dtype=torch.int32), 0.0, 0.0
    for _ in range(8):
        bots.act(everyone, actions)
        result = env.step(actions)
        total += result.events["reward"].mean().item()
        forbidden += result.events["forbidden"].sum().item()
    assert result.terminated.all()
    return total, forbidden


def test_best_and_random_play() -> None:
    assert _play("best") == (6.0, 0.0)
    score, forbidden = _play("random")
    # Four kinds with strength: 1/4 x 1/4 of finding it, 1/4 x -0.5; three without: 1/3 x 0.5, 1/3 x -0.5.
    assert score == pytest.approx(4 * (1 / 16 - 1 / 8), abs=0.4)
    assert forbidden == 0.0


def test_what_is_not_allowed_costs_one_and_harms_nothing_else() -> None:
    env = make_env("dig-v1", 4, seed=5)
    mask = env.reset()["mask"].clone()
    closed = (~mask[:, 0, 4:7]).int().argmax(1)
    result = env.step(torch.stack((torch.ones(4), closed, torch.zeros(4)), dim=1).long().unsqueeze(1))
    assert result.events["reward"].tolist() == [[-1.0]] * 4
    result = env.step(torch.tensor([1, 0, 0]).expand(4, 1, 3).clone())  # no strength in the second frame
    assert result.events["forbidden"].tolist() == [[1.0]] * 4
    result = env.step(torch.stack((torch.zeros(4), closed, torch.zeros(4)), dim=1).long().unsqueeze(1))
    assert result.events["forbidden"].tolist() == [[0.0]] * 4  # resting takes no cell


class RecklessBots(TinyBots):
    """Digs without strength."""

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        actions[assignment >= 0] = torch.tensor([1, 0, 0])


class RecklessDig(DigEnv):
    """Its bots do not look at the mask."""

    def bots(self, names: Sequence[str]) -> TinyBots:
        return RecklessBots(self, names)


class ParalysedDig(DigEnv):
    """Allows nothing at all."""

    def _observe(self) -> Observations:
        seen = super()._observe()
        return seen | {"mask": torch.zeros_like(seen["mask"])}


@pytest.mark.parametrize(
    ("world", "words"),
    [(RecklessDig, "plays what the mask does not allow"), (ParalysedDig, "allows nothing of factor 0")],
)
def test_the_kit_finds_worlds_that_break_their_own_masks(world: type[DigEnv], words: str) -> None:
    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        return world(EnvRequest(num_envs, "cpu", seed, first_game, {}))

    report = run_checks(make, CheckOptions(num_envs=2, steps=8, end_steps=20))
    assert any(words in fault for fault in report.failed["choices"])
    assert set(report.failed) == {"choices"}
    plain = run_checks("identity-v1", replace(CheckOptions(), num_envs=2, steps=4, end_steps=20))
    assert "choices" in plain.skipped


OPTIONS = CheckOptions(num_envs=2, steps=8, end_steps=60)
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
        (box(1, 1, 1), box(1, 1, 1), Mirror({"vector": SWAP}, SWAP, ("other", 0)), "entry 'other', which is not there"),
        (box(1, 1, 1), box(1, 1, 1), Mirror({"vector": SWAP}, SWAP, ("vector", 3)), "number 3 .* is not there"),
        (box(1, 1, 1), box(1, 1, 1), Mirror({"vector": SWAP}, SWAP, ("vector", 0)), "number 0 .* change its sign"),
    ],
)
def test_a_spec_refuses_a_mirror_that_does_not_fit(
    observations: spaces.Space[Any], actions: spaces.Space[Any], mirror: Mirror, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"mirror of test-v1.*{message}"):
        spec(observations, actions, mirror)


def test_a_number_that_changes_its_sign_in_place_may_tell_the_side() -> None:
    mirror = Mirror({"vector": SWAP}, SWAP, ("vector", 2))
    assert spec(box(1, 1, 1), box(1, 1, 1), mirror).mirror == mirror


def test_buttons_and_choices_may_change_places() -> None:
    swap = Reflection((1, 0, 2), (1.0, 1.0, 1.0))
    for actions in (spaces.MultiBinary(3), spaces.MultiDiscrete([4, 4, 2])):
        assert spec(box(1, 1, 1), actions, Mirror({"vector": SWAP}, swap)).mirror is not None


def maker(factory: type[BatchedEnv]) -> EnvMaker:
    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        return factory(EnvRequest(num_envs, "cpu", seed, first_game, {"step_limit": 5}))  # type: ignore[call-arg]

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
