"""Tests of the command line: every command for real, errors as one line, a help that needs no torch."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import imageio_ffmpeg
import pytest

from ludus.cli.play import bot_with
from ludus.envs.replay import Replay, replay_env
from ludus.worlds.brawl.env import BrawlEnv

pytestmark = pytest.mark.train

LUDUS = Path(sys.executable).with_name("ludus")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def match(run: Run, tmp_path: Path) -> Path:
    """The replay of 20 steps of a demo."""
    video, replay = tmp_path / "runs" / "demo.mp4", tmp_path / "runs" / "demo.replay"
    names = ("--left", "aggressive:delay=2", "--right", "random")
    code, out, err = run("demo", "brawl", *names, "--video", video, "--frames", 20, "--record", replay)
    assert code == 0
    assert f"[OK] 21 frames written to {video}" in out
    assert "[WARN] stopped after 20 steps" in err
    assert "pictures: 20/20" in err
    assert imageio_ffmpeg.count_frames_and_secs(str(video))[0] == 21
    return replay


def test_help_answers_fast_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['ludus', '--help']\n"
        "from ludus.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'torch', 'warp', 'pygame', 'gymnasium', 'numpy', 'pydantic', 'rich', 'imageio_ffmpeg'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"
    for command in ("play", "replay", "demo", "envs", "eval"):
        assert f"\n  {command}" in done.stdout
    order = [done.stdout.index(f"\n{title}:\n") for title in ("Train", "Look", "Measure", "Share")]
    assert order == sorted(order)
    assert "..." not in done.stdout.partition("Train:")[2], "no description is cut"
    assert "\n    ludus train brawl --preset quick" in done.stdout
    assert done.stdout.isascii()
    times = []
    for _ in range(3):
        before = os.times()
        subprocess.run([LUDUS, "--help"], capture_output=True, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(times) < 0.5  # seconds of a processor, whatever else it does


def test_help_is_coloured_on_a_terminal(tmp_path: Path) -> None:
    code = "import pty, sys; pty.spawn([sys.argv[1], '--help'])"
    environment = {"TERM": "xterm-256color", "PATH": os.defpath, "HOME": str(tmp_path), "COLUMNS": "120"}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code, LUDUS], stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=True
    )
    shown = done.stdout.decode()
    assert "\x1b[" in shown
    assert "\u256d" in shown, "a panel"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    for words in (" Train ", " Look ", " Measure ", " Share ", "ludus train brawl --preset quick"):
        assert words in plain
    assert "every command accepts; it contains no code." in " ".join(plain.replace("\u2502", " ").split())


def test_commands_complete_in_a_shell() -> None:
    environment = os.environ | {"_LUDUS_COMPLETE": "complete_bash", "COMP_WORDS": "ludus tra", "COMP_CWORD": "1"}
    done = subprocess.run([LUDUS], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["train"]


@pytest.mark.parametrize("command", [[LUDUS], [sys.executable, "-m", "ludus"]])
def test_version(command: list[str]) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ludus 0.1.0\n", "")


def test_an_error_is_one_line_and_exit_code_2_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run([LUDUS, "replay", tmp_path / "gone.replay"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("Warp")]
    assert errors == [f"[ERROR] replay {tmp_path / 'gone.replay'} cannot be used: is missing"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("play", "chess"), "[ERROR] unknown world 'chess'; valid: brawl-v1"),
        (("play", "rps"), "[ERROR] rps-v1 cannot be played with a keyboard; valid: brawl, city, mimic, rocket"),
        (("play", "brawl", "--against", "agressive"), "did you mean 'aggressive'?"),
        (("play", "brawl", "--delay", "99"), "[ERROR] bot 'aggressive:delay=99': delay"),
        (("demo", "rps"), "[ERROR] rps-v1 is played alone and has no bots to watch: name the folder of an agent"),
        (("demo", "brawl", "--video", "film.avi"), "[ERROR] video film.avi must end in one of .mp4, .gif"),
        (("replay", "x", "--verify", "--video", "a.mp4"), "[ERROR] --verify shows nothing"),
        (("demo", "brawl", "--frames", "0"), "Invalid value for '--frames'"),
        (("fly",), "No such command 'fly'"),
    ],
)
def test_wrong_input_is_explained(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err + out
    assert err.isascii()


def test_envs_lists_every_world_and_its_bots(run: Run) -> None:
    code, out, _ = run("envs")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["world", "seats", "rate_hz", "steps", "action", "observation"]
    assert lines[1].split()[:5] == ["brawl-v1", "2", "30", "2700", "MultiBinary(10)"]
    assert any(line.startswith("point-v1") and "Box(2)" in line for line in lines)
    assert any(line.startswith("bots of brawl-v1: constant, random") for line in lines)


def test_a_demo_keeps_left_on_the_left(run: Run, tmp_path: Path) -> None:
    swapped = set()
    for seed in range(4):
        file = tmp_path / f"{seed}.replay"
        run("demo", "brawl", "--video", tmp_path / "a.mp4", "--frames", 1, "--seed", seed, "--record", file)
        replay = Replay.load(file)
        with replay_env(replay) as env:
            assert isinstance(env, BrawlEnv)
            assert env.view(0).players[0].x < 0.0 < env.view(0).players[1].x
        swapped.add(replay.config.get("swap_sides", False))
    assert swapped == {False, True}  # which side seat 0 draws depends on the seed


def test_a_replay_is_verified_filmed_and_refused_when_changed(run: Run, match: Path, tmp_path: Path) -> None:
    code, out, err = run("replay", match, "--verify")
    assert code == 0
    assert "steps: 20/20" in err
    assert out == f"[OK] {match} goes as recorded: brawl-v1, aggressive:delay=2 against random, 20 steps\n"
    code, out, _ = run("replay", match, "--video", tmp_path / "new" / "again.gif", "--debug")
    assert code == 0
    assert "[OK] 11 frames written to" in out  # every second picture of 21
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "new" / "again.gif"))[0] == 11
    raw = bytearray(match.read_bytes())
    raw[40] ^= 1
    match.write_bytes(raw)
    code, _, err = run("replay", match, "--verify")
    assert code == 2
    assert "it is damaged" in err


def test_a_replay_needs_a_screen_or_a_video(run: Run, match: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = run("replay", match)
    assert code == 2
    assert "[ERROR] " in err
    assert "write a video instead" in err
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    code, out, _ = run("replay", match)
    assert code == 0
    assert "goes as recorded" in out


def test_bot_settings_are_added_to_the_name() -> None:
    assert bot_with("aerial", None, None) == "aerial"
    assert bot_with("aerial", 8, None) == "aerial:delay=8"
    assert bot_with("aerial:delay=8", None, 0.1) == "aerial:delay=8,noise=0.1"


def test_an_interrupt_is_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ludus.evaluation.display.make_env", interrupt)
    code, _, err = run("demo", "brawl")
    assert code != 0
    assert "Traceback" not in err
