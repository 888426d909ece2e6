"""Replays: small files from which any recorded game of any world can be played again, bit for bit."""

import hashlib
import math
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, cast

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from ludus.config.nodes import KeyPath
from ludus.core.errors import ConfigError, FormatError, ReplayDivergedError, ReplayError, UnsupportedError, brief
from ludus.core.files import JSON, sha256_file, write_atomic
from ludus.envs.base import BatchedEnv, StepResult, action_dtypes
from ludus.envs.registry import check_name_from_file, is_registered, make_env
from ludus.envs.spaces import action_bounds
from ludus.envs.stored import StoredSettings, outside_names
from ludus.envs.world import registered_envs
from ludus.store.documents import Limits, decode_document, encode_document, open_untrusted

MAGIC = b"LUDUSRPL"
FORMAT_VERSION = 1
MAX_FILE_BYTES = 32 << 20
MAX_ACTION_BYTES = 64 << 20
MAX_STEPS = 100_000  # 55 minutes of Brawl; a game of one world or another plays 100 to 10,000 per second
MAX_EPISODE = 1_000  # a replay begins by resetting this often, at up to 9 ms each
_HEADER_LIMITS = Limits(document_bytes=64 << 10, document_values=2_000, document_depth=8)
_DIGEST_BYTES = 32
_LENGTH = struct.Struct("<I")
_DTYPES = {"int8": torch.int8, "int32": torch.int32, "int64": torch.int64, "float32": torch.float32}

_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# A registered world, an environment of Gymnasium's registry, or a module of PettingZoo.
_WORLD = r"^([a-z][a-z0-9_-]{0,63}|gym:([A-Za-z0-9_-]{1,40}/)?[A-Za-z0-9_.-]{1,80}|pettingzoo:[A-Za-z0-9_.-]{1,100})$"
_Label = Annotated[str, Field(max_length=80, pattern=r"^[\x20-\x7e]*$")]  # plain text: it ends up on a terminal


class _Header(BaseModel):
    """What stands in front of the actions; every field is checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format_version: Literal[1]
    world: Annotated[str, Field(pattern=_WORLD)]
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
    """One recorded game."""

    world: str  # name of the world without version
    world_version: int  # its version; another version would play another game
    seed: int  # seed of the environment
    game: int  # index of the game in its batch, counted from the environment's first game 0
    episode: int  # how many games were played there before this one, since the seed was set
    actions: Tensor  # `(steps, seats, ...)` on the CPU
    checksum: str  # SHA-256 over what every step gave; see `recorder.StepDigest`
    # The world's settings, without those that name a file.
    config: Mapping[str, JSON] = field(default_factory=lambda: MappingProxyType({}))
    # For every setting that names a file, the SHA-256 of its content.
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    players: tuple[str, ...] = ()  # who sat in each seat, for people

    @property
    def world_id(self) -> str:
        """Versioned name of the world, such as `brawl-v1`."""
        return f"{self.world}-v{self.world_version}"

    @property
    def steps(self) -> int:
        """Number of recorded steps."""
        return self.actions.shape[0]

    def save(self, path: Path | str) -> None:
        """Write the file in one piece, old or new after any fault; raise ReplayError if too long, or StoreError."""
        target = Path(path)
        try:
            write_atomic(target, self._encode())
        except FormatError as error:
            raise ReplayError(f"replay {target} cannot be written: {error}") from error

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a file; raise ReplayError if it is missing, damaged, foreign, of another version or too large."""
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
        _check_size(tuple(actions.shape), actions.dtype)
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


def _check_size(shape: Sequence[int], dtype: torch.dtype) -> int:
    """Return the bytes of actions of a shape; raise FormatError if they are too many bytes or steps."""
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_ACTION_BYTES:
        raise FormatError(f"{size} bytes of actions; at most {MAX_ACTION_BYTES} are allowed")
    if shape[0] > MAX_STEPS:
        raise FormatError(f"{shape[0]} steps; at most {MAX_STEPS} are allowed")
    return size


def _inflate(packed: bytes, header: _Header) -> Tensor:
    """Unpack the actions into exactly the memory that the header announces, which is bounded first."""
    dtype = _DTYPES[header.dtype]
    expected = _check_size(header.shape, dtype)
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, expected + 1)
    except zlib.error as error:
        raise FormatError(f"its actions cannot be unpacked: {error}") from None
    if len(raw) != expected or not stream.eof or stream.unused_data:
        raise FormatError(f"its actions do not have the {expected} bytes that the header announces")
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(header.shape)


