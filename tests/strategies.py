"""Strategy encoders small enough for tests, and some made by hand whose knowledge and use are known."""

import torch
from torch import Tensor

from ludus.envs.registry import make_env
from ludus.nn.strategy import StrategyConfig, StreamingEncoder
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

TINY_STRATEGY = StrategyConfig(layers=1, heads=2, width=32, feedforward=64, window=9)
STYLES = ("rock", "cycle")  # bots of duel
MINIMAL = {"layers": 1, "heads": 1, "width": 4, "feedforward": 4, "window": 3, "latent": 3, "pooling": 2}


class Replies(StreamingEncoder):
    """Knows the best reply: paper, until the opponent has played anything but rock; then what beats its next move."""

    def initial(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        return {"cycles": torch.zeros(rows, dtype=torch.bool, device=device)}

    def step(
        self, inputs: Tensor, memory: dict[str, Tensor], episode_starts: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        cycles = (memory["cycles"] & ~episode_starts) | (inputs[:, 1:] > 0.5).any(1)
        reply = torch.where(cycles, (inputs.argmax(1) + 2) % 3, 1)
        return torch.nn.functional.one_hot(reply, 3).float(), {"cycles": cycles}


class Numb(StreamingEncoder):
    """Knows nothing."""

    def step(
        self, inputs: Tensor, memory: dict[str, Tensor], episode_starts: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        latent, following = super().step(inputs, memory, episode_starts)
        return torch.ones_like(latent), following


def make_duel_policy(encoder: type[StreamingEncoder], *, uses_latent: bool = True) -> Policy:
    """Makes a policy of duel that plays what its latent says, or paper whatever it says."""
    config = PolicyConfig.model_validate({"strategy": MINIMAL, "net_arch": {"pi": [], "vf": []}})
    with make_env("duel") as env:
        policy = Policy(env.spec, config)
    with torch.no_grad():
        head = policy.get_parameter("head.linear.weight")
        head.zero_()
        if uses_latent:
            head[:, 8:] = 30.0 * torch.eye(3)
        else:
            policy.get_parameter("head.linear.bias")[1] = 30.0
    assert config.strategy is not None
    policy.memory.strategy = encoder(3, config.strategy)
    policy.memory.strategy_step = policy.memory.strategy.step
    return policy
