"""The streaming strategy encoder: a causal transformer that encodes every frame once.

Each layer attends to a short window of its own, and the attention pooling to the last outputs of the top layer;
together they look back exactly `window - 1` frames (see `StrategyConfig.look_back`). In rollouts a step costs one
frame: keys and values of earlier frames lie in ring buffers. In training one banded pass encodes whole segments; the
ring of the segment's first memory comes before it, without gradient.
"""

import torch
from torch import Tensor
from torch.nn import functional

from ludus.networks.attention import Band, attend_one
from ludus.networks.strategy import StrategyConfig
from ludus.networks.transformer import StrategyEncoderBase


class StreamingEncoder(StrategyEncoderBase):
    """Encodes the opponent's frames as they come.

    Its memory: for layer i the rings `keys{i}` and `values{i}` `(rows, heads, look_back + 1, head_size)`, for the
    pooling the rings `outputs` `(rows, look_back + 1, width)` and `scores` `(rows, look_back + 1)`; `position`
    `(rows,)`, frames since the memory was made, whose remainder is the ring slot of the next frame; `seen` `(rows,)`,
    frames of the running episode. A ring has one slot more than it looks back, so the slot that the next frame will
    take holds nothing of use: asking for a value writes there and changes nothing that matters.
    """

    def __init__(self, inputs: int, config: StrategyConfig) -> None:
        super().__init__(inputs, config)
        *self._look_back, self._pool_look_back = config.look_back

    def initial(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        """Returns the memory of `rows` rows that have seen nothing."""
        width, heads = self.config.width, self.config.heads
        memory = {name: torch.zeros(rows, dtype=torch.int64, device=device) for name in ("position", "seen")}
        for i, look_back in enumerate(self._look_back):
            for name in (f"keys{i}", f"values{i}"):
                memory[name] = torch.zeros(
                    (rows, heads, look_back + 1, width // heads), dtype=self.cache_dtype, device=device
                )
        memory["outputs"] = torch.zeros((rows, self._pool_look_back + 1, width), dtype=self.cache_dtype, device=device)
        memory["scores"] = torch.zeros((rows, self._pool_look_back + 1), dtype=self.cache_dtype, device=device)
        return memory

    def step(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Encodes one frame `(rows, inputs)`; `starts` `(rows,)` bool forgets. Writes into the rings of `memory`."""
        position = memory["position"]
        seen = memory["seen"].masked_fill(starts, 0)
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
        return latent, memory | {"position": position + 1, "seen": seen + 1}

    @staticmethod
    def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attends with queries `(rows, heads, size)` to the rings; returns `(rows, heads * size)`."""
        if queries.is_cuda:
            return attend_one(queries, keys, values, mask)
        queries = queries.unsqueeze(2).to(keys.dtype)
        return functional.scaled_dot_product_attention(queries, keys, values, mask[:, None, None, :]).flatten(1)

    def unroll(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> Tensor:
        """Encodes segments `(steps, rows, inputs)` with starts `(steps, rows)` bool: `(steps, rows, latent)`."""
        return self._banded(inputs, memory, starts, None)

    def attention(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> dict[str, Tensor]:
        """Returns attention weights of segments by age of the frame attended to (0 is the frame itself).

        `layer{i}` is `(rows, heads, steps, look_back + 1)`, `pooling` `(rows, steps, look_back + 1)`.
        """
        weights: dict[str, Tensor] = {}
        with torch.no_grad():
            self._banded(inputs, memory, starts, weights)
        return weights

    def _banded(
        self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor, weights: dict[str, Tensor] | None
    ) -> Tensor:
        starts, position, seen = starts.t(), memory["position"], memory["seen"]
        bands = {n: Band(starts, seen, n) for n in {*self._look_back, self._pool_look_back}}
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
    """Returns the slot `(rows,)` of the current frame and which slots `(rows, slots)` hold frames of its episode."""
    slot = position.remainder(slots)
    ages = (slot.unsqueeze(1) - torch.arange(slots, device=slot.device)).remainder(slots)
    return slot, ages <= seen.unsqueeze(1)


def _before(ring: Tensor, position: Tensor, axis: int) -> Tensor:
    """Returns all but the next frame's slot of a ring along `axis`, oldest first."""
    slots = ring.shape[axis]
    order = (position.unsqueeze(1) + torch.arange(1, slots, device=ring.device)).remainder(slots)
    shape = [ring.shape[0]] + [1] * (ring.dim() - 1)
    shape[axis] = slots - 1
    return ring.gather(axis, order.view(shape).expand(*ring.shape[:axis], slots - 1, *ring.shape[axis + 1 :]))
