"""Tests of replays: a recorded game plays again bit for bit, and a stranger's file can be wrong, never dangerous."""

import hashlib
import json
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, ReplayDivergedError, ReplayError, StoreError, UnsupportedError
from ludus.envs import BatchedEnv, make_env
from ludus.envs.replay import (
    MAGIC,
    MAX_ACTION_BYTES,
    MAX_FILE_BYTES,
    MAX_STEPS,
    Replay,
    ReplayRecorder,
    replay_env,
    resimulate,
    verify_replay,
)
from ludus.worlds.brawl.moves import DEFAULT_TABLE


def recorded(env: BatchedEnv, game: int, steps: int, *, episode: int = 0) -> ReplayRecorder:
    """Records up to `steps` steps of random play."""
    recorder = ReplayRecorder(env, game, episode=episode, players=("left", "right"))
    drawn = torch.Generator().manual_seed(5)
    for _ in range(steps):
        actions = (torch.rand((env.num_envs, 2, 10), generator=drawn) < 0.3).to(torch.int8)
        recorder.record(actions, env.step(actions))
    return recorder


@pytest.fixture(scope="module")
def replay() -> Replay:
    """90 frames of game 5 of 8: the first is number 40, so it is number 45."""
    with make_env("brawl", 8, seed=11, first_game=40) as env:
        return recorded(env, 5, 90).replay()


@pytest.fixture
def saved(replay: Replay, tmp_path: Path) -> Path:
    replay.save(tmp_path / "match.replay")
    return tmp_path / "match.replay"


def test_what_is_saved_comes_back_equal_and_small(replay: Replay, saved: Path) -> None:
    loaded = Replay.load(saved)
    assert torch.equal(loaded.actions, replay.actions)
    assert loaded.actions.dtype == torch.int8
    assert replace(loaded, actions=replay.actions) == replay
    assert (loaded.world_id, loaded.seed, loaded.game, loaded.episode) == ("brawl-v1", 11, 45, 0)
    assert loaded.players == ("left", "right")
    assert loaded.steps == 90
    assert saved.stat().st_size < 1500  # 1800 keys and the header


def test_a_game_of_a_batch_plays_again_alone(replay: Replay) -> None:
    with make_env("brawl", 8, seed=11, first_game=40) as batch:
        recorded(batch, 5, 90)
        expected = batch.view(5)  # type: ignore[attr-defined]
    with replay_env(replay) as env:
        assert env.num_envs == 1
        assert sum(1 for _ in resimulate(replay, env)) == 90
        assert env.view(0) == expected  # type: ignore[attr-defined]


def test_a_later_episode_plays_again_to_its_end(tmp_path: Path) -> None:
    settings = {"step_limit": 40, "stocks": 2, "fixed_weapons": ("spear", "hammer")}
    with make_env("brawl", 2, seed=3, config=settings) as env:
        drawn = torch.Generator().manual_seed(1)
        for _ in range(80):  # two episodes of 40 frames
            env.step((torch.rand((2, 2, 10), generator=drawn) < 0.3).to(torch.int8))
        recorder = recorded(env, 1, 60, episode=2)
    assert recorder.ended
    recorder.replay().save(tmp_path / "third.replay")
    third = Replay.load(tmp_path / "third.replay")
    assert third.steps == 40  # the rest belongs to the next episode
    assert third.config == {"step_limit": 40, "stocks": 2, "fixed_weapons": ["spear", "hammer"]}
    with replay_env(third) as env:
        results = [bool(result.ended[0]) for result in resimulate(third, env)]
    assert results == [False] * 39 + [True]
    with pytest.raises(ReplayDivergedError, match="another way"):
        verify_replay(replace(third, episode=1))


def test_other_worlds_can_be_recorded_too() -> None:
    with make_env("rps", 3, seed=9) as env:
        env.reset(seed=9)
        recorder = ReplayRecorder(env, 2)
        for step in range(4):
            actions = torch.full((3, 1), step % 3, dtype=torch.int64)
            recorder.record(actions, env.step(actions))
    verify_replay(recorder.replay())


