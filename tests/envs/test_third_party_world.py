"""A world in a package of its own: installed, found through its entry point, trained, evaluated and played back."""

import os
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import ludus

pytestmark = pytest.mark.package

PROJECT = Path(__file__).parents[2] / "examples" / "own_world"
SMALL = ("total_env_steps=2048", "evaluation.every_env_steps=1024", "monitoring.console=off")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the project installed; it sees the libraries of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    source = Path(ludus.__file__).parents[1]
    named = [str(Path(name).resolve()) for name in os.environ.get("PYTHONPATH", "").split(os.pathsep) if name]
    libraries = (f"import site; site.addsitedir({name!r})" for name in (*named, site.getsitepackages()[0]))
    (packages / "outside.pth").write_text("\n".join((str(source), *libraries, "")))
    copy = folder / "project"  # a build writes beside the sources
    subprocess.run(["cp", "-r", PROJECT, copy], check=True)
    # No index is asked: everything that the build needs is here.
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", *options, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "python"


COMMANDS = (
    ("envs", "nudge"),
    ("train", "nudge", "--run-dir", "mine", *SMALL),
    ("eval", "mine", "--matches", "20"),
    ("export", "mine", "--out", "marble.ludus"),
    ("report", "mine", "--replays", "1"),
    ("demo", "marble.ludus", "--video", "a.gif", "--record", "a.replay"),
    ("replay", "a.replay", "--video", "b.gif"),
)
PROGRAM = f"""
import gymnasium
from ludus.cli.main import app

for words in {COMMANDS!r}:
    try:
        app(words, prog_name="ludus", standalone_mode=False)
    except SystemExit as done:
        assert not done.code, (words, done.code)
print(gymnasium.make("ludus/Nudge-v1").reset(seed=0)[0])
"""


def test_it_is_found_trained_evaluated_reported_and_played_back(python: Path, tmp_path: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-c", PROGRAM], capture_output=True, text=True, cwd=tmp_path, env=surroundings)
    assert done.returncode == 0, done.stderr
    assert "rewards dense: arrivals 1.0, lateness -0.05" in done.stdout
    assert "arrived" in done.stdout
    assert "base: dense" in (tmp_path / "mine" / "config.yaml").read_text()
    assert "PAINTERS.nudge = " in (tmp_path / "mine" / "report.html").read_text()
    played, again = ((tmp_path / name).read_bytes() for name in ("a.gif", "b.gif"))
    assert played.startswith(again[:-1]), "the same frames; the first ends with the result"
