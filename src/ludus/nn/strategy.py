"""The encoder of the opponent's strategy, a streaming transformer over its last frames, and its config.

It is a causal transformer that encodes every frame once. Each layer attends to a short window of its own, and the
attention pooling to the last outputs of the top layer; together they look back exactly `window - 1` frames (see
`StrategyConfig.look_back`). In rollouts a step costs one frame: keys and values of earlier frames lie in ring buffers.
In training one banded pass encodes whole segments; the ring of the segment's first recurrent state comes before it,
without gradient. Encoding all frames of the window anew at every step takes 20 times as long at the default size and
learns as well (docs/research/learner.md); `tests/window_encoder.py` does so, as the reference.

The encoder can keep only events, frames in which something begins (`StrategyConfig.events`). If one begins
every 40 frames, a window of 32 events reaches back as far as one of 1,280 frames.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.schedules import MAX_FACTOR, MAX_LAYERS, MAX_WIDTH, Name, Width
from ludus.nn.recurrent import RecurrentState
from ludus.nn.transformer import Band, EventBand, Rotary, TransformerLayer, attend_one, events_before

_Blocks = Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]


class StrategyConfig(BaseModel):
    """An encoder of the opponent's last frames.

    It sees exactly `window` frames. Every layer, and the attention pooling at the top, has its own short window; these
    add up: `sum(w - 1) = window - 1`. The latent stands beside the other features of memory, actor and critic. Where
    these see the current observation beside it, without an LSTM or with `recurrent.skip`, it also scales and shifts
    every hidden unit of actor and critic (`Film`).

    Attributes:
        entry: Observation entry that it reads.
        block: Block of that entry (`EnvSpec.blocks`), or a list of blocks side by side, such as `[opponent, world]`, so
            that distance and direction are seen too; None for all of it.
        layers: Transformer layers.
        heads: Attention heads; `width / heads` must be an even number.
        width: Model width.
        feedforward: Hidden width of the feed-forward part.
        window: Frames that the latent depends on, including the current one; with `events`, the current frame and
            earlier events.
        events: Names of fields (`EnvSpec.fields`) in the blocks that the encoder reads. An event is a frame in which
            one of these fields has become positive. The encoder then remembers only events. Empty remembers all frames.
        pooling: Hidden width of the attention pooling.
        latent: Size of the strategy latent.
        predict_actions: Weight of the auxiliary loss that predicts the opponent's action in the same step from the
            latent and the features of the current observation; any opponent counts, also a snapshot. 0 switches it off.
        predict_before_events: Whether `predict_actions` counts only the actions right before an event, those that
            decide it; `ppo.sequence_length` must be at least 2.
        classify: Weight of the auxiliary loss that classifies which of the world's bots the opponent is; games against
            snapshots and the current policy are excluded. 0 switches it off.
        stop_gradient: Whether the latent reaches memory, actor and critic without gradient, so that the auxiliary
            losses alone train the encoder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    removed_keys: ClassVar[Mapping[str, str]] = {
        "kind": "learner.md#streaming-or-window-encoder",
        **dict.fromkeys(
            (
                *("predict", "predict_ahead", "predict_weighting", "contrast", "contrast_temperature", "contrast_gap"),
                *("condition", "variational"),
            ),
            "strategy.md#options-of-the-encoder-that-were-removed",
        ),
    }

    entry: Name = "vector"
    block: Name | _Blocks | None = "opponent"
    layers: int = Field(default=6, ge=1, le=MAX_LAYERS)
    heads: int = Field(default=8, ge=1, le=1_024)
    width: int = Field(default=256, ge=2, le=MAX_WIDTH)
    feedforward: Width = 1024
    window: int = Field(default=65, ge=3, le=10_000)
    events: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    pooling: Width = 128
    latent: Width = 64
    predict_actions: float = Field(default=0.0, ge=0.0, le=MAX_FACTOR)
    predict_before_events: bool = False
    classify: float = Field(default=0.0, ge=0.0, le=MAX_FACTOR)
    stop_gradient: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise ValueError(f"width {self.width} must be {self.heads} heads times an even number")
        if self.window < self.layers + 2:
            raise ValueError(
                f"window {self.window} is too short for {self.layers} layers and the pooling to look back one frame "
                f"each; use at least {self.layers + 2} or fewer layers"
            )
        if isinstance(self.block, tuple) and len(set(self.block)) != len(self.block):
            raise ValueError(f"block names a block twice: {', '.join(self.block)}; name each once")
        if self.predict_before_events and not (self.events and self.predict_actions):
            raise ValueError("predict_before_events needs events, and a weight for predict_actions")
        if self.stop_gradient and not (self.predict_actions or self.classify):
            raise ValueError(
                "stop_gradient is on, but no auxiliary loss would train the encoder; give predict_actions or classify "
                "a weight, or switch it off"
            )
        return self

    @property
    def look_back(self) -> tuple[int, ...]:
        """Frames that each layer and, last, the pooling looks back; they add up to `window - 1`."""
        share, rest = divmod(self.window - 1, self.layers + 1)
        return tuple(share + (i > self.layers - rest) for i in range(self.layers + 1))


