"""SAC and TD3 of Stable-Baselines3: their networks, losses and optimisers, fed by our replay buffer.

The one place that imports the library. Its actor's parameters become those of our policy: what it learns, the policy
plays at once, and nothing of the library is needed to play. Its own loop over environments, its replay buffer, its
files and its global random numbers are not used.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from ludus.algorithms.sac_td3.config import SacConfig, Td3Config
from ludus.algorithms.sac_td3.replay import ReplayBatch
from ludus.core.errors import MissingDependencyError
from ludus.core.state import MAX_COUNT, load_tensors
from ludus.nn.distributions import SquashedHead
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy, part_of, with_prefix

try:
    from stable_baselines3 import SAC, TD3
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.logger import Logger
except ImportError as error:
    raise MissingDependencyError("stable-baselines3", "sb3", "off-policy learning (algorithm sac or td3)") from error

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
}
_METRICS = {
    "policy_loss": "train/actor_loss",
    "value_loss": "train/critic_loss",
    "entropy_coefficient": "train/ent_coef",
}


class BatchSource(Protocol):
    """Where the library finds what it learns from."""

    def sample(self, batch_size: int, env: object = None) -> ReplayBatch:
        """Return env steps, under the name that the library calls."""


class _Spaces(gym.Env[np.ndarray, np.ndarray]):
    """Tells the library the sizes of its networks; it is never stepped."""

    def __init__(self, features: int, actions: int) -> None:
        self.actions = actions
        self.observation_space = spaces.Box(-np.inf, np.inf, (features,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (actions,), np.float32)


class Baseline:
    """One algorithm of the library, learning the parameters of one policy."""

    def __init__(
        self,
        policy: Policy,
        layers: PolicyConfig,
        config: SacConfig | Td3Config,
        source: BatchSource,
        rate: Callable[[], float],
    ) -> None:
        """Create the networks from torch's global random numbers; the library's actor becomes the policy's actor.

        `layers` are the run's settings of the policy: hidden layers of actor and critics, and their activation;
        `source` is the replay buffer, and `rate` returns the present learning rate.
        """
        env = _Spaces(policy.observations.output_size, policy.head.action_shape[0])
        self._model = _make_model(env, layers, config, rate, policy.device)
        self._model.replay_buffer = cast("ReplayBuffer", source)  # of its methods only `sample` is called
        self._model.set_logger(Logger(folder=None, output_formats=[]))
        self._batch_size = config.batch_size
        self._optimisers: dict[str, torch.optim.Optimizer] = {
            "actor": self._model.actor.optimizer,
            "critic": self._model.critic.optimizer,
        }
        if isinstance(self._model, SAC) and self._model.ent_coef_optimizer is not None:
            self._optimisers["entropy"] = self._model.ent_coef_optimizer
        for optimiser in self._optimisers.values():
            _begin_averages(optimiser)
        _share_actor(policy, self._model.actor)

    @property
    def updates(self) -> int:
        """Gradient steps done."""
        return int(self._model._n_updates)  # noqa: SLF001 - TD3 counts its delayed updates by it

    @updates.setter
    def updates(self, updates: int) -> None:
        self._model._n_updates = updates  # noqa: SLF001

    def learn(self, steps: int) -> dict[str, float]:
        """Take gradient steps with torch's global random numbers; return the means of their metrics."""
        measured = self._model.logger.name_to_value
        measured.clear()
        if steps:
            self._model.train(steps, self._batch_size)
        return {name: float(measured[key]) for name, key in _METRICS.items() if key in measured}

    def parameters(self) -> Iterator[Tensor]:
        """Yield every parameter of actor, critics and targets, and the entropy coefficient."""
        yield from (parameter.detach() for parameter in self._model.actor.parameters())
        yield from self._networks().values()

    def averages(self) -> Iterator[Tensor]:
        """Yield everything that the optimisers remember."""
        for optimiser in self._optimisers.values():
            yield from _averages(optimiser).values()

    def _networks(self) -> dict[str, Tensor]:
        """Return all that is learned beside the actor, which the policy holds."""
        model = self._model
        networks: dict[str, nn.Module] = {"critic": model.critic, "critic_target": model.critic_target}
        if isinstance(model, TD3):
            networks["actor_target"] = model.actor_target
        tensors: dict[str, Tensor] = {}
        for name, network in networks.items():
            tensors |= with_prefix(name, dict(network.named_parameters()))
        if isinstance(model, SAC) and model.log_ent_coef is not None:
            tensors["log_entropy_coefficient"] = model.log_ent_coef
        return {name: tensor.detach() for name, tensor in tensors.items()}

    def critics_state(self) -> dict[str, Tensor]:
        """Return copies of critics, targets and entropy coefficient."""
        return {name: tensor.clone() for name, tensor in self._networks().items()}

    def optimiser_state(self) -> dict[str, Tensor]:
        """Return copies of what the optimisers remember."""
        return {
            f"{name}.{key}": tensor.clone()
            for name, optimiser in self._optimisers.items()
            for key, tensor in _averages(optimiser).items()
        }

    @torch.no_grad()
    def load_state(self, critics: Mapping[str, Tensor], optimiser: Mapping[str, Tensor], updates: int) -> None:
        """Restore what `critics_state`, `optimiser_state` and `updates` returned; or raise StateError."""
        load_tensors(critics, self._networks(), "the critics")
        for name, each in self._optimisers.items():
            own = _averages(each)
            ranges = {key: (0, MAX_COUNT) for key in own if key.endswith(".step")}  # Adam takes powers of it
            load_tensors(part_of(optimiser, name), own, f"the optimiser of the {name}", ranges=ranges)
        self.updates = updates


