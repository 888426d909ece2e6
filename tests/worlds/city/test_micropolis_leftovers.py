"""Nothing is left of Micropolis on its screen, however it ends: closed, or killed in any of its parts."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest
from screen_leftovers import leftovers, tree, wait_until  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.profile_schema import GameProfile

pytestmark = pytest.mark.screen

PROGRAM = Path(__file__).with_name("micropolis_parents.py")
SIDE_BY_SIDE, CYCLES = 2, 10  # twenty games in all
End: TypeAlias = Callable[[int, int], object]
CLOSED: tuple[End, ...] = (  # what happens before the parent closes what is left of its game
    lambda _parent, _supervisor: None,
    lambda _parent, supervisor: os.kill(supervisor, signal.SIGKILL),
    lambda _parent, supervisor: os.kill(psutil.Process(supervisor).children()[0].pid, signal.SIGKILL),
)
KILLED: tuple[End, ...] = (
    lambda parent, _supervisor: os.kill(parent, signal.SIGKILL),
    lambda parent, _supervisor: os.kill(parent, signal.SIGTERM),
)
ENDS = (*CLOSED, *KILLED)


@pytest.fixture
def pictures(micropolis: GameProfile, tmp_path: Path) -> Path:
    """What Micropolis looks like, so that every launch starts it once."""
    with X11Driver(micropolis, pictures=LearnedPictures(tmp_path)) as driver:
        driver.launch()
    return tmp_path


def test_nothing_is_left_after_twenty_games_that_were_closed_or_killed(pictures: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(pictures), str(CYCLES)]
    programs = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(SIDE_BY_SIDE)]
    seen: list[tuple[str, Path, list[int]]] = []
    try:
        for cycle in range(CYCLES):
            for number, program in enumerate(programs):
                assert program.stdout is not None
                assert program.stdin is not None
                parent, display, folder, supervisor = program.stdout.readline().decode().split()
                pids = [int(supervisor), *tree(int(supervisor))]
                assert len(pids) == 3  # with the screen and the game
                seen.append((display, Path(folder), pids))
                end = ENDS[(cycle * SIDE_BY_SIDE + number) % len(ENDS)]
                end(int(parent), int(supervisor))
                if end in CLOSED:
                    program.stdin.write(b"\n")
                    program.stdin.flush()
        assert [program.wait(60.0) for program in programs] == [0] * SIDE_BY_SIDE
    finally:
        for program in programs:
            program.kill()
            program.communicate()
    assert len(seen) == SIDE_BY_SIDE * CYCLES
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not any(leftovers(*game) for game in seen))
    assert [left for game in seen if (left := leftovers(*game))] == []