@pytest.mark.cuda
def test_a_game_recorded_on_a_gpu_plays_again_on_a_cpu() -> None:
    with make_env("brawl", 300, "cuda", seed=21) as env:
        recorder = ReplayRecorder(env, 250)
        bots = env.bots(["aggressive", "switcher"])
        seats = torch.tensor([0, 1], dtype=torch.int32, device=env.device).expand(300, 2).contiguous()
        actions = torch.zeros((300, 2, 10), dtype=torch.int8, device=env.device)
        for _ in range(600):
            bots.act(seats, actions)
            recorder.record(actions, env.step(actions))
    verify_replay(recorder.replay())


@pytest.mark.parametrize("change", ["a key", "the seed", "the game", "the settings"])
def test_a_changed_replay_diverges(replay: Replay, change: str) -> None:
    actions = replay.actions.clone()
    actions[80, 1, 3] ^= 1
    changed = {
        "a key": replace(replay, actions=actions),
        "the seed": replace(replay, seed=12),
        "the game": replace(replay, game=46),
        "the settings": replace(replay, config={"stocks": 4}),
    }[change]
    with pytest.raises(ReplayDivergedError, match="brawl-v1"):
        verify_replay(changed)


def test_a_game_that_ends_before_its_recording_diverges(replay: Replay) -> None:
    with pytest.raises(ReplayDivergedError, match=r"step 30.*90 steps"):
        verify_replay(replace(replay, config={"step_limit": 30}))


