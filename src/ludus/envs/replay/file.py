"""The replay file: what a game was and every action in it, compressed, without pickle.

Layout: magic, length of the header (4 bytes, little end first), header (JSON), actions (zlib), SHA-256 of all that.
Everything is bounded before memory is spent, so that a stranger's file can be wrong, never dangerous.
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from ludus.core.errors import FormatError, ReplayError
from ludus.core.files import JSON, write_atomic
from ludus.store.documents import brief, decode_document, encode_document
from ludus.store.limits import Limits
from ludus.store.reading import open_untrusted

MAGIC = b"LUDUSRPL"
FORMAT_VERSION = 1
MAX_FILE_BYTES = 32 << 20
MAX_ACTION_BYTES = 64 << 20
MAX_EPISODE = 100_000  # a replay begins by resetting this often, 40 microseconds each
_HEADER_LIMITS = Limits(document_bytes=64 << 10, document_values=2_000, document_depth=8)
_DIGEST_BYTES = 32
_LENGTH = struct.Struct("<I")
_DTYPES = {"int8": torch.int8, "int32": torch.int32, "int64": torch.int64, "float32": torch.float32}

_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Label = Annotated[str, Field(max_length=80, pattern=r"^[\x20-\x7e]*$")]  # plain text: it ends up on a terminal


class _Header(BaseModel):
    """What stands in front of the actions; every field is checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format_version: Literal[1]
    world: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    world_version: Annotated[int, Field(ge=0, le=1_000_000)]
    config: dict[str, object]
    files: dict[_Label, _Digest]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    game: Annotated[int, Field(ge=0, lt=2**31)]
    episode: Annotated[int, Field(ge=0, le=MAX_EPISODE)]
    players: Annotated[list[_Label], Field(max_length=64)]
    shape: Annotated[list[Annotated[int, Field(ge=1, le=MAX_ACTION_BYTES)]], Field(min_length=2, max_length=6)]
    dtype: Literal["int8", "int32", "int64", "float32"]
    checksum: _Digest


@dataclass(frozen=True, slots=True)
class Replay:
    """One recorded game.

    Attributes:
        world: Name of the world without version.
        world_version: Its version; another version would play another game.
        seed: Seed of the environment.
        game: Index of the game in its batch, counted from the environment's first game 0.
        episode: How many games were played there before this one, since the seed was set.
        actions: `(steps, seats, ...)` on the CPU.
        checksum: SHA-256 over what every step gave; see `recorder.StepDigest`.
        config: The world's settings, without those that name a file.
        files: For every setting that names a file, the SHA-256 of its content.
        players: Who sat in each seat, for people.
    """

    world: str
    world_version: int
    seed: int
    game: int
    episode: int
    actions: Tensor
    checksum: str
    config: Mapping[str, JSON] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    players: tuple[str, ...] = ()

    @property
    def world_id(self) -> str:
        """Versioned name of the world, such as `brawl-v1`."""
        return f"{self.world}-v{self.world_version}"

    @property
    def steps(self) -> int:
        """Number of recorded steps."""
        return self.actions.shape[0]

    def save(self, path: Path | str) -> None:
        """Writes the file in one piece: after any fault there is the old one or the new one.

        Raises:
            ReplayError: It is too long, or the disk does not take it.
        """
        target = Path(path)
        try:
            write_atomic(target, self._encode())
        except FormatError as error:
            raise ReplayError(f"replay {target} cannot be written: {error}") from error
        except OSError as error:
            raise ReplayError(f"replay {target} cannot be written: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Reads a file.

        Raises:
            ReplayError: It is missing, damaged, foreign, of another version or too large.
        """
        source = Path(path)
        try:
            with open_untrusted(source) as reader:
                reader.check_limit(MAX_FILE_BYTES)
                raw = reader.read(reader.size)
            return cls._decode(raw)
        except FormatError as error:
            raise ReplayError(f"replay {source} cannot be used: {error}") from error

    def _encode(self) -> bytes:
        actions = self.actions.contiguous()
        names = {dtype: name for name, dtype in _DTYPES.items()}
        if actions.dtype not in names:
            raise FormatError(f"actions of type {actions.dtype}; valid: {', '.join(_DTYPES)}")
        if actions.nbytes > MAX_ACTION_BYTES:
            raise FormatError(f"{actions.nbytes} bytes of actions; at most {MAX_ACTION_BYTES} are allowed")
        header: dict[str, JSON] = {
            "format_version": FORMAT_VERSION,
            "world": self.world,
            "world_version": self.world_version,
            "config": dict(self.config),
            "files": dict(self.files),
            "seed": self.seed,
            "game": self.game,
            "episode": self.episode,
            "players": list(self.players),
            "shape": list(actions.shape),
            "dtype": names[actions.dtype],
            "checksum": self.checksum,
        }
        _checked(header)
        document = encode_document(header, _HEADER_LIMITS)
        body = MAGIC + _LENGTH.pack(len(document)) + document + zlib.compress(actions.numpy().tobytes(), 9)
        return body + hashlib.sha256(body).digest()

    @classmethod
    def _decode(cls, raw: bytes) -> Self:
        start = len(MAGIC) + _LENGTH.size
        if not raw.startswith(MAGIC):
            raise FormatError("it is not a replay of Ludus")
        body, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
        if len(raw) < start + _DIGEST_BYTES or hashlib.sha256(body).digest() != digest:
            raise FormatError("it is damaged: its content does not match its SHA-256")
        (length,) = _LENGTH.unpack(body[len(MAGIC) : start])
        if length > len(body) - start:
            raise FormatError(f"a header of {length} bytes does not fit into {len(raw)} bytes")
        header = _checked(decode_document(body[start : start + length], _HEADER_LIMITS))
        return cls(
            world=header.world,
            world_version=header.world_version,
            seed=header.seed,
            game=header.game,
            episode=header.episode,
            actions=_inflate(body[start + length :], header),
            checksum=header.checksum,
            config=header.config,  # type: ignore[arg-type]  # strict JSON, checked by decode_document
            files=header.files,
            players=tuple(header.players),
        )


def _checked(document: JSON) -> _Header:
    version = document.get("format_version") if isinstance(document, dict) else None
    if version != FORMAT_VERSION:
        raise FormatError(f"its format version is {brief(version)}; this Ludus reads version {FORMAT_VERSION}")
    try:
        return _Header.model_validate(document)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}, got {brief(fault['input'])}"
            for fault in error.errors()[:5]
        )
        raise FormatError(f"its header is wrong: {faults}") from None


def _inflate(packed: bytes, header: _Header) -> Tensor:
    """Unpacks the actions into exactly the memory that the header announces, which is bounded first."""
    dtype = _DTYPES[header.dtype]
    expected = math.prod(header.shape) * dtype.itemsize
    if expected > MAX_ACTION_BYTES:
        raise FormatError(f"{expected} bytes of actions; at most {MAX_ACTION_BYTES} are allowed")
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, expected + 1)
    except zlib.error as error:
        raise FormatError(f"its actions cannot be unpacked: {error}") from None
    if len(raw) != expected or not stream.eof or stream.unused_data:
        raise FormatError(f"its actions do not have the {expected} bytes that the header announces")
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(header.shape)
