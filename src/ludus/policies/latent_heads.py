"""Small heads on the strategy latent, for the auxiliary losses of learning; they play no part in acting."""

from torch import Tensor, nn

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec
from ludus.networks.layers import make_linear
from ludus.networks.mlp import Mlp
from ludus.networks.strategy import StrategyConfig


def make_prediction(config: StrategyConfig | None, inputs: int) -> nn.Sequential | None:
    """Makes what predicts the `inputs` numbers that the encoder reads some frames later; None where it is off."""
    return None if config is None or config.predict == 0.0 else _make_head(config, inputs)


def make_recognition(config: StrategyConfig | None, spec: EnvSpec) -> nn.Sequential | None:
    """Makes what tells which of the world's bots the opponent is; None where it is off.

    Raises:
        ConfigError: The world has no bots.
    """
    if config is None or config.recognise == 0.0:
        return None
    if not spec.bots:
        raise ConfigError(
            f"policy.strategy.recognise is {config.recognise:g}, but {spec.id} has no scripted players that could be "
            "recognised; set it to 0, or let the latent predict: policy.strategy.predict"
        )
    return _make_head(config, len(spec.bots))


def _make_head(config: StrategyConfig, outputs: int) -> nn.Sequential:
    hidden = Mlp(config.latent, (config.width,), "relu")
    return nn.Sequential(hidden, make_linear(hidden.output_size, outputs, 1.0))


def ask(head: nn.Sequential | None, latent: Tensor | None) -> Tensor | None:
    """Returns what a head makes of a latent `(..., latent)`, in float32: `(..., outputs)`; None without either."""
    if head is None or latent is None:
        return None
    output: Tensor = head(latent.float())
    return output
