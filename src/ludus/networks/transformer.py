"""Parts that both strategy encoders are built of: pre-norm layers, rotary positions, attention pooling."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ludus.networks.strategy import StrategyConfig

# Every rotary frequency is a whole number of turns in this many frames, so a position counts modulo the period:
# a game may run for ever and the angles stay exact.
ROTARY_PERIOD = 4096
_FASTEST_TURNS = round(ROTARY_PERIOD / (2.0 * math.pi))  # about one radian a frame
_SLOWEST_TURNS = 4  # a turn in 1,024 frames, far beyond any window


class Rotary(nn.Module):
    """Rotates pairs of features by angles that grow with the position: products then depend on distances alone."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, head_size: int) -> None:
        super().__init__()
        pairs = head_size // 2
        exponents = torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1)
        turns = torch.round(_FASTEST_TURNS * (_SLOWEST_TURNS / _FASTEST_TURNS) ** exponents)
        angles = torch.outer(torch.arange(ROTARY_PERIOD, dtype=torch.float64), turns) * (2.0 * math.pi / ROTARY_PERIOD)
        self.register_buffer("cosines", angles.cos().float(), persistent=False)
        self.register_buffer("sines", angles.sin().float(), persistent=False)

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Returns cosines and sines `(*positions, head_size / 2)` of whole-number positions."""
        index = positions.remainder(ROTARY_PERIOD)
        return self.cosines[index], self.sines[index]

    @staticmethod
    def rotate(features: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """Rotates `(..., head_size)` by angles that broadcast to `(..., head_size / 2)`."""
        cosines, sines = angles[0].to(features.dtype), angles[1].to(features.dtype)
        first, second = features.chunk(2, dim=-1)
        return torch.cat((first * cosines - second * sines, first * sines + second * cosines), dim=-1)


class TransformerLayer(nn.Module):
    """One pre-norm transformer layer, in halves: what comes before the attention and what comes after."""

    def __init__(self, config: StrategyConfig) -> None:
        super().__init__()
        self.heads, self.head_size = config.heads, config.width // config.heads
        self.attention_norm = nn.LayerNorm(config.width)
        self.feedforward_norm = nn.LayerNorm(config.width)
        self.projection = nn.Linear(config.width, 3 * config.width)
        self.output = nn.Linear(config.width, config.width)
        self.expand = nn.Linear(config.width, config.feedforward)
        self.contract = nn.Linear(config.feedforward, config.width)
        for layer in (self.projection, self.output, self.expand, self.contract):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def project(self, frames: Tensor, angles: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Maps `(..., width)` to queries, keys and values `(..., heads, head_size)`, the first two rotated."""
        projected = self.projection(self.attention_norm(frames)).unflatten(-1, (3, self.heads, self.head_size))
        queries, keys, values = projected.unbind(-3)
        return Rotary.rotate(queries, angles), Rotary.rotate(keys, angles), values

    def finish(self, frames: Tensor, attended: Tensor) -> Tensor:
        """Adds what was attended to, `(..., width)`, and the feed-forward part to the frames."""
        frames = frames + self.output(attended)
        hidden = functional.gelu(self.expand(self.feedforward_norm(frames)))
        result: Tensor = frames + self.contract(hidden)
        return result


class StrategyEncoderBase(nn.Module):
    """What the two encoders share: all their parameters, so that one can take the other's weights.

    Attributes:
        config: Sizes and window.
        output_size: Size of the strategy latent.
        cache_dtype: Type of the key/value caches.
    """

    def __init__(self, inputs: int, config: StrategyConfig) -> None:
        super().__init__()
        self.config, self.inputs, self.output_size = config, inputs, config.latent
        self.cache_dtype = torch.float32
        self.embedding = nn.Linear(inputs, config.width)
        self.embedding_norm = nn.LayerNorm(config.width)
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.layers))
        self.rotary = Rotary(config.width // config.heads)
        self.final_norm = nn.LayerNorm(config.width)
        # Attention pooling: a score a frame, softmax over the last frames, weighted sum of their outputs.
        self.pooling_hidden = nn.Linear(config.width, config.pooling)
        self.pooling_score = nn.Linear(config.pooling, 1, bias=False)
        self.refine = nn.Linear(config.width, config.width)
        self.latent = nn.Linear(config.width, config.latent)

    def transformer_layers(self) -> list[TransformerLayer]:
        """Returns the layers from the bottom up."""
        return [layer for layer in self.layers if isinstance(layer, TransformerLayer)]

    def embed(self, frames: Tensor) -> Tensor:
        """Maps raw frames `(..., inputs)` to `(..., width)`."""
        return torch.relu(self.embedding_norm(self.embedding(frames)))

    def score(self, outputs: Tensor) -> Tensor:
        """Returns the pooling score `(...)` of outputs `(..., width)`."""
        scores: Tensor = self.pooling_score(torch.tanh(self.pooling_hidden(outputs)))
        return scores.squeeze(-1)

    def to_latent(self, pooled: Tensor) -> Tensor:
        """Maps pooled outputs `(..., width)` to the strategy latent `(..., latent)`."""
        latent: Tensor = self.latent(functional.gelu(self.refine(pooled)))
        return latent