class StepDigest:
    """A running SHA-256 over the steps of one game: observations, events, state metrics and whether it ended.

    It is made of the contract alone, so it works for every world, also where no snapshot can be taken.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, result: StepResult, game: int) -> bool:
        """Add one step of one game and return whether the game ended in it."""
        ended = bool(result.ended[game])
        observations = result.final_observations if ended else result.observations
        for name in sorted(observations):
            self._add_tensor(observations[name][game])
        numbers = [rows[name][game] for rows in (result.events, result.state_metrics) for name in sorted(rows)]
        if numbers:
            self._add_tensor(torch.stack(numbers))
        self._digest.update(b"\1" if ended else b"\0")
        return ended

    def hexdigest(self) -> str:
        """Return the digest of all steps so far."""
        return self._digest.hexdigest()

    def _add_tensor(self, tensor: Tensor) -> None:
        if tensor.dtype.is_floating_point:
            tensor = tensor + 0.0  # devices may disagree about the sign of zero
        self._digest.update(tensor.contiguous().cpu().numpy().tobytes())


class ReplayRecorder:
    """Records one game of a batch, from its first step to its end or to any moment before.

    Give it every step: `recorder.record(actions, env.step(actions))`. Steps after the end of the game are ignored.
    """

    def __init__(
        self,
        env: BatchedEnv,
        game: int = 0,
        *,
        episode: int = 0,
        players: Sequence[str] = (),
    ) -> None:
        """Begin a recording; the game must be at its first frame.

        Args:
            env: The environment, just reset.
            game: Place of the game in the batch.
            episode: Number of resets and restarts of this game since the seed was set: 0 after `reset(seed=...)`.
            players: Who sits in each seat, for people.
        """
        if not 0 <= game < env.num_envs:
            raise ConfigError(f"game {game} does not exist; valid: 0 to {env.num_envs - 1}")
        if not is_registered(env.spec.id):
            raise UnsupportedError(f"{env.spec.id} is not registered, so a replay of it could not be played again")
        self.ended = False
        self._env, self._game, self._episode = env, game, episode
        self._players = tuple(players)
        self._config, self._files = recorded_settings(env)
        self._seed = env.seed
        self._dtype = action_dtypes(env.spec.action_space)[0]
        self._actions: list[Tensor] = []
        self._digest = StepDigest()

    def record(self, actions: Tensor, result: StepResult) -> None:
        """Add a step: the actions `(games, seats, ...)` that the environment was given, and what it gave."""
        if self.ended:
            return
        self._actions.append(actions[self._game].to("cpu", self._dtype, copy=True))
        self.ended = self._digest.add(result, self._game)

    def replay(self) -> Replay:
        """Return what was recorded so far; raise ReplayError if nothing was."""
        if not self._actions:
            raise ReplayError("nothing was recorded; step the environment first")
        spec = self._env.spec
        return Replay(
            world=spec.name,
            world_version=spec.version,
            seed=self._seed,
            game=self._env.first_game + self._game,
            episode=self._episode,
            actions=torch.stack(self._actions),
            checksum=self._digest.hexdigest(),
            config=self._config,
            files=self._files,
            players=self._players,
        )


def recorded_settings(env: BatchedEnv) -> tuple[dict[str, JSON], dict[str, str]]:
    """Return the settings of an environment as a replay holds them, and the SHA-256 of every file that they name.

    Of a file, its SHA-256 is what travels, never its path: its key is that of the setting, such as `motions.0`.
    """
    settings = getattr(env, "config", None)
    config = settings.model_dump(exclude_defaults=True) if isinstance(settings, BaseModel) else {}
    named = (each for each in outside_names(env.spec.id, config) if Path(each.value).is_file())
    files = {each.path: sha256_file(Path(each.value)) for each in named}
    plain = cast("dict[str, JSON]", _without(config, files, ()))
    return plain, {".".join(map(str, path)): digest for path, digest in files.items()}


def _without(value: Any, files: Collection[KeyPath], path: KeyPath) -> JSON:  # noqa: ANN401 - settings
    """Return settings as JSON without the files that they name; a list keeps the places of these."""
    if isinstance(value, Mapping):
        inner = {name: (*path, name) for name in value}
        return {name: _without(value[name], files, place) for name, place in inner.items() if place not in files}
    if isinstance(value, list | tuple):
        places = [(*path, index) for index in range(len(value))]
        return [None if at in files else _without(each, files, at) for each, at in zip(value, places, strict=True)]
    return str(value) if isinstance(value, Path) else cast("JSON", value)


def replay_env(replay: Replay, files: Mapping[str, Path] | None = None) -> BatchedEnv:
    """Make a batch of one game that stands at the first frame of a recorded one.

    `files` says where the files are that settings name (`replay.files`). Raise ReplayError if the world is unknown or
    of another version, a file is missing or another one, or the actions are none of that world.
    """
    _check_world(replay)
    found = _found_files(replay, files or {})
    try:
        config = StoredSettings(replay.config, "the replay").checked(replay.world_id)
        for name, file in found.items():
            config = _with_file(config, name.split("."), file)
        env = make_env(replay.world_id, seed=replay.seed, first_game=replay.game, config=config)
    except ValueError as error:  # what its settings say is wrong here
        raise ReplayError(f"the settings in the replay do not fit {replay.world_id}: {error}") from error
    try:
        _check_actions(replay, env)
        env.reset(seed=replay.seed)
        for _ in range(replay.episode):
            env.reset()
    except BaseException:
        env.close()
        raise
    return env


def resimulate(replay: Replay, env: BatchedEnv) -> Iterator[StepResult]:
    """Play a recorded game and yield every step; raise ReplayDivergedError if it goes another way or ends too early."""
    digest = StepDigest()
    for step, actions in enumerate(replay.actions, start=1):
        result = env.step(actions.unsqueeze(0))
        if digest.add(result, 0) and step < replay.steps:
            raise ReplayDivergedError(
                f"the replayed game of {replay.world_id} ended at step {step}; {replay.steps} steps were recorded"
            )
        yield result
    if digest.hexdigest() != replay.checksum:
        raise ReplayDivergedError(
            f"the replayed game of {replay.world_id} went another way than the recorded one within its "
            f"{replay.steps} steps; it was recorded by other code or with other settings, or its episodes do not "
            "depend on their seeds alone, which ludus.check_env finds out"
        )


def verify_replay(
    replay: Replay, files: Mapping[str, Path] | None = None, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Play a recorded game again, telling `progress` the steps; raise ReplayDivergedError if it goes another way."""
    with replay_env(replay, files) as env:
        for step, _ in enumerate(resimulate(replay, env), 1):
            progress(step)


