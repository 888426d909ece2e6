"""Masks of allowed actions as other libraries know them, and those of other libraries' environments."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from ludus.core.errors import UnsupportedError
from ludus.envs.adapters.gymnasium_env import LudusEnv, LudusVectorEnv
from ludus.envs.adapters.gymnasium_factory import batched_spec


def test_a_single_game_tells_its_mask() -> None:
    env = LudusEnv("dig-v1")
    with pytest.raises(UnsupportedError, match="reset"):
        env.action_masks()
    seen, info = env.reset(seed=1)
    for _ in range(9):
        assert isinstance(seen, dict)
        assert info["action_mask"].dtype == np.int8
        assert np.array_equal(info["action_mask"], seen["mask"])
        assert np.array_equal(env.action_masks(), seen["mask"])
        seen, _, terminated, _, info = env.step([0, 0, 0])
        if terminated:
            seen, info = env.reset()
    with pytest.raises(UnsupportedError, match="has no mask"):
        LudusEnv("identity-v1").action_masks()


def test_a_vector_of_games_tells_its_masks() -> None:
    envs = LudusVectorEnv("dig-v1", 3)
    seen, infos = envs.reset(seed=1)
    for _ in range(2):
        assert isinstance(seen, dict)
        assert infos["_action_mask"].all()
        assert np.array_equal(infos["action_mask"], seen["mask"])
        seen, _, _, _, infos = envs.step(np.zeros((3, 3), dtype=np.int64))
    assert "action_mask" not in LudusVectorEnv("identity-v1", 2).reset()[1]


def test_pettingzoo_agents_are_told_their_masks() -> None:
    pytest.importorskip("pettingzoo")
    from ludus.envs.adapters.pettingzoo_env import LudusParallelEnv

    env = LudusParallelEnv("dig-v1")
    seen, infos = env.reset(seed=1)
    assert np.array_equal(infos["seat_0"]["action_mask"], seen["seat_0"]["mask"])
    seen, _, _, _, infos = env.step({"seat_0": [0, 0, 0]})
    assert np.array_equal(infos["seat_0"]["action_mask"], seen["seat_0"]["mask"])


def test_maskable_ppo_learns_and_never_does_what_is_not_allowed() -> None:
    contrib: Any = pytest.importorskip("sb3_contrib")
    utils: Any = pytest.importorskip("sb3_contrib.common.maskable.utils")
    from ludus.envs.adapters.sb3 import LudusVecEnv

    envs = LudusVecEnv("dig-v1", 4)
    assert utils.is_masking_supported(envs)
    assert not utils.is_masking_supported(LudusVecEnv("identity-v1", 2))
    model = contrib.MaskablePPO("MultiInputPolicy", envs, n_steps=8, batch_size=32, n_epochs=1, device="cpu", seed=0)
    model.learn(64)
    seen: Any = envs.reset()
    for _ in range(16):
        masks = utils.get_action_masks(envs)
        assert np.array_equal(masks, seen["mask"])
        actions, _ = model.predict(seen, action_masks=masks)
        assert masks[np.arange(4), actions[:, 0]].all()
        assert masks[np.arange(4), 4 + actions[:, 1]].all()
        seen, _, _, _ = envs.step(actions)
    with pytest.raises(UnsupportedError, match="cannot call 'other'"):
        envs.env_method("other")


class _Masked(gym.Env[Any, Any]):
    """An environment with a mask where many libraries look for one."""

    def __init__(self, size: int) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Dict(
            {"action_mask": spaces.MultiBinary(size), "seen": spaces.Box(0.0, 1.0, (2,), np.float32)}
        )


def test_a_gymnasium_environment_brings_its_own_mask() -> None:
    assert batched_spec(_Masked(3), "Masked-v0").actions.mask == "action_mask"
    assert batched_spec(_Masked(4), "Other-v0").actions.mask is None  # something else of that name