def test_a_move_table_of_ones_own_travels_as_a_digest(tmp_path: Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(DEFAULT_TABLE.read_text().replace("jab flurry", "jabs"))
    with make_env("brawl", config={"move_table": table}) as env:
        replay = recorded(env, 0, 5).replay()
    assert replay.config == {}
    assert replay.files == {"move_table": hashlib.sha256(table.read_bytes()).hexdigest()}
    verify_replay(replay, {"move_table": table})
    with pytest.raises(ReplayError, match="move_table"):
        verify_replay(replay)
    with pytest.raises(ReplayError, match="move_table"):
        verify_replay(replay, {"move_table": DEFAULT_TABLE})
    with pytest.raises(ReplayError, match="cannot be read"):
        verify_replay(replay, {"move_table": tmp_path / "gone.yaml"})
    with pytest.raises(ReplayError, match="device"):
        verify_replay(replay, {"move_table": Path(os.devnull)})
    with pytest.raises(ReplayError, match="'bots'"):
        verify_replay(replay, {"move_table": table, "bots": table})


def test_a_recorder_says_what_it_cannot_do(make_arena: Callable[[int], BatchedEnv]) -> None:
    with make_env("brawl", 2) as env:
        with pytest.raises(ConfigError, match=r"game 2.*0 to 1"):
            ReplayRecorder(env, 2)
        with pytest.raises(ReplayError, match="nothing was recorded"):
            ReplayRecorder(env, 0).replay()
    with pytest.raises(UnsupportedError, match="arena-v1"):
        ReplayRecorder(make_arena(1))


def test_a_missing_folder_is_made_and_one_that_cannot_be_made_is_a_typed_error(replay: Replay, tmp_path: Path) -> None:
    replay.save(tmp_path / "missing" / "match.replay")
    assert Replay.load(tmp_path / "missing" / "match.replay").checksum == replay.checksum
    file = tmp_path / "missing" / "match.replay" / "match.replay"
    with pytest.raises(StoreError, match=r"match\.replay/match\.replay .*File exists"):
        replay.save(file)


def test_a_game_that_is_too_long_for_a_replay_is_refused(replay: Replay, tmp_path: Path) -> None:
    long = replace(replay, actions=torch.zeros((MAX_STEPS + 1, 2, 10), dtype=torch.int8))
    with pytest.raises(ReplayError, match=rf"{MAX_STEPS + 1} steps.*{MAX_STEPS}"):
        long.save(tmp_path / "long.replay")


def sealed(header: Any, packed: bytes, magic: bytes = MAGIC, length: int | None = None) -> bytes:
    """A file whose SHA-256 is right, whatever else is wrong, as an attacker would write it."""
    document = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = magic + struct.pack("<I", len(document) if length is None else length) + document + packed
    return body + hashlib.sha256(body).digest()


def header(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "format_version": 1,
        "world": "brawl",
        "world_version": 1,
        "config": {},
        "files": {},
        "seed": 0,
        "game": 0,
        "episode": 0,
        "players": [],
        "shape": [2, 2, 10],
        "dtype": "int8",
        "checksum": "0" * 64,
    }
    return {**plain, **changes}


ACTIONS = zlib.compress(bytes(40))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "not a replay"),
        (b"GIF89a" + bytes(100), "not a replay"),
        (MAGIC, "damaged"),
        (sealed(header(), ACTIONS)[:-1], "damaged"),
        (sealed(header(), ACTIONS).replace(b'"seed": 0', b'"seed": 1'), "damaged"),
        (sealed(header(), ACTIONS, length=2**32 - 1), "does not fit"),
        (sealed(b"{", ACTIONS), "not valid JSON"),
        (sealed(b"[" * 60_000, ACTIONS), "more than 2000 values"),
        (sealed(b"[" * 1_500, ACTIONS), "JSON"),
        (sealed(b" " * 100_000, ACTIONS), "100000 bytes of JSON"),
        (sealed([1, 2], ACTIONS), "format version is None"),
        (sealed(header(format_version=2), ACTIONS), "format version is 2; this Ludus reads version 1"),
        (sealed(header(world="gym:os:os-v1"), ACTIONS), "world: String should match"),
        (sealed(header(world="gym:../os-v1"), ACTIONS), "world: String should match"),
        (sealed(header(seed="0"), ACTIONS), "seed: Input should be a valid integer"),
        (sealed(header(seed=-1), ACTIONS), "seed"),
        (sealed(header(seed=2**63), ACTIONS), "seed"),
        (sealed(header(episode=10**9), ACTIONS), "episode: Input should be less than or equal to 1000"),
        (sealed(header(shape=[MAX_STEPS + 1, 2, 10]), ACTIONS), f"{MAX_STEPS + 1} steps; at most {MAX_STEPS}"),
        (sealed(header(players=["\x1b[2J"]), ACTIONS), "players.0"),
        (sealed(header(extra=1), ACTIONS), "extra: Extra inputs"),
        (sealed(header(dtype="object"), ACTIONS), "dtype"),
        (sealed(header(shape=[2, 2, 0]), ACTIONS), "shape"),
        (sealed(header(shape=[MAX_ACTION_BYTES] * 6), ACTIONS), "bytes of actions; at most"),
        (sealed(header(shape=[3, 2, 10]), ACTIONS), "do not have the 60 bytes"),
        (sealed(header(shape=[1, 2, 10]), ACTIONS), "do not have the 20 bytes"),
        (sealed(header(), ACTIONS + b"more"), "do not have the 40 bytes"),
        (sealed(header(), b"no zlib"), "cannot be unpacked"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "hostile.replay"
    path.write_bytes(content)
    with pytest.raises(ReplayError, match=fault):
        Replay.load(path)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.replay"
    path.write_bytes(sealed(header(), zlib.compress(bytes(1 << 28), 9)))  # 260 kB that become 256 MB
    with pytest.raises(ReplayError, match="do not have the 40 bytes"):
        Replay.load(path)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"world": "chess"}, "unknown world 'chess-v1'; valid: brawl-v1"),
        ({"world": "gym:os"}, "unknown world 'gym:os-v1'"),
        ({"world": "pettingzoo:this"}, "imports the module 'this_v1', which no file may ask for"),
        ({"world_version": 99}, "the replay is of brawl-v99; this Ludus plays brawl-v1"),
        ({"config": {"stonks": 3}}, "(?s)do not fit brawl-v1.*stonks"),
        ({"config": {"stocks": 10**6}}, "do not fit brawl-v1"),
        ({"config": {"move_table": "moves"}}, "move_table names a move table, 'moves'"),
        ({"config": {"fixed_weapons": ["../spear", "spear"]}}, "fixed_weapons.*names a file or module, '../spear'"),
        ({"shape": [1, 2, 20]}, "actions are .2, 20. torch.int8; brawl-v1 takes .2, 10. torch.int8"),
        ({"shape": [1, 2, 10], "dtype": "int32"}, "torch.int32; brawl-v1 takes"),
    ],
)
def test_replays_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    path = tmp_path / "foreign.replay"
    size = math.prod(header(**changes)["shape"]) * (4 if "dtype" in changes else 1)
    path.write_bytes(sealed(header(**changes), zlib.compress(bytes(size))))
    with pytest.raises(ReplayError, match=fault):
        replay_env(Replay.load(path))


