"""Files that other programs read: the Makefile, the container, the editor's settings, the citation and issue forms."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ludus import __version__

ROOT = Path(__file__).parents[1]
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
INSTRUCTIONS = {"FROM", "ENV", "RUN", "COPY", "ARG", "USER", "WORKDIR", "VOLUME", "ENTRYPOINT", "CMD"}


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def dockerfile() -> list[tuple[str, str]]:
    """Instructions and their arguments; lines that go on are joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in (line.partition(" ") for line in lines)]


def recipe(target: str, folder: Path) -> list[str]:
    """What `make` would do on a fresh machine, or after what the folder says is done."""
    done = subprocess.run(
        ["make", "--dry-run", "--file", str(ROOT / "Makefile"), f"--include-dir={ROOT}", target], cwd=folder,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def finish(fresh: Path, *stamps: str) -> None:
    (fresh / ".venv").mkdir(exist_ok=True)
    for stamp in stamps:
        (fresh / ".venv" / stamp).touch()


def test_training_installs_the_core_alone_and_tests_install_the_rest(fresh: Path) -> None:
    trained = recipe("train", fresh)
    assert [line for line in trained if "--editable" in line] == [
        ".venv/bin/python -m pip install --quiet --no-compile --editable ."
    ]
    assert trained[-1] == ".venv/bin/ludus train brawl --preset quick"
    tested = recipe("fast", fresh)
    assert "python3 -m venv .venv" in tested[0]
    at_once, later = (line for line in tested if "--editable" in line)  # the core and the rest in one call
    assert at_once == '.venv/bin/python -m pip install --quiet --no-compile --editable ".[dev]"'
    assert later == f"test .venv/.ready -nt .venv/.core || {at_once}"
    stamps = [tested.index(line) for line in ("touch .venv/.core", "touch .venv/.ready", later)]
    assert stamps == sorted(stamps)
    assert tested[-1].startswith("OMP_NUM_THREADS=1 .venv/bin/pytest")


def test_either_command_may_come_first(fresh: Path) -> None:
    finish(fresh, ".core")
    assert recipe("train", fresh) == [".venv/bin/ludus train brawl --preset quick"]
    [install] = [line for line in recipe("fast", fresh) if "pip install" in line]
    assert '".[dev]"' in install
    finish(fresh, ".core", ".ready")
    for target in ("train", "fast", "test-rest"):
        assert not [line for line in recipe(target, fresh) if "pip" in line]


def test_playing_installs_what_a_window_needs_and_the_tests_install_it_too(fresh: Path) -> None:
    played = recipe("play", fresh)
    assert [line for line in played if "--editable" in line] == [
        ".venv/bin/python -m pip install --quiet --no-compile --editable .",
        '.venv/bin/python -m pip install --quiet --no-compile --editable ".[window]"',
    ]
    assert played[-1] == ".venv/bin/ludus play brawl --against champion"
    assert "touch .venv/.window .venv/.ready" in recipe("fast", fresh)
    finish(fresh, ".core", ".window")
    assert recipe("play", fresh) == [".venv/bin/ludus play brawl --against champion"]


def test_the_dockerfile_builds_from_files_that_travel_and_runs_as_a_user() -> None:
    instructions = dockerfile()
    assert {name for name, _ in instructions} <= INSTRUCTIONS
    images = [words.split() for name, words in instructions if name == "FROM"]
    stages: set[str] = set()
    for image, _, stage in images:
        assert image in stages or re.fullmatch(r"python:3\.1[12]-slim", image), "pinned, and a Python that we support"
        stages.add(stage)
    travelling = set((ROOT / ".dockerignore").read_text(encoding="utf-8").replace("!", "").split())
    copied = [source for name, words in instructions if name == "COPY" for source in words.split()[:-1]]
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        assert source in travelling
    last = instructions[instructions.index(("FROM", "base AS ludus")) :]
    assert [words for name, words in last if name == "USER"] == ["ludus"]
    assert [json.loads(words) for name, words in last if name in ("ENTRYPOINT", "CMD")] == [["ludus"], ["--help"]]


def test_the_container_for_development_has_the_packages_of_the_tests() -> None:
    script = (ROOT / ".ci" / "packages").read_text(encoding="utf-8").replace("\\\n", " ")
    [wanted] = re.findall(r"apt-get -qq install -y --no-install-recommends (.*?)[;&|>\n]", script)
    [installed] = [words for name, words in dockerfile() if name == "RUN" and "apt-get install" in words]
    assert set(wanted.split()) <= set(shlex.split(installed))


def test_the_editor_finds_what_the_container_has(fresh: Path) -> None:
    settings = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    build = settings["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert ("FROM", f"base AS {build['target']}") in dockerfile()
    program, target = settings["postCreateCommand"].split()
    assert program == "make"
    assert any('".[dev]"' in line for line in recipe(target, fresh))
    [made] = [words for name, words in dockerfile() if name == "RUN" and "useradd" in words]
    assert made.split()[-1] == settings["remoteUser"]


def test_the_citation_names_this_version() -> None:
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys(), "which the format requires"
    assert citation["cff-version"] == "1.2.0"
    assert (str(citation["version"]), citation["license"], citation["type"]) == (__version__, "MIT", "software")
    assert all("name" in author or "family-names" in author for author in citation["authors"])


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_is_complete(form: Path) -> None:
    content = read_yaml(form)
    assert {"name", "description", "body"} <= content.keys()
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) >= 3
    for field in fields:
        assert field["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert {"label", "description"} <= field["attributes"].keys()
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_there_are_forms_for_issues() -> None:
    assert [form.stem for form in FORMS] == ["bug_report", "feature_request", "training_problem"]
    assert read_yaml(ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": True}


def test_the_files_that_tests_begin_with_exist(request: pytest.FixtureRequest) -> None:
    conftest: Any = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    assert len(conftest.LONG_FILES) > 40
    assert set(conftest.LONG_FILES) <= {path.name for path in (ROOT / "tests").rglob("test_*.py")}
