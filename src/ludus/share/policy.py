"""Pack a policy for the browser: its network as a list of operations, and its weights in as few bytes as do no harm.

`assets/policy.cpp` runs the operations. They are those of `Policy.step` without the critic; a test holds that both give
the same actions. Matrices may be stored as bfloat16 or as int8 with a scale per row; see `choose_format`.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Literal

import torch
from gymnasium import spaces
from torch import Tensor, nn

from ludus.core.errors import UnsupportedError
from ludus.core.files import JSON
from ludus.core.text import page_text
from ludus.nn.distributions import GaussianHead, SquashedHead, StateDependentGaussianHead
from ludus.nn.mlp import Film, Mlp
from ludus.nn.normalizer import Normalizer
from ludus.nn.recurrent import Lstm
from ludus.nn.strategy import StreamingEncoder
from ludus.nn.transformer import ROTARY_PERIOD, TransformerLayer
from ludus.policies.policy import Policy

Format = Literal["float32", "bfloat16", "int8"]
FORMATS: tuple[Format, ...] = ("int8", "bfloat16", "float32")  # the smallest first

_WEIGHTS, _SCRATCH, _MEMORY = (area << 28 for area in range(3))
_MAX_SLOTS = 512  # of a ring, as in `policy.cpp`
_LAYER_NORM_EPSILON = 1e-5  # as in `policy.cpp`
_ACTIVATIONS = ("tanh", "relu", "elu", "gelu", "silu")  # as in `policy.cpp`
_SUPPORTED = (
    "MLPs, LSTMs and the strategy encoder over vector observations, with MultiBinary, "
    "Discrete, MultiDiscrete or Box actions of PPO"
)


class _Op(IntEnum):
    """Operations of `policy.cpp`, in its order."""

    LINEAR = 0
    ACTIVATE = auto()
    NORMALIZE = auto()
    LAYER_NORM = auto()
    ADD = auto()
    COPY = auto()
    SCALE = auto()
    LSTM = auto()
    ATTEND = auto()
    POOL = auto()
    ADVANCE = auto()
    FILM = auto()
    SOFTMAX = auto()
    MIRROR = auto()


@dataclass(frozen=True, slots=True)
class PackedPolicy:
    """A policy for `engine.addPolicy`: the bytes, and what they mean."""

    data: bytes
    description: dict[str, JSON]


def check_supported(policy: Policy) -> None:
    """Raise UnsupportedError if the browser cannot play a policy."""
    config, fault = policy.config, ""
    pictures = [name for name, space in policy.spec.observation_space.items() if not _is_vector(space)]
    if policy.network is not None:
        fault = f"it has a network of your own ({policy.network.name})"
    elif pictures:
        fault = f"its observation {pictures[0]!r} is {policy.spec.observation_space[pictures[0]]}"
    elif policy.spec.actions.mask is not None or policy.spec.actions.uses or policy.spec.actions.places is not None:
        fault = f"the actions of {policy.spec.id} have a mask, kinds or places"
    elif isinstance(policy.head, SquashedHead | StateDependentGaussianHead):
        fault = "its continuous actions are squashed (SAC, TD3) or explore by state (gSDE)"
    elif config.strategy is not None and max(config.strategy.look_back) >= _MAX_SLOTS:
        fault = f"its strategy encoder looks back {max(config.strategy.look_back)} frames in a layer"
    if fault:
        raise UnsupportedError(f"the agent cannot play in a browser: {fault}; what can: {_SUPPORTED}")


def _is_vector(space: spaces.Space[object]) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 1 and str(space.dtype) == "float32"


def pack_policy(policy: Policy, matrices: Format = "float32") -> PackedPolicy:
    """Pack a policy, with matrices in this format; everything else is float32.

    Raises:
        UnsupportedError: The browser cannot play it.
    """
    check_supported(policy)
    return _Packer(policy, matrices).pack()


def reduced(weight: Tensor, matrices: Format) -> Tensor:
    """Return a matrix `(rows, columns)` with the precision that a format leaves it."""
    if matrices == "int8":
        scales = _row_scales(weight)
        return torch.round(weight / scales).clamp(-127, 127) * scales
    return weight.to(torch.bfloat16).float() if matrices == "bfloat16" else weight


def _row_scales(weight: Tensor) -> Tensor:
    return (weight.abs().amax(1, keepdim=True) / 127.0).clamp(min=1e-30)


class _Packer:
    """Collects operations, weights and memory while it walks through a policy."""

    def __init__(self, policy: Policy, matrices: Format) -> None:
        self._policy, self._matrices = policy, matrices
        self._code: list[int] = []
        self._weights = bytearray()
        self._scratch = self._memory = 0
        self._cosines = -1

    def pack(self) -> PackedPolicy:
        """Walk through the policy as `Policy.step` does."""
        policy = self._policy
        flat, seen = self._observe()
        features, latent = seen, None
        if policy.memory.strategy is not None:
            assert policy.config.strategy is not None  # noqa: S101 - for the type checker
            latent = self._encode(policy.memory.strategy, flat[policy.config.strategy.entry])
            features = self._join([seen, latent])
        if policy.memory.recurrent is not None:
            features = self._remember(policy.memory.recurrent, features)
        actor = self._mlp(policy.actor, features, self._film(policy.actor_film, latent))
        parameters = self._linear(actor, policy.head.linear.weight, policy.head.linear.bias, exact=True)
        if policy.canonical is not None:
            parameters = self._mirror(parameters, policy.canonical.keys, torch.ones(parameters.size))
        kind = "categorical"
        if isinstance(policy.head, GaussianHead):
            kind = "box"
            parameters = self._join([parameters, self._constant(policy.head.log_std)])
        elif isinstance(policy.spec.action_space, spaces.MultiBinary):
            kind = "multi_binary"
        readout = self._classify(latent)
        head: dict[str, JSON] = {"kind": kind, "parameters": parameters.word, "size": parameters.size}
        code = struct.pack(f"<{len(self._code)}i", *self._code)
        while len(code) % 16:
            code += b"\0"
        description: dict[str, JSON] = {
            "codeWords": len(self._code),
            "codeBytes": len(code),
            "scratchWords": self._scratch,
            "memoryWords": self._memory,
            "entries": [[name, place.word, place.size] for name, place in self._inputs.items()],
            "head": head,
            "readout": readout,
            "matrices": self._matrices,
        }
        return PackedPolicy(bytes(code) + bytes(self._weights), description)

    def _observe(self) -> tuple[dict[str, "_Place"], "_Place"]:
        """Return normalised entries, and the features of all of them."""
        encoder = self._policy.observations
        self._inputs = {name: self._room(size) for name, size in encoder.sizes.items()}
        flat = dict(self._inputs)
        if self._policy.canonical is not None:
            flat = {name: self._mirror(place, *self._policy.canonical.image(name)) for name, place in flat.items()}
        for name, normaliser in encoder.normalisers.items():
            assert isinstance(normaliser, Normalizer)  # noqa: S101 - for the type checker
            turned, place = flat[name], self._room(normaliser.features)
            flat[name] = place
            shift, scale = self._put(normaliser.shift), self._put(normaliser.scale)
            self._emit(
                _Op.NORMALIZE,
                place.operand,
                turned.operand,
                place.size,
                shift,
                scale,
                _bits(normaliser.clip),
            )
        features = []
        for name, network in encoder.networks.items():
            assert isinstance(network, Mlp)  # noqa: S101 - `check_supported` refuses others; for the type checker
            features.append(self._mlp(network, flat[name], None))
        return flat, self._join(features)

    def _mirror(self, numbers: "_Place", source: Tensor, sign: Tensor) -> "_Place":
        """Turn numbers of a mirrored view; see `CanonicalView`."""
        assert self._policy.canonical is not None  # noqa: S101 - for the type checker
        entry, column = self._policy.canonical.side
        turned, side = self._room(numbers.size), self._inputs[entry].part(column, column + 1)
        tables = self._put(source.to(torch.int32)), self._put(sign)
        self._emit(_Op.MIRROR, turned.operand, numbers.operand, numbers.size, *tables, side.operand)
        return turned

    def _encode(self, encoder: StreamingEncoder, entry: "_Place") -> "_Place":
        """Encode the newest frame; see `StreamingEncoder.step`."""
        config, columns = encoder.config, self._policy.memory.columns
        inputs = self._join([entry.part(start, stop) for start, stop in _ranges(columns)])
        counter = self._remembered(3)
        frames = self._linear(inputs, encoder.embedding.weight, encoder.embedding.bias)
        frames = self._layer_norm(frames, encoder.embedding_norm)
        self._emit(_Op.ACTIVATE, frames.operand, frames.size, _ACTIVATIONS.index("relu"))
        *look_back, pool_look_back = config.look_back
        for layer, frames_back in zip(encoder.transformer_layers(), look_back, strict=True):
            self._layer(layer, frames, frames_back + 1, counter)
        newest = self._layer_norm(frames, encoder.final_norm)
        hidden = self._linear(newest, encoder.pooling_hidden.weight, encoder.pooling_hidden.bias)
        self._emit(_Op.ACTIVATE, hidden.operand, hidden.size, _ACTIVATIONS.index("tanh"))
        score = self._linear(hidden, encoder.pooling_score.weight, None, exact=True)
        slots, pooled = pool_look_back + 1, self._room(config.width)
        outputs, scores = self._remembered(slots * config.width), self._remembered(slots)
        self._emit(
            _Op.POOL, pooled.operand, newest.operand, score.operand, outputs, scores, config.width, slots, counter
        )
        events = encoder.event_inputs.to(torch.int32)
        self._emit(_Op.ADVANCE, counter, inputs.operand, len(events), self._put(events))
        refined = self._linear(pooled, encoder.refine.weight, encoder.refine.bias)
        self._emit(_Op.ACTIVATE, refined.operand, refined.size, _ACTIVATIONS.index("gelu"))
        return self._linear(refined, encoder.latent.weight, encoder.latent.bias)

    def _layer(self, layer: TransformerLayer, frames: "_Place", slots: int, counter: int) -> None:
        """Add what a transformer layer makes of the newest frame to it."""
        normed = self._layer_norm(frames, layer.attention_norm)
        projected = self._linear(normed, layer.projection.weight, layer.projection.bias)
        attended, heads, size = self._room(frames.size), layer.heads, layer.head_size
        keys, values = self._remembered(slots * frames.size), self._remembered(slots * frames.size)
        turns, cosines = self._rotary()
        rings = (keys, values, heads, size, slots, turns, cosines, ROTARY_PERIOD, counter)
        self._emit(_Op.ATTEND, attended.operand, projected.operand, *rings)
        self._linear(attended, layer.output.weight, layer.output.bias, into=frames)
        hidden = self._linear(self._layer_norm(frames, layer.feedforward_norm), layer.expand.weight, layer.expand.bias)
        self._emit(_Op.ACTIVATE, hidden.operand, hidden.size, _ACTIVATIONS.index("gelu"))
        self._linear(hidden, layer.contract.weight, layer.contract.bias, into=frames)

    def _rotary(self) -> tuple[int, int]:
        """Return the turns of each pair of features, and the cosines of all steps of a turn."""
        assert self._policy.memory.strategy is not None  # noqa: S101 - for the type checker
        rotary = self._policy.memory.strategy.rotary
        if self._cosines < 0:
            angles = torch.arange(ROTARY_PERIOD, dtype=torch.float64) * (2.0 * torch.pi / ROTARY_PERIOD)
            self._turns, self._cosines = self._put(rotary.turns.to(torch.int32)), self._put(angles.cos())
        return self._turns, self._cosines

    def _remember(self, cell: Lstm, features: "_Place") -> "_Place":
        """Advance the memory of the actor; see `Memory` for what comes with it."""
        config = self._policy.config.recurrent
        assert config is not None  # noqa: S101 - for the type checker
        hidden = self._remembered(cell.size)
        remembered = _Place(hidden, cell.size)
        projected = self._linear(features, cell.input_weight, cell.bias)
        self._linear(remembered, cell.hidden_weight, None, into=projected)
        self._emit(_Op.LSTM, projected.operand, hidden, self._remembered(cell.size), cell.size)
        if not config.skip:
            return remembered
        joined = self._join([remembered, features], copy=True)
        if config.memory_feature_scale != 1.0:
            self._emit(_Op.SCALE, joined.operand, cell.size, _bits(config.memory_feature_scale))
        return joined

    def _classify(self, latent: "_Place | None") -> JSON:
        """Return where the probabilities of the opponent's classes are; None where it is not classified."""
        classifier = self._policy.auxiliary_losses.get("recognition")
        if classifier is None or latent is None:
            return None
        hidden, last = classifier.head
        assert isinstance(hidden, Mlp)  # noqa: S101 - for the type checker
        assert isinstance(last, nn.Linear)  # noqa: S101 - for the type checker
        logits = self._linear(self._mlp(hidden, latent, None), last.weight, last.bias)
        self._emit(_Op.SOFTMAX, logits.operand, logits.size)
        return {"classes": list(map(page_text, self._policy.spec.bots)), "probabilities": logits.word}

    def _film(self, film: Film | None, latent: "_Place | None") -> "_Place | None":
        return None if film is None or latent is None else self._linear(latent, film.linear.weight, film.linear.bias)

    def _mlp(self, network: Mlp, inputs: "_Place", film: "_Place | None") -> "_Place":
        changed = 0
        for layer in network.layers:
            assert isinstance(layer, nn.Linear)  # noqa: S101 - for the type checker
            inputs = self._linear(inputs, layer.weight, layer.bias)
            self._emit(_Op.ACTIVATE, inputs.operand, inputs.size, _ACTIVATIONS.index(network.activation_name))
            if film is not None:
                self._emit(_Op.FILM, inputs.operand, film.part(changed, film.size).operand, inputs.size)
                changed += 2 * inputs.size
        return inputs

    def _linear(
        self,
        inputs: "_Place",
        weight: Tensor,
        bias: Tensor | None,
        *,
        into: "_Place | None" = None,
        exact: bool = False,
    ) -> "_Place":
        """Multiply by a matrix; add to `into` if it is given. An `exact` matrix is small and stays float32."""
        rows, columns = weight.shape
        result = self._room(rows) if into is None else into
        matrices: Format = "float32" if exact else self._matrices
        stored, scales = weight.detach().float().cpu(), 0
        if matrices == "int8":
            scales = self._put(_row_scales(stored))
            place = self._put(torch.round(stored / _row_scales(stored)).clamp(-127, 127).to(torch.int8))
        else:
            place = self._put(stored.to(torch.bfloat16).view(torch.int16) if matrices == "bfloat16" else stored)
        form = ("float32", "bfloat16", "int8").index(matrices)
        shift = -1 if bias is None else self._put(bias)
        self._emit(
            _Op.LINEAR, result.operand, inputs.operand, place, scales, shift, rows, columns, form, int(into is not None)
        )
        return result

    def _layer_norm(self, inputs: "_Place", norm: nn.LayerNorm) -> "_Place":
        assert norm.eps == _LAYER_NORM_EPSILON  # noqa: S101 - `policy.cpp` knows no other
        result = self._room(inputs.size)
        self._emit(
            _Op.LAYER_NORM, result.operand, inputs.operand, inputs.size, self._put(norm.weight), self._put(norm.bias)
        )
        return result

    def _join(self, parts: Sequence["_Place"], *, copy: bool = False) -> "_Place":
        """Put parts side by side; a single one stays where it is unless it is to be copied."""
        if len(parts) == 1 and not copy:
            return parts[0]
        joined, begin = self._room(sum(part.size for part in parts)), 0
        for part in parts:
            self._emit(_Op.COPY, joined.part(begin, joined.size).operand, part.operand, part.size)
            begin += part.size
        return joined

    def _constant(self, values: Tensor) -> "_Place":
        return _Place(self._put(values), values.numel())

    def _put(self, values: Tensor) -> int:
        """Store numbers, floats as float32; return the operand."""
        stored = values.detach().cpu().contiguous()
        stored = stored.float() if stored.is_floating_point() else stored
        self._weights += b"\0" * (-len(self._weights) % 16)
        place = len(self._weights) // 4
        self._weights += stored.numpy().tobytes()
        return _WEIGHTS | place

    def _room(self, words: int) -> "_Place":
        place = self._scratch
        self._scratch += -(-words // 4) * 4
        return _Place(_SCRATCH | place, words)

    def _remembered(self, words: int) -> int:
        place = self._memory
        self._memory += -(-words // 4) * 4
        return _MEMORY | place

    def _emit(self, operation: _Op, *operands: int) -> None:
        self._code += [int(operation), len(operands), *operands]


@dataclass(frozen=True, slots=True)
class _Place:
    """Numbers side by side in one of the areas."""

    operand: int
    size: int

    @property
    def word(self) -> int:
        """Its first word in its area."""
        return self.operand & 0x0FFFFFFF

    def part(self, start: int, stop: int) -> "_Place":
        """Return a part."""
        return _Place(self.operand + start, stop - start)


def _bits(value: float) -> int:
    bits: int = struct.unpack("<i", struct.pack("<f", value))[0]
    return bits


def _ranges(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for column in columns:
        if runs and runs[-1][1] == column:
            runs[-1] = (runs[-1][0], column + 1)
        else:
            runs.append((column, column + 1))
    return runs


def with_matrices(policy: Policy, matrices: Format) -> Mapping[str, Tensor]:
    """Return the state of a policy whose matrices have the precision that a format leaves them."""
    exact = ("parameter.head.", "parameter.value_head.", "parameter.memory.strategy.pooling_score.")
    return {
        name: reduced(tensor, matrices)
        if name.startswith("parameter.") and tensor.dim() == 2 and not name.startswith(exact)
        else tensor
        for name, tensor in policy.state().items()
    }