def _check_world(replay: Replay) -> None:
    try:
        check_name_from_file(replay.world_id, "the replay's world")
    except ConfigError as error:
        raise ReplayError(str(error)) from error
    if is_registered(replay.world_id):
        return
    known = registered_envs()
    here = [name for name in known if name.rpartition("-v")[0] == replay.world]
    if here:
        raise ReplayError(f"the replay is of {replay.world_id}; this Ludus plays {', '.join(here)}")
    raise ReplayError(
        f"the replay is of the unknown world {replay.world_id!r}; valid: {', '.join(known)}; for a game of your own "
        "pass --plugin FILE"
    )


def _with_file(settings: Any, path: Sequence[str], file: Path) -> Any:  # noqa: ANN401 - any part of settings
    """Return settings that name a file at a path, where the replay left it out."""
    if not path:
        return file
    key, *rest = path
    if isinstance(settings, list) and key.isdecimal() and int(key) < len(settings):
        return [_with_file(each, rest, file) if place == int(key) else each for place, each in enumerate(settings)]
    if isinstance(settings, dict):
        return {**settings, key: _with_file(settings.get(key, {}), rest, file)}
    raise ReplayError(f"the replay's files name no place in its settings: {brief(key)}")


def _found_files(replay: Replay, files: Mapping[str, Path]) -> dict[str, Path]:
    for name in files:
        if name not in replay.files:
            raise ReplayError(f"the replay uses no file {name!r}; it uses: {', '.join(replay.files) or 'none'}")
    for name, digest in replay.files.items():
        if name not in files:
            raise ReplayError(f"the replay was recorded with a {name} of the user's own; say where it is")
        try:
            found = sha256_file(files[name])
        except OSError as error:
            raise ReplayError(f"{name} {files[name]} cannot be read: {error.strerror}") from error
        if found != digest:
            raise ReplayError(f"{files[name]} is not the {name} that the replay was recorded with (SHA-256 {digest})")
    return dict(files)


def _check_actions(replay: Replay, env: BatchedEnv) -> None:
    space, actions = env.spec.action_space, replay.actions
    expected = (env.spec.seats, *(space.shape or ()))
    if tuple(actions.shape[1:]) != expected or actions.dtype != action_dtypes(space)[0]:
        raise ReplayError(
            f"the replay's actions are {tuple(actions.shape[1:])} {actions.dtype}; "
            f"{replay.world_id} takes {expected} {action_dtypes(space)[0]}"
        )
    low, high = action_bounds(space)
    if not bool(((actions >= low) & (actions <= high)).all()):
        raise ReplayError(f"the replay holds actions that {replay.world_id} does not have; its action space is {space}")
