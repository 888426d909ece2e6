"""The peers that our learner is measured against: Stable-Baselines3 and sb3-contrib."""

from collections.abc import Callable
from typing import Any

from ludus.core.errors import MissingDependencyError
from ludus.training.config import TrainConfig

_WORLD = "CartPole-v1"


def sb3_ppo(games: int, steps: int, batch_size: int, epochs: int) -> Callable[[], None]:
    """Makes Stable-Baselines3's PPO with its default 64x64 network; each call runs one iteration.

    Raises:
        MissingDependencyError: Stable-Baselines3 is not installed.
    """
    try:
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_util import make_vec_env
    except ImportError as error:
        raise MissingDependencyError("stable-baselines3", "sb3", "the comparison with its PPO") from error
    model = PPO(
        "MlpPolicy", make_vec_env(_WORLD, games, seed=0), n_steps=steps, batch_size=batch_size, n_epochs=epochs, seed=0,
        device="cpu",
    )  # fmt: skip
    return _iteration(model, games * steps)


def sb3_ppo_on(world: str, games: int, config: TrainConfig) -> Callable[[], None]:
    """Makes Stable-Baselines3's PPO on one of our worlds, with the networks and the recipe of a config.

    Args:
        world: A world of one seat with continuous actions.
        games: Environments in its `DummyVecEnv`.
        config: Whose networks, rollout size, minibatches and epochs are taken.

    Returns:
        A function that runs one iteration of as many env steps as an iteration of `config` has.

    Raises:
        MissingDependencyError: Stable-Baselines3 is not installed.
    """
    try:
        from stable_baselines3 import PPO
        from stable_baselines3.common.vec_env import DummyVecEnv
    except ImportError as error:
        raise MissingDependencyError("stable-baselines3", "sb3", "the comparison with its PPO") from error
    from torch import nn

    from ludus.envs.adapters.gymnasium_env import LudusEnv

    env_steps = config.world.num_games * config.ppo.steps
    arch = config.policy.net_arch
    activation = nn.Tanh if config.policy.activation == "tanh" else nn.ReLU
    envs = DummyVecEnv([lambda: LudusEnv(world) for _ in range(games)])
    model = PPO(
        "MlpPolicy", envs, n_steps=env_steps // games, batch_size=config.ppo.batch_size, n_epochs=config.ppo.epochs,
        policy_kwargs={"net_arch": {"pi": list(arch.pi), "vf": list(arch.vf)}, "activation_fn": activation},
        seed=0, device="cpu",
    )  # fmt: skip
    return _iteration(model, env_steps)


def sb3_recurrent_ppo(games: int, steps: int, batch_size: int, epochs: int) -> Callable[[], None]:
    """Makes sb3-contrib's RecurrentPPO with its default two LSTMs of 256; each call runs one iteration.

    Raises:
        MissingDependencyError: sb3-contrib is not installed.
    """
    try:
        from sb3_contrib import RecurrentPPO
        from stable_baselines3.common.env_util import make_vec_env
    except ImportError as error:
        raise MissingDependencyError("sb3-contrib", "sb3", "the comparison with its RecurrentPPO") from error
    model = RecurrentPPO(
        "MlpLstmPolicy", make_vec_env(_WORLD, games, seed=0), n_steps=steps, batch_size=batch_size, n_epochs=epochs,
        seed=0, device="cpu",
    )  # fmt: skip
    return _iteration(model, games * steps)


def _iteration(model: Any, env_steps: int) -> Callable[[], None]:  # noqa: ANN401 - the peers' types are optional
    model.learn(env_steps)

    def run() -> None:
        model.learn(env_steps, reset_num_timesteps=False)

    return run
