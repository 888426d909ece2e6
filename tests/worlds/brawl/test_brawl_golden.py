"""Golden replays: 300 frames of every pairing of bots, stored as keys and checksums.

The stored keys alone must give the stored states (the rules have not changed), and the bots must press the stored keys
(the bots have not changed). Floats take part as bits: kernels use +, -, * and / alone, which every CPU rounds alike.

Whoever changes rules, moves or bots on purpose writes the file anew, looks at the difference, and raises the version of
the world if a match of the same keys went another way:

    LUDUS_REGENERATE_GOLDEN=1 pytest tests/worlds/brawl/test_brawl_golden.py
"""

import base64
import json
import os
import zlib
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ludus.envs.registry import make_env
from ludus.worlds.brawl.bots import BOT_NAMES
from ludus.worlds.brawl.env import BrawlEnv

FILE = Path(__file__).with_name("golden") / "pairings.json"
PAIRINGS = tuple(combinations_with_replacement(BOT_NAMES, 2))
SEED, FRAMES, MARK = 20_250, 300, 50  # a checksum every 50 frames
REGENERATE = os.environ.get("LUDUS_REGENERATE_GOLDEN") == "1"

Keys = Callable[[int], Tensor]  # actions (pairings, 2, 10) of a frame
Player = Callable[[BrawlEnv], Keys]
Record = dict[str, Any]


def bots(env: BrawlEnv) -> Keys:
    """Lets the bots decide; every pairing is one game of a batch."""
    assignment = torch.tensor([[BOT_NAMES.index(name) for name in pair] for pair in PAIRINGS], dtype=torch.int32)
    roster = env.bots(BOT_NAMES)

    def keys(_: int) -> Tensor:
        actions = torch.zeros((env.num_envs, 2, 10), dtype=torch.int8)
        roster.act(assignment, actions)
        return actions

    return keys


def stored(text: str) -> Keys:
    """Gives the keys of a file: base64 of zlib of uint16 `(frames, pairings, seats)`, bit k is key k."""
    masks = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2").reshape(FRAMES, len(PAIRINGS), 2)
    bits = torch.tensor((masks[..., None] >> np.arange(10) & 1).astype(np.int8))
    return lambda frame: bits[frame]


def checksum(env: BrawlEnv, game: int) -> str:
    """Returns a checksum of everything that the future of one game depends on."""
    parts = (env.players[game], env.matches[game], env.items[game])
    return f"{zlib.crc32(b''.join(part.numpy().tobytes() for part in parts)):08x}"


def play(player: Player) -> Iterator[tuple[int, BrawlEnv, Tensor, dict[str, Tensor]]]:
    """Plays all pairings; yields the frame, the environment, the keys and the events so far."""
    with make_env("brawl", len(PAIRINGS), seed=SEED, config={"threads": 1}) as env:
        assert isinstance(env, BrawlEnv)
        env.reset()
        keys = player(env)
        totals = {name: torch.zeros(len(PAIRINGS), 2) for name in env.spec.events}
        for frame in range(FRAMES):
            pressed = keys(frame)
            result = env.step(pressed)
            for name, total in totals.items():
                total += result.events[name]
            yield frame + 1, env, pressed, totals


def record(player: Player) -> tuple[dict[str, Record], str]:
    """Returns what is stored of each pairing, and the keys of all of them."""
    rows: dict[str, Record] = {f"{first} - {second}": {"checksums": []} for first, second in PAIRINGS}
    masks = np.zeros((FRAMES, len(PAIRINGS), 2), "<u2")
    for frame, env, pressed, totals in play(player):
        masks[frame - 1] = (pressed.numpy().astype(np.uint16) << np.arange(10)).sum(-1)
        if frame % MARK == 0:
            for game, row in enumerate(rows.values()):
                row["checksums"].append(checksum(env, game))
        if frame == FRAMES:
            for game, row in enumerate(rows.values()):
                view = env.view(game)
                row["places"] = [[round(p.x, 3), round(p.y, 3)] for p in view.players]
                row["states"] = [p.state.name.lower() for p in view.players]
                row["damage"] = [round(p.damage, 3) for p in view.players]
                row["hits"] = [int(count) for count in totals["hits"][game].tolist()]
                row["stocks"] = [p.stocks for p in view.players]
    return rows, base64.b64encode(zlib.compress(masks.tobytes(), 9)).decode()


def write_file() -> None:
    rows, keys = record(bots)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    head = f'"world": "brawl-v1", "seed": {SEED}, "frames": {FRAMES}, "bots": {json.dumps(BOT_NAMES)}'
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(f'{{{head},\n"pairings": {{\n{lines}\n}},\n"keys": "{keys}"}}\n')


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    """The stored replays; written anew first if that was asked for."""
    if REGENERATE:
        write_file()
    loaded: dict[str, Any] = json.loads(FILE.read_text())
    return loaded


def assert_as_stored(rows: dict[str, Record], golden: dict[str, Any]) -> None:
    """Fails with the names of the pairings that went another way, and when."""
    changed = []
    for name, row in rows.items():
        then = golden["pairings"][name]
        if row != then:
            marks = zip(row["checksums"], then["checksums"], strict=True)
            same = next((index for index, (new, old) in enumerate(marks) if new != old), None)
            when = "only in the summary" if same is None else f"between frames {same * MARK} and {(same + 1) * MARK}"
            changed.append(f"{name}: {when}; now {row}, stored {then}")
    assert not changed, f"{len(changed)} of {len(rows)} pairings changed:\n" + "\n".join(changed[:5])


def test_the_file_has_every_pairing(golden: dict[str, Any]) -> None:
    assert golden["bots"] == list(BOT_NAMES)
    assert list(golden["pairings"]) == [f"{first} - {second}" for first, second in PAIRINGS]
    assert (golden["world"], golden["seed"], golden["frames"]) == ("brawl-v1", SEED, FRAMES)
    assert len(PAIRINGS) == 91


def test_the_stored_keys_give_the_stored_matches(golden: dict[str, Any]) -> None:
    assert_as_stored(record(lambda _: stored(golden["keys"]))[0], golden)


def test_the_bots_press_the_stored_keys(golden: dict[str, Any]) -> None:
    rows, keys = record(bots)
    assert_as_stored(rows, golden)
    assert keys == golden["keys"]


def test_one_key_in_one_frame_is_noticed(golden: dict[str, Any]) -> None:
    plain = stored(golden["keys"])

    def disturbed(frame: int) -> Tensor:
        actions = plain(frame).clone()
        if frame == 120:
            actions[0, 0, 3] ^= 1  # one step to the right of one that would stand still
        return actions

    with pytest.raises(AssertionError) as caught:
        assert_as_stored(record(lambda _: disturbed)[0], golden)
    assert "1 of 91 pairings changed" in str(caught.value)
    assert "constant - constant: between frames 100 and 150" in str(caught.value)