def _make_model(
    env: _Spaces, layers: PolicyConfig, config: SacConfig | Td3Config, rate: Callable[[], float], device: torch.device
) -> SAC | TD3:
    common: dict[str, Any] = {
        "learning_rate": lambda _: rate(),
        "buffer_size": 1,  # its own, which is replaced
        "tau": config.tau,
        "gamma": config.gamma,
        "policy_kwargs": _networks(layers),
        "device": device,
    }
    if isinstance(config, SacConfig):
        coefficient = f"auto_{config.ent_coef_init}" if config.ent_coef == "auto" else config.ent_coef
        entropy = -float(env.actions) if config.target_entropy is None else config.target_entropy
        return SAC("MlpPolicy", env, ent_coef=coefficient, target_entropy=entropy, **common)
    common |= {"target_policy_noise": config.target_policy_noise, "target_noise_clip": config.target_noise_clip}
    return TD3("MlpPolicy", env, policy_delay=config.policy_delay, **common)


def _networks(layers: PolicyConfig) -> dict[str, object]:
    return {
        "net_arch": {"pi": list(layers.net_arch.pi), "qf": list(layers.net_arch.vf)},
        "activation_fn": _ACTIVATIONS[layers.activation],
        "optimizer_kwargs": {"fused": True},  # one call for all parameters
    }


def _share_actor(policy: Policy, actor: nn.Module) -> None:
    """Share the library's parameters with the policy, so that both are always the same."""
    assert isinstance(policy.head, SquashedHead)  # noqa: S101 - the collector has refused others
    own = [*policy.actor.layers, policy.head.linear, *([policy.head.log_std] if policy.head.has_spread else [])]
    theirs = [layer for layer in actor.modules() if isinstance(layer, nn.Linear)]  # hidden, mean, log deviation
    for mine, other in zip(own, theirs, strict=True):
        mine.weight, mine.bias = other.weight, other.bias
    with torch.no_grad():  # no critic of states is learned
        policy.value_head.weight.zero_()
        policy.value_head.bias.zero_()


def _begin_averages(optimiser: torch.optim.Optimizer) -> None:
    """Create Adam's averages before its first step, so that its state always has the same form."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            counts_on = parameter.device if group["fused"] else "cpu"
            optimiser.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=counts_on),
                "exp_avg": torch.zeros_like(parameter.detach()),
                "exp_avg_sq": torch.zeros_like(parameter.detach()),
            }


def _averages(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    return {
        f"{index}.{name}": tensor
        for index, parameter in enumerate(parameters)
        for name, tensor in optimiser.state[parameter].items()
    }