def test_actions_outside_the_space_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.replay"
    path.write_bytes(sealed(header(), zlib.compress(bytes([7] * 40))))
    with pytest.raises(ReplayError, match=r"actions.*brawl-v1"):
        replay_env(Replay.load(path))
    choice = struct.pack("<2q", 2, 3)  # the game has 0, 1 and 2
    path.write_bytes(sealed(header(world="rps", shape=[2, 1], dtype="int64"), zlib.compress(choice)))
    with pytest.raises(ReplayError, match=r"actions.*rps-v1"):
        replay_env(Replay.load(path))


def test_what_is_no_plain_file_is_refused(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(ReplayError, match="is missing"):
        Replay.load(tmp_path / "gone.replay")
    with pytest.raises(ReplayError, match="regular file"):
        Replay.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ReplayError, match="regular file"):
        Replay.load(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ReplayError, match="at most"):
        Replay.load(tmp_path / "large")
    assert Replay.load(saved).steps == 90


class Walk(gym.Env[Any, Any]):
    """A random walk, of the episode's seed alone or of all that were played before."""

    observation_space = gym.spaces.Box(-100.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    chance = np.random.default_rng(0)

    def __init__(self, by_seed: bool = True) -> None:
        self.by_seed = by_seed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = np.zeros(1, np.float32)
        return self.place.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        drawn = self.np_random if self.by_seed else self.chance
        self.place += np.float32(drawn.normal() + action)
        return self.place.copy(), 0.0, False, False, {}


@pytest.fixture
def walk() -> Iterator[str]:
    """A world of the test's own in Gymnasium's registry."""
    gym.register("ReplayedWalk-v3", lambda **kwargs: Walk(**kwargs))
    yield "gym:ReplayedWalk-v3"
    del gym.registry["ReplayedWalk-v3"]


def recorded_alone(env: BatchedEnv, steps: int, episode: int = 0) -> Replay:
    """Records the last game of a batch, played by random actions."""
    recorder = ReplayRecorder(env, env.num_envs - 1, episode=episode)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        chances = torch.rand((env.num_envs, env.spec.seats, *(env.spec.action_space.shape or ())), generator=generator)
        actions = chances if isinstance(env.spec.action_space, gym.spaces.Box) else (2 * chances).long()
        recorder.record(actions, env.step(actions))
    return recorder.replay()


@pytest.mark.parametrize(
    "world", ["gym:CartPole-v1", "gym:Pendulum-v1", "gym:ReplayedWalk-v3", "pettingzoo:mpe.simple_adversary_v3"]
)
@pytest.mark.usefixtures("walk")
def test_games_of_other_libraries_play_again_by_their_seeds(world: str, tmp_path: Path) -> None:
    if world.startswith("pettingzoo"):
        pytest.importorskip("mpe2.simple_adversary_v3")
    with make_env(world, 2, seed=5, config={"workers": 0}) as env:
        env.reset(seed=6)
        env.reset()
        recorded_alone(env, 5, episode=1).save(tmp_path / "a.replay")
    loaded = Replay.load(tmp_path / "a.replay")
    assert (loaded.world_id, loaded.game) == (env.spec.id, 1)
    verify_replay(loaded)
    with pytest.raises(ReplayDivergedError, match="do not depend on their seeds alone"):
        verify_replay(replace(loaded, checksum="0" * 64))


def test_a_game_that_does_not_go_by_its_seed_is_told(walk: str) -> None:
    with make_env(walk, config={"env_kwargs": {"by_seed": False}}) as env:
        env.reset()
        replay = recorded_alone(env, 4)
    with pytest.raises(ReplayDivergedError, match=r"gym:ReplayedWalk-v3.*seeds alone, which ludus\.check_env"):
        verify_replay(replay)
