"""What a user installs: the wheel in a clean environment that has the core dependencies and nothing else.

Installing torch afresh takes minutes and gigabytes. So the environment's own folder of packages gets a link to each
library that the metadata of the wheel requires without extras, directly or through others, as they are installed here.
Whatever else is installed here cannot be imported there, and neither can the checkout.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.package

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0


class CleanEnvironment:
    """A virtual environment with the wheel and links to the libraries that it requires."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        self.python = folder / "venv" / "bin" / "python"
        [self._site] = (folder / "venv" / "lib").glob("python*/site-packages")
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        quick = ["--quiet", "--no-deps", "--no-index", "--no-compile"]  # Python compiles what is used, once
        subprocess.run([*pip, "install", *quick, str(wheel)], check=True)
        self._lines = HeaderParser().parsestr(_metadata(wheel)).get_all("Requires-Dist", [])
        self.libraries: set[str] = set()
        self.add("")

    def add(self, extra: str) -> None:
        """Links the libraries of an extra, or of the core, and all that they require."""
        wanted = [Requirement(line) for line in self._lines]
        for name in required_by(asked for asked in wanted if applies(asked, extra)) - self.libraries:
            self.libraries.add(name)
            link(distribution(name), self._site)

    def run(self, *words: object, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Runs a program of the environment as a user would, far from the checkout."""
        program, *arguments = map(str, words)
        hidden = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "LUDUS_CONFIG")
        inherited = {name: value for name, value in os.environ.items() if name not in hidden}
        return subprocess.run(
            [str(self.python.with_name(program)), *arguments], cwd=self.folder, capture_output=True, text=True,
            env=inherited | {"XDG_CONFIG_HOME": os.devnull, "OMP_NUM_THREADS": "1"} | environment, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip

    def ludus(self, *words: object, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command that must succeed."""
        done = self.run("ludus", *words, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done


def applies(asked: Requirement, extra: str) -> bool:
    """Whether a requirement holds here: for an extra those that it adds, else those without one."""
    if asked.marker is None:
        return not extra
    return asked.marker.evaluate({"extra": extra}) and not (extra and asked.marker.evaluate({"extra": ""}))


def required_by(asked: Iterator[Requirement]) -> set[str]:
    """Names of the libraries that are asked for, and of all that they require."""
    found: dict[str, set[str]] = {}
    todo = list(asked)
    while todo:
        requirement = todo.pop()
        name, extras = canonicalize_name(requirement.name), {"", *requirement.extras}
        if extras <= found.get(name, set()):
            continue
        found[name] = found.get(name, set()) | extras
        further = [Requirement(line) for line in distribution(name).requires or ()]
        todo += [each for each in further if each.marker is None or any(applies(each, extra) for extra in extras)]
    return set(found)


def link(library: Distribution, site: Path) -> None:
    """Links the packages of a library; a folder that several libraries share becomes a folder of links."""
    home = Path(str(library.locate_file("")))
    for file in library.files or ():
        if ".." in file.parts or file.parts[0] == "__pycache__":
            continue  # a script, or what Python compiled
        depth = 1
        while depth < len(file.parts) and _is_shared(home.joinpath(*file.parts[:depth])):
            depth += 1
        target = site.joinpath(*file.parts[:depth])
        if not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(home.joinpath(*file.parts[:depth]))


def _is_shared(folder: Path) -> bool:
    """Whether a folder may hold packages of several libraries: it is no package itself and no metadata."""
    return folder.is_dir() and not (folder / "__init__.py").exists() and not folder.name.endswith(".dist-info")


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode("utf-8")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."], cwd=folder, capture_output=True,
        text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [found] = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    return CleanEnvironment(tmp_path_factory.mktemp("user"), wheel)


@pytest.fixture(scope="module")
def trained(clean: CleanEnvironment) -> str:
    """What the first training of a new user says; its run is runs/latest."""
    done = clean.ludus("train", "brawl", "--preset", "debug")
    return done.stdout + done.stderr


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("ludus/")}
    files = [path.relative_to(ROOT / "src") for path in (ROOT / "src" / "ludus").rglob("*") if path.is_file()]
    assert held == {path.as_posix() for path in files if "__pycache__" not in path.parts}


def test_the_sdist_and_the_wheel_are_small(dist: Path) -> None:
    sizes = {path.suffix: path.stat().st_size for path in dist.iterdir()}
    assert sizes.keys() == {".whl", ".gz"}
    assert max(sizes.values()) < 8 << 20


def test_nothing_else_can_be_imported_there(clean: CleanEnvironment) -> None:
    names = ("ludus", "tensorboard", "imageio", "pygame", "pytest", "stable_baselines3", "wandb", "pandas")
    code = f"""if True:
        import json
        from importlib.util import find_spec
        found = {{name: find_spec(name) for name in {names}}}
        print(json.dumps({{name: spec and spec.origin for name, spec in found.items()}}))
    """
    done = clean.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert Path(found.pop("ludus")).is_relative_to(clean.folder)
    assert set(found.values()) == {None}


def test_a_first_training_works(clean: CleanEnvironment, trained: str) -> None:
    assert "Traceback" not in trained
    assert "[WARN]" not in trained
    assert 'no curves for TensorBoard, which is not installed; use: pip install "tensorboard' in trained
    run = clean.folder / "runs" / "latest"
    assert run.resolve().name.startswith("brawl-debug-")
    assert (run / "training_curves.png").is_file()
    assert "training ended: the budget of 20,000 env steps is used up" in (run / "run.log").read_text()
    assert not (run / "tensorboard").exists()


@pytest.mark.usefixtures("trained")
def test_the_agent_can_be_evaluated_and_reported(clean: CleanEnvironment) -> None:
    evaluated = clean.ludus("eval", "runs/latest", "--against", "constant", "--matches", "4", "--json")
    assert [row["opponent"] for row in json.loads(evaluated.stdout)["opponents"]] == ["constant"]
    clean.ludus("report", "runs/latest", "--out", "report.html")
    assert "<html" in (clean.folder / "report.html").read_text(encoding="utf-8")


def test_the_shipped_agents_are_installed_and_play(clean: CleanEnvironment) -> None:
    listed = json.loads(clean.ludus("agents", "--json").stdout)["agents"]
    assert {"champion", "rookie", "walker"} <= {each["name"] for each in listed}
    assert all(Path(each["path"]).is_relative_to(clean.folder) for each in listed)
    played = clean.ludus("eval", "champion", "--against", "rookie", "--matches", "4", "--json")
    assert [row["opponent"] for row in json.loads(played.stdout)["opponents"]] == ["rookie"]


@pytest.mark.usefixtures("trained")
def test_a_window_names_its_extra_and_opens_once_that_is_installed(clean: CleanEnvironment) -> None:
    refused = clean.run("ludus", "demo", "runs/latest", "--video", "match.mp4")
    assert refused.returncode == 2
    assert 'needs pygame-ce; install it with: pip install "pygame-ce' in refused.stderr
    clean.add("window")
    match = ("brawl", "--against", "runs/latest", "--frames", "3", "--seed", "1", "--record", "match.replay")
    clean.ludus("play", *match, SDL_VIDEODRIVER="dummy")
    assert (clean.folder / "match.replay").is_file()
