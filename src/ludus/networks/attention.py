"""Causal attention within a band: every frame attends to itself and the `look_back` frames of its episode before it."""

import torch
from torch import Tensor

# Longer segments are cut into blocks of queries, each against its own keys and the look-back before them: the dense
# square of scores would grow with the square of the length.
_BLOCK = 32


def attend_one(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attends with one query a row to a handful of keys.

    Written out as products and sums: the fused kernels are made for long sequences, and here take most of a step;
    `torch.compile` makes one pass over the caches of this.

    Args:
        queries: `(rows, heads, size)`.
        keys: `(rows, heads, slots, size)`.
        values: `(rows, heads, slots, size)`.
        mask: `(rows, slots)` bool, slots that are attended to.

    Returns:
        `(rows, heads * size)` in the type of the queries.
    """
    scores = (queries.unsqueeze(2).float() * keys.float()).sum(-1) * queries.shape[-1] ** -0.5
    weights = torch.softmax(scores.masked_fill(~mask.unsqueeze(1), -torch.inf), dim=-1)
    return (weights.unsqueeze(-1) * values.float()).sum(2).flatten(1).to(queries.dtype)


class Band:
    """The mask of one segment batch for one look-back, and attention under it.

    Keys are the `look_back` cached frames before the segment, oldest first, and then the segment's own frames.
    """

    def __init__(self, starts: Tensor, seen: Tensor, look_back: int) -> None:
        """Prepares the mask.

        Args:
            starts: `(rows, steps)` bool, frames that are the first of an episode.
            seen: `(rows,)` frames of the running episode before the segment.
            look_back: Frames that a query sees before its own.
        """
        rows, steps = starts.shape
        self.look_back = look_back
        self.block = _BLOCK if steps % _BLOCK == 0 else steps
        # Episode numbers within the segment: 0 goes on from the cache, -1 is a cached frame of an earlier episode.
        query_episodes = starts.long().cumsum(1)
        ages = torch.arange(look_back, 0, -1, device=starts.device)
        cached = torch.where(ages <= seen.unsqueeze(1), 0, -1)
        key_episodes = self._blocks_of_keys(torch.cat((cached, query_episodes), dim=1))
        query_episodes = query_episodes.reshape(-1, self.block)
        distance = torch.arange(self.block, device=starts.device).unsqueeze(1) + look_back
        distance = distance - torch.arange(self.block + look_back, device=starts.device)
        inside = (distance >= 0) & (distance <= look_back)
        self.mask = inside & (query_episodes.unsqueeze(2) == key_episodes.unsqueeze(1))
        self.rows, self.steps = rows, steps

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attends with queries `(rows, heads, steps, size)`, keys and values `(rows, heads, look_back + steps, size)`.

        Returns:
            `(rows, steps, heads * size)`.
        """
        blocks = self.steps // self.block
        heads, size = queries.shape[1], queries.shape[3]
        if blocks > 1:
            queries = queries.reshape(self.rows, heads, blocks, self.block, size).transpose(1, 2).flatten(0, 1)
            keys, values = (self._blocks_of_vectors(tensor) for tensor in (keys, values))
        # Written out: for bands this narrow the fused kernels are slower (on an H200, with `torch.compile`, 236,000
        # against 280,000 steps/s of training for the full encoder).
        scores = (queries @ keys.transpose(-1, -2)) * size**-0.5
        weights = torch.softmax(scores.masked_fill(~self.mask.unsqueeze(1), -torch.inf), dim=-1)
        attended = weights.to(values.dtype) @ values
        return attended.transpose(1, 2).reshape(self.rows, self.steps, heads * size)

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Returns the attention weights by age, `(rows, heads, steps, look_back + 1)`; age 0 is the frame itself."""
        scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
        by_age = self._by_age(scores)
        allowed = self._allowed_by_age()
        return torch.softmax(by_age.masked_fill(~allowed.unsqueeze(1), -torch.inf), dim=-1)

    def pool(self, scores: Tensor, outputs: Tensor) -> Tensor:
        """Averages outputs `(rows, look_back + steps, width)` over the band with softmax weights of their scores.

        Args:
            scores: `(rows, look_back + steps)`.
            outputs: `(rows, look_back + steps, width)`.

        Returns:
            `(rows, steps, width)`.
        """
        scores, vectors = self._blocks_of_keys(scores), outputs.unsqueeze(1)
        vectors = self._blocks_of_vectors(vectors) if self.steps > self.block else vectors
        weights = torch.softmax(scores.unsqueeze(1).masked_fill(~self.mask, -torch.inf), dim=-1)
        pooled = weights.to(outputs.dtype) @ vectors.squeeze(1)
        return pooled.reshape(self.rows, self.steps, -1)

    def pool_weights(self, scores: Tensor) -> Tensor:
        """Returns the pooling weights by age, `(rows, steps, look_back + 1)`, of scores `(rows, look_back + steps)`."""
        by_age = self._by_age(scores.unsqueeze(1).expand(-1, self.steps, -1))
        return torch.softmax(by_age.masked_fill(~self._allowed_by_age(), -torch.inf), dim=-1)

    def _blocks_of_keys(self, numbers: Tensor) -> Tensor:
        """Cuts `(rows, look_back + steps)` into overlapping `(rows * blocks, look_back + block)`."""
        return numbers.unfold(1, self.look_back + self.block, self.block).flatten(0, 1)

    def _blocks_of_vectors(self, vectors: Tensor) -> Tensor:
        """Cuts `(rows, heads, look_back + steps, size)` into `(rows * blocks, heads, look_back + block, size)`."""
        blocks = vectors.unfold(2, self.look_back + self.block, self.block)
        return blocks.permute(0, 2, 1, 4, 3).flatten(0, 1)

    def _by_age(self, square: Tensor) -> Tensor:
        """Takes from `(..., steps, look_back + steps)` the band, newest key first: `(..., steps, look_back + 1)`."""
        ages = torch.arange(self.look_back + 1, device=square.device)
        index = torch.arange(self.steps, device=square.device).unsqueeze(1) + self.look_back - ages
        return square.gather(-1, index.expand(*square.shape[:-1], -1))

    def _allowed_by_age(self) -> Tensor:
        ages = torch.arange(self.look_back + 1, device=self.mask.device)
        index = torch.arange(self.block, device=self.mask.device).unsqueeze(1) + self.look_back - ages
        allowed = self.mask.gather(-1, index.expand(self.mask.shape[0], -1, -1))
        return allowed.reshape(self.rows, self.steps, self.look_back + 1)
