"""Transformer layers with rotary positions, and causal attention within a band.

Every frame attends to itself and to the `look_back` frames of its episode before it, or to as many events: frames that
are marked.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

# Every rotary frequency is a whole number of turns in this many frames, so a position counts modulo the period:
# a game may run for ever and the angles stay exact.
ROTARY_PERIOD = 4096
_FASTEST_TURNS = round(ROTARY_PERIOD / (2.0 * math.pi))  # about one radian per frame
_SLOWEST_TURNS = 4  # a turn in 1,024 frames, far beyond any window

# Longer segments are cut into blocks of queries, each against its own keys and the look-back before them: the dense
# square of scores would grow with the square of the length.
_BLOCK = 32
_MULTIPLE = 8  # of keys on a GPU


class Rotary(nn.Module):
    """Rotates pairs of features by angles that grow with the position: products then depend on distances alone."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, head_size: int) -> None:
        super().__init__()
        pairs = head_size // 2
        # On the CPU also for a policy without memory of its own: `arange` on the meta device imports torch's compiler,
        # which takes 1.6 s, once per process.
        exponents = torch.arange(pairs, dtype=torch.float64, device="cpu") / max(pairs - 1, 1)
        self.turns = torch.round(_FASTEST_TURNS * (_SLOWEST_TURNS / _FASTEST_TURNS) ** exponents)
        steps = torch.arange(ROTARY_PERIOD, dtype=torch.float64, device="cpu")
        angles = torch.outer(steps, self.turns) * (2.0 * math.pi / ROTARY_PERIOD)
        self.register_buffer("cosines", angles.cos().float(), persistent=False)
        self.register_buffer("sines", angles.sin().float(), persistent=False)

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines `(*positions, head_size / 2)` of whole-number positions."""
        index = positions.remainder(ROTARY_PERIOD)
        return self.cosines[index], self.sines[index]

    @staticmethod
    def rotate(features: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """Rotate `(..., head_size)` by angles that broadcast to `(..., head_size / 2)`."""
        cosines, sines = angles[0].to(features.dtype), angles[1].to(features.dtype)
        first, second = features.chunk(2, dim=-1)
        return torch.cat((first * cosines - second * sines, first * sines + second * cosines), dim=-1)


class TransformerLayer(nn.Module):
    """One pre-norm transformer layer, in halves: what comes before the attention and what comes after."""

    def __init__(self, width: int, heads: int, feedforward: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.head_size = heads, width // heads
        self.attention_norm = nn.LayerNorm(width)
        self.feedforward_norm = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.expand = nn.Linear(width, feedforward)
        self.contract = nn.Linear(feedforward, width)
        for layer in (self.projection, self.output, self.expand, self.contract):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.dropout = nn.Dropout(dropout) if dropout > 0.0 else nn.Identity()  # of what is added to the frames

    def project(self, frames: Tensor, angles: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Map `(..., width)` to queries, keys and values `(..., heads, head_size)`, the first two rotated."""
        projected = self.projection(self.attention_norm(frames)).unflatten(-1, (3, self.heads, self.head_size))
        queries, keys, values = projected.unbind(-3)
        return Rotary.rotate(queries, angles), Rotary.rotate(keys, angles), values

    def finish(self, frames: Tensor, attended: Tensor) -> Tensor:
        """Add what was attended to, `(..., width)`, and the feed-forward part to the frames."""
        frames = frames + self.dropout(self.output(attended))
        hidden = functional.gelu(self.expand(self.feedforward_norm(frames)))
        result: Tensor = frames + self.dropout(self.contract(hidden))
        return result


