"""Settings beyond any sensible value are refused with the file, the key and the bound, before anything is made."""

from typing import Any

import pytest
from pydantic import ValidationError

from ludus.training import TrainConfig

LARGE = 10**18
NAN, INFINITY = float("nan"), float("inf")
LINEAR = {"kind": "linear", "start": 1e-3, "end": -1e-3}
# Key -> values that are refused.
REFUSED: dict[str, tuple[Any, ...]] = {
    "total_env_steps": (0, -1, LARGE),
    "world.num_envs": (0, LARGE),
    "ppo.n_steps": (0, LARGE),
    "ppo.batch_size": (1, LARGE),
    "ppo.n_minibatches": (0, LARGE),
    "ppo.n_epochs": (0, 10**6),
    "ppo.sequence_length": (0, LARGE),
    "ppo.learning_rate": (-1, -1e-9, NAN, INFINITY, LINEAR, {"kind": "kl_adaptive", "start": -1.0}),
    "ppo.memory_lr_scale": (-0.1, 1.1, NAN),
    "ppo.clip_range": (-0.1, LINEAR),
    "ppo.clip_range_vf": (-0.1, LINEAR),
    "ppo.vf_coef": (-1.0, INFINITY, 1e30),
    "ppo.ent_coef": (NAN, INFINITY),
    "ppo.gamma": (-0.1, 1.1, NAN),
    "ppo.gae_lambda": (-0.1, 1.1, NAN),
    "ppo.target_kl": (0.0, INFINITY),
    "ppo.max_grad_norm": (0.0, -1.0, INFINITY),
    "ppo.weight_decay": (-1.0, INFINITY),
    "ppo.adam_eps": (0.0, 2.0),
    "ppo.betas": ((0.9, 1.0), (-0.1, 0.9), (0.9,)),
    "ppo.sde_sample_freq": (0, LARGE),
    "sac.learning_rate": (-1, LINEAR),
    "sac.buffer_size": (0, LARGE),
    "sac.batch_size": (0, LARGE),
    "sac.learning_starts": (-1, LARGE),
    "sac.gamma": (-0.1, 1.1),
    "sac.tau": (0.0, 1.1),
    "sac.train_freq": (0, LARGE),
    "sac.gradient_steps": (0, LARGE),
    "sac.ent_coef": (-1.0, 1e30),
    "sac.ent_coef_init": (0.0, 1e30),
    "td3.action_noise": (-0.1, 1e3),
    "td3.policy_delay": (0, 10**6),
    "td3.target_policy_noise": (-0.1, 1e3),
    "td3.target_noise_clip": (-0.1, 1e3),
    "policy.net_arch.pi": ((0,), (-1,), (10**6,), (1,) * 10_000),
    "policy.net_arch.vf": ((0,), (10**6,), (1,) * 10_000),
    "policy.encoder": ((0,), (10**6,), (1,) * 10_000),
    "policy.log_std": (-100.0, 100.0, NAN),
    "policy.normalize.clip": (0.0, 1e9),
    "policy.exploration.frequency": (-0.1, 1.1, LINEAR),
    "policy.recurrent.size": (0, 10**6),
    "policy.recurrent.memory_feature_scale": (0.0, INFINITY),
    "policy.strategy.layers": (0, 10_000),
    "policy.strategy.heads": (0, 10_000),
    "policy.strategy.width": (1, 2**20),
    "policy.strategy.feedforward": (0, 2**20),
    "policy.strategy.window": (2, 10**7),
    "policy.strategy.latent": (0, 2**20),
    "policy.strategy.predict_actions": (-1.0, INFINITY),
    "policy.cnn.features": (0, 2**20),
    "policy.cnn.channels": ((0, 1), (2**20, 1)),
    "policy.cnn.kernels": ((0, 1),),
    "policy.cnn.strides": ((0, 1),),
    "league.snapshot_every_env_steps": (0, LARGE),
    "league.keep": (1, 10**9),
    "league.recent_window": (0, 10**9),
    "league.pfsp_power": (0.0, 1e9),
    "league.live": (0, 10**9),
    "opponents.rock": (-1.0, 1e30),
    "rewards.weights.reward": (INFINITY, 1e30),
    "rewards.glide_env_steps": (-1, LARGE),
    "adaptive_curriculum.ahead": (0, LARGE),
    "evaluation.every_env_steps": (0, LARGE),
    "evaluation.matches": (0, 10**9),
    "evaluation.tolerance": (-1.0, INFINITY),
    "checkpoints.every_env_steps": (0, LARGE),
    "checkpoints.every_iterations": (0, LARGE),
    "checkpoints.keep": (0, LARGE),
    "guard.max_faults_in_a_row": (0, LARGE),
    "guard.memory_gib": (0.0, INFINITY),
    "guard.every_s": (-1.0, 1e9),
    "monitoring.strategy_every_iterations": (0, LARGE),
}
BESIDE = {"adaptive_curriculum": {"kind": "strategic", "goals": ["houses"]}}
CASES = [(key, value) for key, values in REFUSED.items() for value in values]


@pytest.mark.parametrize(("key", "value"), CASES, ids=[f"{key}={str(value)[:20]}" for key, value in CASES])
def test_values_out_of_bounds_are_refused_by_key(key: str, value: object) -> None:
    first, *rest = key.split(".")
    inner: Any = value
    for part in reversed(rest):
        inner = {part: inner}
    settings: dict[str, Any] = {"world": {"name": "duel"}, first: inner if not rest else BESIDE.get(first, {}) | inner}
    if first == "world":
        settings["world"]["name"] = "duel"
    with pytest.raises(ValidationError) as caught:
        TrainConfig.model_validate(settings)
    places = [".".join(map(str, fault["loc"])) for fault in caught.value.errors()]
    last = key.rpartition(".")[2]
    assert any(last in place for place in places), places


@pytest.mark.parametrize(
    "settings",
    [
        {"total_env_steps": 10**12},
        {"ppo": {"learning_rate": {"kind": "linear", "start": 1e-3, "end": 0}}},
        {"ppo": {"learning_rate": 0}},  # which the doctor finds
        {"ppo": {"ent_coef": -0.01}},
        {"policy": {"net_arch": {"pi": [8192] * 8, "vf": []}}},
        {"evaluation": {"matches": 100_000}},
    ],
)
def test_what_somebody_may_want_is_taken(settings: dict[str, Any]) -> None:
    TrainConfig.model_validate({"world": {"name": "duel"}} | settings)
