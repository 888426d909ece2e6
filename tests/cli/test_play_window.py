"""Tests of the real window: `ludus play` on a virtual screen, played with real key events."""

import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.commands import Commands

from ludus.envs import make_env
from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.rules import Key
from ludus.worlds.rocket.env import RocketEnv

pytestmark = pytest.mark.screen

SIZE = (1366, 800)


@dataclass(frozen=True)
class Screen:
    """A virtual screen."""

    display: str
    memory: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to show its window here."""
        return {"DISPLAY": self.display, "SDL_VIDEODRIVER": "x11"}

    def type(self, *arguments: str) -> str:
        """Runs xdotool on this screen."""
        environment = {**os.environ, "DISPLAY": self.display}
        done = subprocess.run(
            ["xdotool", *arguments], env=environment, capture_output=True, text=True, check=False, timeout=10
        )
        return done.stdout

    def wait_for_focus(self, title: str, timeout_s: float) -> None:
        """Waits until keys go to the window of this title."""
        give_up = time.monotonic() + timeout_s
        while title not in self.type("getwindowfocus", "getwindowname"):
            assert time.monotonic() < give_up, f"no window {title!r} after {timeout_s} s"
            # The screen has no window manager, and a window asks for the focus once, in vain if it is not visible yet.
            self.type("search", "--onlyvisible", "--name", title, "windowfocus")
            time.sleep(0.2)

    def wait_for_pictures(self, count: int, timeout_s: float) -> list[NDArray[np.uint8]]:
        """Returns the first different pictures that the screen shows; a black one is none."""
        give_up = time.monotonic() + timeout_s
        seen: list[NDArray[np.uint8]] = []
        while len(seen) < count:
            assert time.monotonic() < give_up, f"{len(seen)} different pictures after {timeout_s} s"
            time.sleep(0.2)
            now = self.shot()
            if now.std() > 15.0 and (not seen or (now != seen[-1]).any(axis=2).sum() > 2000):
                seen.append(now)
        return seen

    def shot(self) -> NDArray[np.uint8]:
        """What the screen shows, `(height, width, 3)`; the file is an X window dump."""
        raw = self.memory.read_bytes()
        header = struct.unpack(">25I", raw[:100])
        width, height, row_bytes, colors = header[4], header[5], header[12], header[19]
        pixels = np.frombuffer(raw, np.uint8, row_bytes * height, header[0] + 12 * colors)
        return pixels.reshape(height, row_bytes // 4, 4)[:, :width, 2::-1]


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    for program, package in (("Xvfb", "xvfb"), ("xdotool", "xdotool")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}, from the Debian package {package}")
    folder = tmp_path / "screen"
    folder.mkdir()
    size = f"{SIZE[0]}x{SIZE[1]}x24"
    # Without -noreset it starts anew when xdotool, its only client, leaves, and may drop a game that comes just then.
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", size, "-nolisten", "tcp", "-noreset", "-fbdir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield Screen(f":{server.stdout.readline().strip()}", folder / "Xvfb_screen0")
        finally:
            server.terminate()


def seed_that_starts(side: int) -> int:
    """A seed whose match has seat 0 start on the left (-1) or on the right (1)."""
    for seed in range(50):
        with make_env("brawl", seed=seed) as env:
            assert isinstance(env, BrawlEnv)
            if env.view(0).players[0].x * side > 0:
                return seed
    raise AssertionError("50 seeds on one side")


@pytest.mark.parametrize(("side", "mirrored"), [(-1, False), (1, False), (1, True)])
def test_keys_pressed_on_a_real_screen_move_the_fighter(
    screen: Screen, commands: Commands, tmp_path: Path, side: int, mirrored: bool
) -> None:
    record = tmp_path / "played.replay"
    words = ["play", "brawl", "--against", "constant", "--seed", seed_that_starts(side)]
    words += ["--record", record, "--frames", 1800] + ["--mirrored"] * mirrored
    game = commands.start(*words, environment=screen.environment)
    screen.wait_for_focus("Ludus: you against constant", timeout_s=120.0)  # kernels may have to be compiled
    time.sleep(1.0)
    before = screen.shot()
    screen.type("keydown", "d")
    during = shot_after_frames(screen)
    screen.type("keyup", "d")
    screen.type("key", "space")
    time.sleep(0.2)
    screen.type("key", "k")
    time.sleep(0.3)
    screen.type("key", "Escape")
    code, output = game.wait(), game.said
    assert code == 0, output
    assert "SPACE  jump" in output
    replay = Replay.load(record)
    assert f"[OK] replay of {replay.steps} steps written to {record}" in output
    _check_keys(replay)
    # On the screen: something was shown, it is the stage at dusk, and it moved.
    assert before.std() > 15.0
    assert before[400, 20].tolist() == [0, 0, 0]  # beside the window
    assert (before != during).any(axis=2).sum() > 500


def shot_after_frames(screen: Screen, *, frames: int = 20, least_s: float = 0.5) -> NDArray[np.uint8]:
    """Return the screen once it has shown some frames, however long they take on a busy machine."""
    last, seen, begun_s = screen.shot(), 0, time.monotonic()
    while seen < frames or time.monotonic() - begun_s < least_s:
        assert time.monotonic() - begun_s < 60.0, f"{seen} frames in a minute"
        now = screen.shot()
        seen, last = seen + bool((now != last).any()), now
    return last


def _check_keys(replay: Replay) -> None:
    """The keys arrived in order, and D moved the fighter to the right on the screen."""
    with replay_env(replay) as env:
        assert isinstance(env, BrawlEnv)
        places = [env.view(0).players[0].x]
        places += [env.view(0).players[0].x for _ in resimulate(replay, env)]
        swapped = (int(env.fields()["home"][0, 0]) > 0) != env.config.mirrored
    held = replay.actions[:, 0].bool()
    assert replay.actions[:, 1].sum() == 0
    walked = held[:, Key.LEFT if swapped else Key.RIGHT].nonzero().flatten().tolist()
    jumped, struck = (int(held[:, key].nonzero()[0]) for key in (Key.JUMP, Key.HEAVY))
    assert len(walked) >= 3
    assert walked == list(range(walked[0], walked[-1] + 1))
    assert walked[-1] <= jumped < struck
    assert places[walked[-1] + 1] > places[walked[0]] + 0.3
    assert held[:, [Key.UP, Key.DOWN, Key.PICKUP, Key.DODGE, Key.LIGHT, Key.TAUNT]].sum() == 0
    assert not held[:, Key.RIGHT if swapped else Key.LEFT].any()


def test_a_car_is_driven_on_a_real_screen(screen: Screen, commands: Commands, tmp_path: Path) -> None:
    record = tmp_path / "driven.replay"
    words = ["play", "rocket", "--against", "idle", "--seed", 3, "--record", record, "--frames", 3600]
    game = commands.start(*words, "--set", "threads=1", environment=screen.environment)
    screen.wait_for_focus("Ludus: you against idle", timeout_s=240.0)  # kernels may have to be compiled
    screen.wait_for_pictures(1, timeout_s=60.0)
    screen.type("keydown", "w")
    screen.type("keydown", "Shift_L")
    screen.wait_for_pictures(3, timeout_s=60.0)
    screen.type("keyup", "Shift_L")
    screen.type("keydown", "d")
    screen.wait_for_pictures(3, timeout_s=60.0)
    screen.type("keyup", "d")
    screen.type("key", "c")  # the next camera
    screen.type("key", "space")
    time.sleep(1.0)
    screen.type("key", "Escape")
    code, output = game.wait(), game.said
    assert code == 0, output
    assert "LEFT SHIFT OR RIGHT SHIFT" in output
    replay = Replay.load(record)
    own = replay.actions[:, 0]  # throttle, steer, pitch, yaw, roll, jump, boost, handbrake
    boosted, steered, jumped = (set((own[:, control] > 0).nonzero().flatten().tolist()) for control in (6, 1, 5))
    assert boosted
    assert steered
    assert jumped
    assert min(boosted) < min(steered) < max(jumped)
    assert replay.config["actions"] == "continuous"
    with replay_env(replay) as env:
        assert isinstance(env, RocketEnv)
        assert env.spec.rate_hz == 30.0
        speeds = [float(result.state_metrics["speed"][0, 0]) for result in resimulate(replay, env)]
    assert max(speeds) > 300.0


def test_a_walker_walks_on_a_real_screen(screen: Screen, commands: Commands) -> None:
    words = ["demo", "mimic", "--window", "--frames", 600, "--set", "threads=1"]
    shown = commands.start(*words, environment=screen.environment)
    screen.wait_for_focus("Ludus: mimic-v1", timeout_s=60.0)
    pictures = screen.wait_for_pictures(3, timeout_s=60.0)
    screen.type("key", "Escape")
    code, output = shown.wait(), shown.said
    assert code == 0, output
    assert pictures[0][400, 20].tolist() == [0, 0, 0]  # beside the window
