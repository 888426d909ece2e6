"""Settings of the opponent-strategy encoders: sizes, the window in frames, and how layers share it."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.errors import UnknownNameError

_SIZES: dict[str, dict[str, int]] = {
    "tiny": {"layers": 1, "heads": 2, "width": 32, "feedforward": 64, "window": 9},
    "small": {"layers": 2, "heads": 4, "width": 64, "feedforward": 256, "window": 33},
    "medium": {"layers": 4, "heads": 4, "width": 128, "feedforward": 512, "window": 65},
    "full": {"layers": 6, "heads": 8, "width": 256, "feedforward": 1024, "window": 65},
}
STRATEGY_SIZES: tuple[str, ...] = tuple(_SIZES)


class StrategyConfig(BaseModel):
    """An encoder of the opponent's last frames.

    Both kinds see exactly `window` frames. The streaming encoder encodes each frame once and gives every layer, and
    the attention pooling at the top, its own short window; these add up: `sum(w - 1) = window - 1`. The window
    encoder encodes all frames anew at every step, each attending to all. Both pool the same number of last outputs.

    Attributes:
        kind: Which encoder.
        entry: Observation entry that is read.
        block: Block of that entry that is read (`EnvSpec.blocks`), or None for all of it.
        layers: Transformer layers.
        heads: Attention heads; they divide the width evenly, into even parts.
        width: Features of a frame inside.
        feedforward: Hidden features of the feed-forward part.
        window: Frames that the latent depends on, the current one included.
        pooling: Hidden features of the pooling's score.
        latent: Size of the strategy latent.
        predict: Weight in PPO's loss of predicting from the latent what the encoder will read `predict_ahead` frames
            later, which makes the latent know the opponent also where rewards do not ask for it; 0 switches it off.
        predict_ahead: How many frames ahead; `ppo.chunk` must be longer.
        recognise: Weight in PPO's loss of telling from the latent which of the world's bots the opponent is; games
            against past selves and mirror games count nothing. 0 switches it off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["streaming", "window"] = "streaming"
    entry: str = "vector"
    block: str | None = "opponent"
    layers: int = Field(default=6, ge=1)
    heads: int = Field(default=8, ge=1)
    width: int = Field(default=256, ge=2)
    feedforward: int = Field(default=1024, ge=1)
    window: int = Field(default=65, ge=3)
    pooling: int = Field(default=128, ge=1)
    latent: int = Field(default=64, ge=1)
    predict: float = Field(default=0.0, ge=0.0)
    predict_ahead: int = Field(default=1, ge=1)
    recognise: float = Field(default=0.0, ge=0.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise ValueError(f"width {self.width} must be {self.heads} heads times an even number")
        if self.window < self.layers + 2:
            raise ValueError(
                f"window {self.window} is too short for {self.layers} layers and the pooling to look back one frame "
                f"each; use at least {self.layers + 2} or fewer layers"
            )
        return self

    @classmethod
    def preset(cls, size: str, kind: Literal["streaming", "window"] = "streaming") -> Self:
        """Returns the settings of one of the sizes `STRATEGY_SIZES`."""
        if size not in _SIZES:
            raise UnknownNameError("strategy encoder size", size, STRATEGY_SIZES)
        return cls.model_validate({"kind": kind} | _SIZES[size])

    @property
    def look_back(self) -> tuple[int, ...]:
        """Frames that each layer and, last, the pooling looks back; they add up to `window - 1`."""
        share, rest = divmod(self.window - 1, self.layers + 1)
        return tuple(share + (i > self.layers - rest) for i in range(self.layers + 1))