def attend_one(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attend with one query `(rows, heads, size)` per row to keys and values `(rows, heads, slots, size)`.

    Written out as products and sums: the fused kernels are made for long sequences, and here take most of a step;
    `torch.compile` makes one pass over the caches of this. `mask` `(rows, slots)` bool says which slots are attended
    to. Return `(rows, heads * size)` in the type of the queries.
    """
    scores = (queries.unsqueeze(2).float() * keys.float()).sum(-1) * queries.shape[-1] ** -0.5
    weights = torch.softmax(scores.masked_fill(~mask.unsqueeze(1), -torch.inf), dim=-1)
    return (weights.unsqueeze(-1) * values.float()).sum(2).flatten(1).to(queries.dtype)


class Band:
    """The mask of one segment batch for one look-back, and attention under it.

    Keys are the `look_back` cached frames before the segment, oldest first, and then the segment's own frames: keys and
    values are `(rows, heads, look_back + steps, size)`.
    """

    def __init__(self, episode_starts: Tensor, seen: Tensor, look_back: int) -> None:
        """Prepare the mask for `episode_starts` `(rows, steps)` bool after `seen` `(rows,)` frames of the episode."""
        rows, steps = episode_starts.shape
        self.look_back = look_back
        self.block = _BLOCK if steps % _BLOCK == 0 else steps
        # Masked padding keys come first and make the number of keys a multiple of 8: with an odd number, products on
        # tensor cores take several times as long.
        self._filling = -(look_back + self.block) % _MULTIPLE if episode_starts.is_cuda else 0
        reach = look_back + self._filling
        # Episode numbers within the segment: 0 continues from the cache, -1 is a cached frame of an earlier episode.
        query_episodes = episode_starts.long().cumsum(1)
        ages = torch.arange(look_back, 0, -1, device=episode_starts.device)
        cached = torch.where(ages <= seen.unsqueeze(1), 0, -1)
        key_episodes = self._blocks_of_keys(torch.cat((cached, query_episodes), dim=1))
        query_episodes = query_episodes.reshape(-1, self.block)
        distance = torch.arange(self.block, device=episode_starts.device).unsqueeze(1) + reach
        distance = distance - torch.arange(self.block + reach, device=episode_starts.device)
        inside = (distance >= 0) & (distance <= look_back)
        self.mask = inside & (query_episodes.unsqueeze(2) == key_episodes.unsqueeze(1))
        self.rows, self.steps = rows, steps

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Map queries `(rows, heads, steps, size)` to `(rows, steps, heads * size)`; see the class for the keys."""
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
        """Return the attention weights by age, `(rows, heads, steps, look_back + 1)`; age 0 is the frame itself."""
        scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
        by_age = self._by_age(scores)
        allowed = self._allowed_by_age()
        return torch.softmax(by_age.masked_fill(~allowed.unsqueeze(1), -torch.inf), dim=-1)

    def pool(self, scores: Tensor, outputs: Tensor) -> Tensor:
        """Average outputs `(rows, look_back + steps, width)` to `(rows, steps, width)` by softmax of their scores."""
        scores, vectors = self._blocks_of_keys(scores), self._blocks_of_vectors(outputs.unsqueeze(1))
        weights = torch.softmax(scores.unsqueeze(1).masked_fill(~self.mask, -torch.inf), dim=-1)
        pooled = weights.to(outputs.dtype) @ vectors.squeeze(1)
        return pooled.reshape(self.rows, self.steps, -1)

    def pool_weights(self, scores: Tensor) -> Tensor:
        """Return the pooling weights by age, `(rows, steps, look_back + 1)`, of scores `(rows, look_back + steps)`."""
        by_age = self._by_age(scores.unsqueeze(1).expand(-1, self.steps, -1))
        return torch.softmax(by_age.masked_fill(~self._allowed_by_age(), -torch.inf), dim=-1)

    def _blocks_of_keys(self, numbers: Tensor) -> Tensor:
        """Cut `(rows, look_back + steps)` into overlapping `(rows * blocks, keys)`: a block's own and those before."""
        numbers = functional.pad(numbers, (self._filling, 0)) if self._filling else numbers
        return numbers.unfold(1, self._filling + self.look_back + self.block, self.block).flatten(0, 1)

    def _blocks_of_vectors(self, vectors: Tensor) -> Tensor:
        """Cut `(rows, heads, look_back + steps, size)` into `(rows * blocks, heads, keys, size)`."""
        vectors = functional.pad(vectors, (0, 0, self._filling, 0)) if self._filling else vectors
        if self.steps == self.block:
            return vectors
        blocks = vectors.unfold(2, self._filling + self.look_back + self.block, self.block)
        return blocks.permute(0, 2, 1, 4, 3).flatten(0, 1)

    def _by_age(self, square: Tensor) -> Tensor:
        """Take from `(..., steps, look_back + steps)` the band, newest key first: `(..., steps, look_back + 1)`."""
        ages = torch.arange(self.look_back + 1, device=square.device)
        index = torch.arange(self.steps, device=square.device).unsqueeze(1) + self.look_back - ages
        return square.gather(-1, index.expand(*square.shape[:-1], -1))

    def _allowed_by_age(self) -> Tensor:
        ages = torch.arange(self.look_back + 1, device=self.mask.device)
        index = torch.arange(self.block, device=self.mask.device).unsqueeze(1) + self._filling + self.look_back - ages
        allowed = self.mask.gather(-1, index.expand(self.mask.shape[0], -1, -1))
        return allowed.reshape(self.rows, self.steps, self.look_back + 1)


class EventBand(Band):
    """The same where every frame attends to itself and to the last `look_back` events of its episode before it.

    Keys are the `look_back` cached events before the segment, oldest first, and then the segment's own frames, of which
    events alone are attended to by later frames.
    """

    def __init__(self, episode_starts: Tensor, seen: Tensor, look_back: int, events: Tensor) -> None:
        """Prepare the mask for `episode_starts` and `events` `(rows, steps)` bool after `seen` `(rows,)` events."""
        self.rows, self.steps = episode_starts.shape
        self.look_back, self.block = look_back, self.steps
        self._filling = -(look_back + self.steps) % _MULTIPLE if episode_starts.is_cuda else 0
        device = episode_starts.device
        before = events_before(events)
        episodes = episode_starts.long().cumsum(1)
        cached = torch.arange(look_back, 0, -1, device=device)
        times = torch.arange(self.steps, device=device)
        earlier = (times < times.unsqueeze(1)) & events.unsqueeze(1) & (episodes.unsqueeze(1) == episodes.unsqueeze(2))
        valid = (cached <= seen.unsqueeze(1)).unsqueeze(1) & (episodes == 0).unsqueeze(2)
        self._ages = torch.cat((cached + before.unsqueeze(2), before.unsqueeze(2) - before.unsqueeze(1)), dim=2)
        itself = (times == times.unsqueeze(1)).expand_as(earlier)
        inside = torch.cat((valid, earlier), dim=2) & (self._ages <= look_back)
        inside[:, :, look_back:] |= itself
        self.mask = functional.pad(inside, (self._filling, 0))

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the attention weights by age in events, `(rows, heads, steps, look_back + 1)`; 0 is the frame."""
        return self._shares_by_age(queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5)

    def pool_weights(self, scores: Tensor) -> Tensor:
        """Return the pooling weights by age in events, `(rows, steps, look_back + 1)`."""
        return self._shares_by_age(scores.unsqueeze(1).expand(-1, self.steps, -1).unsqueeze(1)).squeeze(1)

    def _shares_by_age(self, scores: Tensor) -> Tensor:
        """Turn scores `(rows, heads, steps, look_back + steps)` to weights `(rows, heads, steps, look_back + 1)`."""
        inside = self.mask[:, :, self._filling :].unsqueeze(1)
        shares = torch.softmax(scores.masked_fill(~inside, -torch.inf), dim=-1)
        ages = self._ages.clamp(0, self.look_back).unsqueeze(1).expand_as(shares)
        by_age = shares.new_zeros(*shares.shape[:-1], self.look_back + 1)
        return by_age.scatter_add(-1, ages, shares)


def events_before(events: Tensor) -> Tensor:
    """Return how many events of a segment `(rows, steps)` come before each of its frames, int64."""
    return events.long().cumsum(1) - events.long()
