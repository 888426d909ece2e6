"""Copies of an agent that prefer some keys while the opponent is close, of `benchmarks/gauntlet.py`."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from benchmarks import gauntlet
from torch import Tensor

import ludus
from ludus.policies.config import NetArch, PolicyConfig
from ludus.policies.policy import Policy

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]
BIAS = gauntlet.Bias({"heavy": 1, "light": -1, "towards": 1, "away": -1})
HIGH_SIDE = 105


def logits(policy: Policy, views: Tensor) -> Tensor:
    return policy.action_parameters({"vector": views}, policy.initial(len(views)), torch.zeros(len(views)))


@pytest.fixture
def pair(tmp_path: Path, fresh: MakePolicy, save_agent: SaveAgent) -> tuple[Policy, Policy]:
    config = PolicyConfig(net_arch=NetArch(pi=(8, 16), vf=(8,)), activation="relu", canonical=True)
    run = save_agent(fresh("brawl", config), tmp_path / "run")
    base = ludus.export_agent(run, tmp_path / "base-0.ludus").path
    gauntlet.biased(base, tmp_path / "thrower-0.ludus", BIAS, 3.0)
    original, copy = (ludus.load_agent(file).policy for file in (base, tmp_path / "thrower-0.ludus"))
    return original, copy


@pytest.mark.parametrize("high_side", [-1.0, 1.0])
@pytest.mark.parametrize(
    ("distance", "share", "towards"),
    [(0.5, 1.0, "right"), (1.4, 1.0, "right"), (-1.8, 0.5, "left"), (-2.2, 0.0, "left"), (9.0, 0.0, "right")],
)
@torch.no_grad()
def test_a_copy_prefers_its_keys_while_the_opponent_is_close(
    pair: tuple[Policy, Policy], high_side: float, distance: float, share: float, towards: str
) -> None:
    """In full up to 1.4 units, not at all from 2.2 on, and half of it in between; in a mirrored view too."""
    original, copy = pair
    views = torch.randn(4, 156, generator=torch.Generator().manual_seed(0))
    views[:, gauntlet.SIDEWAYS], views[:, HIGH_SIDE] = distance / 14.0, high_side
    views[:, gauntlet.DOWNWARD], views[:, gauntlet.ON_GROUND], views[:, gauntlet.ON_PLATFORM] = 0.1, 1.0, 0.0
    views[:, gauntlet.STUNNED] = 0.0
    away = "left" if towards == "right" else "right"
    expected = torch.zeros(10)
    for key, sign in (("heavy", 3.0), ("light", -3.0), (towards, 3.0), (away, -3.0)):
        expected[gauntlet.KEYS.index(key)] = share * sign
    torch.testing.assert_close(
        logits(copy, views) - logits(original, views), expected.expand(4, 10), atol=1e-4, rtol=0.0
    )


@pytest.mark.parametrize(
    ("ground", "platform", "below", "stunned"),
    [(0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.3, 0.0), (0.0, 1.0, -0.3, 0.0), (1.0, 0.0, 0.0, 1.0)],
)
@torch.no_grad()
def test_a_copy_plays_as_the_original_where_nothing_is_to_be_guessed(
    pair: tuple[Policy, Policy], ground: float, platform: float, below: float, stunned: float
) -> None:
    original, copy = pair
    views = torch.zeros(2, 156)
    views[:, gauntlet.SIDEWAYS] = torch.tensor([0.05, -0.05])
    views[:, gauntlet.ON_GROUND], views[:, gauntlet.ON_PLATFORM] = ground, platform
    views[:, gauntlet.DOWNWARD], views[:, gauntlet.STUNNED] = below, stunned
    torch.testing.assert_close(logits(copy, views), logits(original, views))


def test_every_bias_names_keys() -> None:
    for bias in gauntlet.BIASES.values():
        assert set(bias.keys) <= {*gauntlet.KEYS, "towards", "away"}
    assert not set(gauntlet.BIASES) & set(gauntlet.HABITS)  # a family is found by its name
    kinds = {bias.seen for bias in gauntlet.BIASES.values()}
    assert kinds == {True, False}


def test_only_relu_networks_can_be_biased(tmp_path: Path, fresh: MakePolicy, save_agent: SaveAgent) -> None:
    run = save_agent(fresh("brawl", PolicyConfig(net_arch=NetArch(pi=(8, 8), vf=(8,)))), tmp_path / "run")
    with pytest.raises(ValueError, match="ReLU"):
        gauntlet.biased(run, tmp_path / "thrower-0.ludus", BIAS, 3.0)
