"""Fixtures that several packages' tests share: a small two-seat world with random ends, one policy of every kind."""

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.envs import registry
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult
from ludus.networks.cnn import CnnConfig
from ludus.networks.recurrent import RecurrentConfig
from ludus.networks.strategy import StrategyConfig
from ludus.policies.config import NormalisationConfig, PolicyConfig

_STREAMING = StrategyConfig.preset("tiny", "streaming")
_WINDOW = StrategyConfig.preset("tiny", "window")
_LSTM = RecurrentConfig(kind="lstm", size=16)
_GRU = RecurrentConfig(kind="gru", size=16)
_NORMALISED = NormalisationConfig(observations=True, returns=True)

POLICY_KINDS: dict[str, PolicyConfig] = {
    "mlp": PolicyConfig(),
    "mlp-normalised": PolicyConfig(encoder=(16,), normalise=_NORMALISED),
    "lstm": PolicyConfig(recurrent=_LSTM),
    "lstm-separate": PolicyConfig(recurrent=RecurrentConfig(kind="lstm", size=16, critic="separate")),
    "lstm-skip": PolicyConfig(recurrent=RecurrentConfig(kind="lstm", size=16, skip=True)),
    "gru": PolicyConfig(recurrent=_GRU),
    "streaming": PolicyConfig(strategy=_STREAMING),
    "window": PolicyConfig(strategy=_WINDOW),
    "streaming-lstm": PolicyConfig(strategy=_STREAMING, recurrent=_LSTM, normalise=_NORMALISED),
    "window-gru": PolicyConfig(strategy=_WINDOW, recurrent=_GRU),
    "cnn": PolicyConfig(cnn=CnnConfig(channels=(4,), kernels=(3,), strides=(2,), features=8)),
    "cnn-lstm": PolicyConfig(cnn=CnnConfig(channels=(4,), kernels=(3,), strides=(2,), features=8), recurrent=_LSTM),
}


class ArenaEnv(BatchedEnv):
    """Two seats see random numbers; games end at random, by their own rules or cut off; buttons are the reward."""

    def __init__(self, num_games: int, *, picture: bool = False, end_chance: float = 0.1) -> None:
        entries: dict[str, spaces.Space[Any]] = {"vector": spaces.Box(-np.inf, np.inf, (12,), np.float32)}
        if picture:
            entries["picture"] = spaces.Box(0, 255, (7, 7, 3), np.uint8)
        self.spec = EnvSpec(
            name="arena",
            version=1,
            teams=(0, 1),
            observation_space=spaces.Dict(entries),
            action_space=spaces.MultiBinary(4),
            rate_hz=30.0,
            step_limit=None,
            events=("reward",),
            blocks=MappingProxyType({"vector": MappingProxyType({"self": (0, 6), "opponent": (6, 12)})}),
        )
        self.num_games, self.device, self.seed, self.first_game = num_games, torch.device("cpu"), 0, 0
        self._end_chance, self._generator = end_chance, torch.Generator().manual_seed(0)

    def _draw(self) -> Observations:
        drawn = {"vector": torch.randn(self.num_games, 2, 12, generator=self._generator)}
        if "picture" in self.spec.observation_space.spaces:
            shape = (self.num_games, 2, 7, 7, 3)
            drawn["picture"] = torch.randint(0, 256, shape, generator=self._generator, dtype=torch.uint8)
        return drawn

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:  # noqa: ARG002
        return self._draw()

    def _advance(self, actions: Tensor) -> StepResult:
        drawn = torch.rand(2, self.num_games, generator=self._generator) < self._end_chance
        events = {"reward": actions.float().sum(-1) - 2.0}
        return StepResult(self._draw(), drawn[0], drawn[1] & ~drawn[0], self._draw(), events, {})


@pytest.fixture(params=list(POLICY_KINDS))
def policy_kind(request: pytest.FixtureRequest) -> tuple[str, PolicyConfig]:
    """Name and settings of every kind of policy in turn."""
    return request.param, POLICY_KINDS[request.param]


@pytest.fixture
def policy_kinds() -> dict[str, PolicyConfig]:
    """The settings of every kind of policy by name, for tests that are too slow for all of them."""
    return POLICY_KINDS


@pytest.fixture
def make_arena() -> type[ArenaEnv]:
    """The test world's class: `make_arena(num_games, picture=...)`."""
    return ArenaEnv


@pytest.fixture
def stroll_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers `stroll-v1`, a walker on the host with behaviour, mirror and trials, for one test."""
    for name in ("_FACTORIES", "_SETTINGS"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    registry.register_env("stroll-v1", "stroll.env:make", "stroll.env:StrollSettings")