class StreamingEncoder(nn.Module):
    """Encodes the opponent's frames as they come.

    Its memory: for layer i the rings `keys{i}` and `values{i}` `(rows, heads, look_back + 1, head_size)`, for the
    pooling the rings `outputs` `(rows, look_back + 1, width)` and `scores` `(rows, look_back + 1)`; `position`
    `(rows,)`, frames since the memory was made, whose remainder is the ring slot of the next frame; `seen` `(rows,)`,
    frames of the running episode. A ring has one slot more than it looks back, so the slot that the next frame will
    take holds nothing of use: asking for a value writes there and changes nothing that matters.

    With `events`, `position` and `seen` count events only, so the next frame overwrites a frame that was none, and
    `during` `(rows,)` is 1 if an event was in progress in the last frame.
    """

    event_inputs: Tensor

    def __init__(self, inputs: int, config: StrategyConfig, dropout: float = 0.0, events: tuple[int, ...] = ()) -> None:
        """Make an encoder with `inputs` inputs; `events` are the places among them of the fields `config.events`."""
        super().__init__()
        self.config, self.inputs, self.output_size = config, inputs, config.latent
        self.cache_dtype = torch.float32  # of the key/value caches
        self.embedding = nn.Linear(inputs, config.width)
        self.embedding_norm = nn.LayerNorm(config.width)
        self.layers = nn.ModuleList(
            TransformerLayer(config.width, config.heads, config.feedforward, dropout) for _ in range(config.layers)
        )
        self.rotary = Rotary(config.width // config.heads)
        self.final_norm = nn.LayerNorm(config.width)
        # Attention pooling: a score per frame, softmax over the last frames, weighted sum of their outputs.
        self.pooling_hidden = nn.Linear(config.width, config.pooling)
        self.pooling_score = nn.Linear(config.pooling, 1, bias=False)
        self.refine = nn.Linear(config.width, config.width)
        self.latent = nn.Linear(config.width, config.latent)
        self.keeps_events = bool(events)
        self.register_buffer("event_inputs", torch.tensor(events, dtype=torch.int64), persistent=False)
        *self._look_back, self._pool_look_back = config.look_back

    def transformer_layers(self) -> list[TransformerLayer]:
        """Return the layers from the bottom up."""
        return [layer for layer in self.layers if isinstance(layer, TransformerLayer)]

    def embed(self, frames: Tensor) -> Tensor:
        """Map raw frames `(..., inputs)` to `(..., width)`."""
        return torch.relu(self.embedding_norm(self.embedding(frames)))

    def score(self, outputs: Tensor) -> Tensor:
        """Return the pooling score `(...)` of outputs `(..., width)`."""
        scores: Tensor = self.pooling_score(torch.tanh(self.pooling_hidden(outputs)))
        return scores.squeeze(-1)

    def to_latent(self, pooled: Tensor) -> Tensor:
        """Map pooled outputs `(..., width)` to the strategy latent `(..., latent)`."""
        latent: Tensor = self.latent(functional.gelu(self.refine(pooled)))
        return latent

    def initial(self, rows: int, device: torch.device) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing."""
        width, heads = self.config.width, self.config.heads
        names = ("position", "seen", *(("during",) if self.keeps_events else ()))
        memory = {name: torch.zeros(rows, dtype=torch.int64, device=device) for name in names}
        for i, look_back in enumerate(self._look_back):
            for name in (f"keys{i}", f"values{i}"):
                memory[name] = torch.zeros(
                    (rows, heads, look_back + 1, width // heads), dtype=self.cache_dtype, device=device
                )
        memory["outputs"] = torch.zeros((rows, self._pool_look_back + 1, width), dtype=self.cache_dtype, device=device)
        memory["scores"] = torch.zeros((rows, self._pool_look_back + 1), dtype=self.cache_dtype, device=device)
        return memory

    def step(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> tuple[Tensor, RecurrentState]:
        """Encode one frame `(rows, inputs)`; `episode_starts` `(rows,)` bool forgets. Write to rings in `memory`."""
        position = memory["position"]
        seen = memory["seen"].masked_fill(episode_starts, 0)
        rows = torch.arange(inputs.shape[0], device=inputs.device)
        cosines, sines = self.rotary.angles(position)
        angles = cosines.unsqueeze(1), sines.unsqueeze(1)
        frames = self.embed(inputs)
        for i, layer in enumerate(self.transformer_layers()):
            queries, new_keys, new_values = layer.project(frames, angles)
            keys, values = memory[f"keys{i}"], memory[f"values{i}"]
            slot, mask = _ring(position, seen, keys.shape[2])
            keys[rows, :, slot] = new_keys.to(keys.dtype)
            values[rows, :, slot] = new_values.to(values.dtype)
            frames = layer.finish(frames, self._attend(queries, keys, values, mask).to(frames.dtype))
        newest = self.final_norm(frames)
        outputs, scores = memory["outputs"], memory["scores"]
        slot, mask = _ring(position, seen, outputs.shape[1])
        outputs[rows, slot] = newest.to(outputs.dtype)
        scores[rows, slot] = self.score(newest).to(scores.dtype)
        weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1).to(outputs.dtype)
        latent = self.to_latent(torch.bmm(weights.unsqueeze(1), outputs).squeeze(1))
        if not self.keeps_events:
            return latent, memory | {"position": position + 1, "seen": seen + 1}
        begins = self.events(inputs.unsqueeze(0), episode_starts.unsqueeze(0), memory["during"]).squeeze(0).long()
        during = self._in_progress(inputs).long()
        return latent, memory | {"position": position + begins, "seen": seen + begins, "during": during}

    def events(self, inputs: Tensor, episode_starts: Tensor, during: Tensor) -> Tensor:
        """Return in which frames of segments `(steps, rows, inputs)` an event begins, `(steps, rows)` bool.

        `during` `(rows,)` is not 0 if an event was in progress in the frame before the segment.
        """
        in_progress = self._in_progress(inputs)
        before = torch.cat((during.bool().unsqueeze(0), in_progress[:-1]))
        return in_progress & (~before | episode_starts)

    def _in_progress(self, inputs: Tensor) -> Tensor:
        return (inputs.index_select(-1, self.event_inputs) > 0.0).any(-1)

    @staticmethod
    def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attend with queries `(rows, heads, size)` to the rings; return `(rows, heads * size)`."""
        if queries.is_cuda:
            return attend_one(queries, keys, values, mask)
        queries = queries.unsqueeze(2).to(keys.dtype)
        return functional.scaled_dot_product_attention(queries, keys, values, mask[:, None, None, :]).flatten(1)

    def unroll(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Encode segments `(steps, rows, inputs)` with episode starts `(steps, rows)` bool: `(steps, rows, size)`."""
        return self._banded(inputs, memory, episode_starts, None)

    def attention(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> dict[str, Tensor]:
        """Return attention weights of segments by age of the frame attended to (0 is the frame itself).

        `layer{i}` is `(rows, heads, steps, look_back + 1)`, `pooling` `(rows, steps, look_back + 1)`. With `events`,
        ages count events.
        """
        weights: dict[str, Tensor] = {}
        with torch.no_grad():
            self._banded(inputs, memory, episode_starts, weights)
        return weights

    def _banded(
        self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor, weights: dict[str, Tensor] | None
    ) -> Tensor:
        position, seen = memory["position"], memory["seen"]
        looks_back = {*self._look_back, self._pool_look_back}
        bands: dict[int, Band]
        if self.keeps_events:
            events = self.events(inputs, episode_starts, memory["during"]).t()
            bands = {n: EventBand(episode_starts.t(), seen, n, events) for n in looks_back}
            times = position.unsqueeze(1) + events_before(events)
        else:
            bands = {n: Band(episode_starts.t(), seen, n) for n in looks_back}
            times = position.unsqueeze(1) + torch.arange(inputs.shape[0], device=inputs.device)
        cosines, sines = self.rotary.angles(times)
        angles = cosines.unsqueeze(2), sines.unsqueeze(2)
        frames = self.embed(inputs.transpose(0, 1))
        for i, layer in enumerate(self.transformer_layers()):
            queries, keys, values = (part.transpose(1, 2) for part in layer.project(frames, angles))
            keys = torch.cat((_before(memory[f"keys{i}"], position, 2).to(keys.dtype), keys), dim=2)
            values = torch.cat((_before(memory[f"values{i}"], position, 2).to(values.dtype), values), dim=2)
            band = bands[self._look_back[i]]
            if weights is not None:
                weights[f"layer{i}"] = band.weights(queries, keys)
            frames = layer.finish(frames, band.attend(queries, keys, values))
        newest = self.final_norm(frames)
        outputs = torch.cat((_before(memory["outputs"], position, 1).to(newest.dtype), newest), dim=1)
        new_scores = self.score(newest)
        scores = torch.cat((_before(memory["scores"], position, 1).to(new_scores.dtype), new_scores), dim=1)
        band = bands[self._pool_look_back]
        if weights is not None:
            weights["pooling"] = band.pool_weights(scores)
        return self.to_latent(band.pool(scores, outputs)).transpose(0, 1)


def _ring(position: Tensor, seen: Tensor, slots: int) -> tuple[Tensor, Tensor]:
    """Return the slot `(rows,)` of the current frame and which slots `(rows, slots)` hold frames of its episode."""
    slot = position.remainder(slots)
    ages = (slot.unsqueeze(1) - torch.arange(slots, device=slot.device)).remainder(slots)
    return slot, ages <= seen.unsqueeze(1)


def _before(ring: Tensor, position: Tensor, axis: int) -> Tensor:
    """Return all but the next frame's slot of a ring along `axis`, oldest first."""
    slots = ring.shape[axis]
    order = (position.unsqueeze(1) + torch.arange(1, slots, device=ring.device)).remainder(slots)
    shape = [ring.shape[0]] + [1] * (ring.dim() - 1)
    shape[axis] = slots - 1
    return ring.gather(axis, order.view(shape).expand(*ring.shape[:axis], slots - 1, *ring.shape[axis + 1 :]))
