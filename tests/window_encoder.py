"""The reference of the streaming encoder: all frames of the window are encoded anew at every step."""

import torch
from torch import Tensor
from torch.nn import functional

from ludus.nn.recurrent import RecurrentState
from ludus.nn.strategy import StreamingEncoder
from ludus.nn.transformer import TransformerLayer


class WindowEncoder(StreamingEncoder):
    """Re-encodes the opponent's last `window` frames, all attending to all, and pools the last outputs.

    It has the parameters, the window and the pooling of the streaming encoder and costs `window` times as much: a
    frame's representation here may use frames after it.

    Its memory: `frames` `(rows, window - 1, inputs)`, oldest first, and `seen` `(rows,)`, frames of the running
    episode.
    """

    def initial(self, rows: int, device: torch.device) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing."""
        shape = (rows, self.config.window - 1, self.inputs)
        return {
            "frames": self.embedding.weight.new_zeros(shape, device=device),
            "seen": torch.zeros(rows, dtype=torch.int64, device=device),
        }

    def step(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> tuple[Tensor, RecurrentState]:
        """Encode the window that ends with the frame `(rows, inputs)`; `episode_starts` `(rows,)` bool forgets."""
        seen = memory["seen"].masked_fill(episode_starts, 0)
        frames = torch.cat((memory["frames"], inputs.unsqueeze(1)), dim=1)
        latent = self._encode(self.embed(frames), seen, None)
        return latent, {"frames": frames[:, 1:].contiguous(), "seen": seen + 1}

    def unroll(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Encode segments `(steps, rows, inputs)` with episode starts `(steps, rows)` bool: `(steps, rows, size)`."""
        return self._all_windows(inputs, memory, episode_starts, None)

    def attention(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> dict[str, Tensor]:
        """Return attention weights of the newest frame by age of the frame attended to (0 is the frame itself).

        `layer{i}` is `(rows, heads, steps, window)`, `pooling` `(rows, steps, pooled frames)`.
        """
        weights: dict[str, Tensor] = {}
        with torch.no_grad():
            self._all_windows(inputs, memory, episode_starts, weights)
        steps, rows = episode_starts.shape
        shaped = {name: part.reshape(rows, steps, *part.shape[1:]) for name, part in weights.items()}
        return {name: part.transpose(1, 2) if part.dim() == 4 else part for name, part in shaped.items()}

    def _all_windows(
        self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor, weights: dict[str, Tensor] | None
    ) -> Tensor:
        steps, rows = episode_starts.shape
        frames = torch.cat((memory["frames"], inputs.transpose(0, 1)), dim=1)
        windows = self.embed(frames).unfold(1, self.config.window, 1).transpose(2, 3).flatten(0, 1)
        latent = self._encode(windows, _frames_before(episode_starts.t(), memory["seen"]).flatten(), weights)
        return latent.reshape(rows, steps, -1).transpose(0, 1)

    def _encode(self, windows: Tensor, seen: Tensor, weights: dict[str, Tensor] | None) -> Tensor:
        """Map embedded windows `(windows, window, width)` of which the last `seen + 1` frames count to latents."""
        length = self.config.window
        ages = torch.arange(length - 1, -1, -1, device=windows.device)
        valid = ages <= seen.unsqueeze(1)
        cosines, sines = self.rotary.angles(length - 1 - ages)
        angles = cosines.unsqueeze(1), sines.unsqueeze(1)
        for i, layer in enumerate(self.transformer_layers()):
            windows = self._layer(layer, windows, valid, angles, i, weights)
        last = self.config.look_back[-1] + 1
        outputs = self.final_norm(windows[:, -last:])
        scores = self.score(outputs).masked_fill(~valid[:, -last:], -torch.inf)
        shares = torch.softmax(scores, dim=-1).to(outputs.dtype)
        if weights is not None:
            weights["pooling"] = shares.flip(-1)
        return self.to_latent(torch.bmm(shares.unsqueeze(1), outputs).squeeze(1))

    @staticmethod
    def _layer(
        layer: TransformerLayer,
        windows: Tensor,
        valid: Tensor,
        angles: tuple[Tensor, Tensor],
        index: int,
        weights: dict[str, Tensor] | None,
    ) -> Tensor:
        queries, keys, values = (part.transpose(1, 2) for part in layer.project(windows, angles))
        mask = valid[:, None, None, :]
        if weights is not None:
            scores = (queries[:, :, -1:] @ keys.transpose(-1, -2)).squeeze(2) / layer.head_size**0.5
            weights[f"layer{index}"] = torch.softmax(scores.masked_fill(~mask[:, 0], -torch.inf), dim=-1).flip(-1)
        attended = functional.scaled_dot_product_attention(queries, keys, values, mask)
        return layer.finish(windows, attended.transpose(1, 2).flatten(2))


def _frames_before(episode_starts: Tensor, seen: Tensor) -> Tensor:
    """Return how many frames of its episode came before each frame, `(rows, steps)`."""
    times = torch.arange(episode_starts.shape[1], device=episode_starts.device).expand_as(episode_starts)
    last_start = torch.where(episode_starts, times, -1).cummax(dim=1).values
    return torch.where(last_start < 0, times + seen.unsqueeze(1), times - last_start)
