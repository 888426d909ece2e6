"""Starts a profile's game on a screen: what must be installed, what is written for it first, and its command."""

import platform
import shutil
from pathlib import Path

from ludus.core.errors import ConfigError, GameNotFoundError
from ludus.envs.city.drivers.prompt import GamePrompt
from ludus.envs.city.profile import GameProfile
from ludus.envs.city.screen.session import ScreenSession

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the kernel has it


def check_installed(profile: GameProfile) -> None:
    """Raises if a game or what it is played through is not on this machine.

    Raises:
        GameNotFoundError: Names all that is missing and the packages to install.
    """
    program, folder = profile.launch.command[0], profile.launch.copy_of
    missing = [] if shutil.which(program) is not None else [program]
    missing += [folder] if folder is not None and not Path(folder).is_dir() else []
    missing += [] if shutil.which("Xvfb") is not None else ["Xvfb"]
    if missing:
        raise GameNotFoundError(
            f"{profile.title} cannot be played here: there is no {', no '.join(missing)}; "
            f"install it with: apt-get install {' '.join((*profile.packages, 'xvfb'))}"
        )


def clock_library() -> Path | None:
    """Returns the library that makes a program's clock run faster (libfaketime), if it is installed."""
    folders = Path("/usr/lib").glob(f"{platform.machine()}-linux-gnu*/faketime")
    return next((file for folder in folders if (file := folder / "libfaketimeMT.so.1").is_file()), None)


def clock_speed(profile: GameProfile) -> float:
    """Returns how many times as fast as ours a game's clock runs on this machine."""
    return profile.launch.clock_speed if clock_library() is not None else 1.0


def start_game(session: ScreenSession, profile: GameProfile, seed: int) -> GamePrompt | None:
    """Starts a game on a screen, instead of one that may be there; returns its prompt if it has one.

    Raises:
        GameLostError: It could not be started.
    """
    launch, home = profile.launch, session.screen.folder / "home"
    session.end()
    if home.exists():
        shutil.rmtree(home)  # what an earlier start left there could change this one
    home.mkdir()
    if launch.copy_of is not None:
        shutil.copytree(launch.copy_of, home / "game")
    for name, content in launch.files.items():
        _write_inside(home, name, content)
    width, height = profile.screen
    words = {"{seed}": str(seed), "{width}": str(width), "{height}": str(height), "{home}": str(home)}
    command = [_filled(word, words) for word in launch.command]
    environment = {name: _filled(value, words) for name, value in launch.environment.items()}
    if (speed := clock_speed(profile)) > 1.0:
        environment |= {"LD_PRELOAD": str(clock_library()), "FAKETIME": f"+0 x{speed:g}"}
    folder = _filled(launch.folder, words) if launch.folder is not None else None
    if launch.prompt is None:
        session.start(command, environment, folder, None)
        return None
    prompt = GamePrompt(launch.prompt)
    try:
        session.start(command, environment, folder, prompt.terminal)
        prompt.handed_over()
        prompt.wait_until_ready(launch.timeout_s)
        _forget_clock(session.pid)
        for line in launch.prompt.first:
            prompt.ask(line)
    except BaseException:
        prompt.close()
        raise
    return prompt


def _forget_clock(pid: int) -> None:
    """Removes the names of what libfaketime shares between programs; it would leave them if the game is killed."""
    for name in ("faketime_shm", "sem.faketime_sem"):
        (_SHARED_MEMORY / f"{name}_{pid}").unlink(missing_ok=True)


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _write_inside(home: Path, name: str, content: str) -> None:
    file = (home / name).resolve()
    if not file.is_relative_to(home.resolve()):
        raise ConfigError(f"launch.files: {name!r} is outside the game's home folder; use a path below it")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
