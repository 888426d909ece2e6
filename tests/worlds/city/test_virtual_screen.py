"""Tests of virtual screens: they start, run programs, and leave nothing behind, however they end."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from screen_leftovers import SOCKETS, is_there, leftovers, resource_use, tree, wait_until  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.core.errors import GameLostError, GameNotFoundError
from ludus.worlds.city.screen.session import VirtualScreen

STUBBORN = ["sh", "-c", "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' & sleep 1000"]
CYCLES = 20


@pytest.mark.usefixtures("xvfb")
def test_a_screen_runs_programs_and_ends_them_with_all_below_them() -> None:
    with VirtualScreen(320, 240) as screen:
        assert screen.is_alive
        processes, memory_bytes = resource_use(screen)
        pid = screen.run(STUBBORN, {})
        wait_until(lambda: resource_use(screen)[0] == processes + 5)
        assert resource_use(screen)[1] > memory_bytes
        screen.end(pid)
        assert resource_use(screen)[0] == processes
        environment = screen.folder / "environment"
        screen.run(["sh", "-c", f"env > {environment}; pwd >> {environment}"], {"WORD": "yes"})
        wait_until(lambda: environment.is_file() and "PWD" in environment.read_text())
        text = environment.read_text()
        assert f"DISPLAY={screen.display}\n" in text
        assert f"HOME={screen.folder}/home\n" in text
        assert "WORD=yes\n" in text
        with pytest.raises(GameNotFoundError, match="no-such-program"):
            screen.run(["no-such-program"], {})
        pids, display, folder = [screen.pid, screen._supervisor.pid], screen.display, screen.folder
    assert leftovers(display, folder, pids) == []
    screen.close()


@pytest.mark.usefixtures("xvfb")
def test_screens_side_by_side_have_numbers_of_their_own() -> None:
    screens = [VirtualScreen(320, 240) for _ in range(3)]
    try:
        assert len({screen.display for screen in screens}) == 3
        assert len({screen.folder for screen in screens}) == 3
    finally:
        for screen in screens:
            screen.close()


@pytest.mark.usefixtures("xvfb")
def test_a_killed_screen_is_noticed_and_its_socket_is_removed() -> None:
    with VirtualScreen(320, 240) as screen:
        os.kill(screen.pid, signal.SIGKILL)
        wait_until(lambda: not screen.is_alive)
        assert Path(SOCKETS.format(screen.display[1:])).exists()
    assert leftovers(screen.display, screen.folder, [screen.pid]) == []


@pytest.mark.usefixtures("xvfb")
def test_a_killed_keeper_takes_the_screen_and_the_program_with_it() -> None:
    with VirtualScreen(320, 240) as screen:
        program = screen.run(["sleep", "1000"], {})
        screen._supervisor.kill()
        wait_until(lambda: not is_there(screen.pid) and not is_there(program))
        with pytest.raises(GameLostError):
            screen.run(["true"], {})
    assert leftovers(screen.display, screen.folder, [screen.pid, program]) == []


def test_without_xvfb_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GameNotFoundError, match="apt-get install xvfb"):
        VirtualScreen(320, 240)


@pytest.mark.usefixtures("xvfb")
def test_nothing_is_left_after_twenty_parents_were_killed() -> None:
    # One program that has imported the package once forks the parents, so that a cycle takes a tenth of a second.
    script = textwrap.dedent(f"""
        import os, sys, time
        from ludus.worlds.city.screen.session import VirtualScreen
        for cycle in range({CYCLES}):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                screen = VirtualScreen(320, 240)
                program = screen.run({STUBBORN!r}, {{}})
                os.write(writing, f"{{screen.display}} {{screen.folder}} {{screen._supervisor.pid}}".encode())
                time.sleep(1000)
            print(child, os.read(reading, 1000).decode(), flush=True)
            sys.stdin.readline()
            os.waitpid(child, 0)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parents:
        assert parents.stdout is not None
        assert parents.stdin is not None
        seen: list[tuple[str, Path, list[int]]] = []
        for _ in range(CYCLES):
            parent, display, folder, supervisor = parents.stdout.readline().split()
            pids = [int(supervisor), *tree(int(supervisor))]
            assert len(pids) >= 3
            os.kill(int(parent), signal.SIGKILL)
            parents.stdin.write("next\n")
            parents.stdin.flush()
            seen.append((display, Path(folder), pids))
    # A number can be in use again by the next screen, so all of them are looked at when all are gone.
    wait_until(lambda: not any(leftovers(*screen) for screen in seen))
