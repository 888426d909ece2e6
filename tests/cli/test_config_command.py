"""`ludus config`: what it shows of presets, files and overrides, and where it says things come from."""

import contextlib
import io
import json
import sys
from pathlib import Path
from unittest import mock

import pytest

from ludus.cli.main import main
from ludus.config import PresetDirectory, parse_document
from ludus.training.presets import load_run_config

DEBUG = PresetDirectory("ludus.worlds.brawl").file("debug")


def run(*arguments: object) -> tuple[int, str, str]:
    """Runs a command in this process; returns exit code, output and error output."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with (
        mock.patch.object(sys, "argv", ["ludus", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return (stop.value.code if isinstance(stop.value.code, int) else 0), texts[0], texts[1]


@pytest.fixture(autouse=True)
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user's defaults are looked for; there are none yet."""
    monkeypatch.delenv("LUDUS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "ludus").mkdir(parents=True)
    return tmp_path / "home" / "ludus" / "config.yaml"


def test_show_prints_the_whole_configuration() -> None:
    code, out, err = run("config", "show", "brawl", "--preset", "debug", "ppo.n_epochs=5", "seed=3")
    assert (code, err) == (0, "")
    expected = load_run_config("brawl", "debug", None, ["ppo.n_epochs=5", "seed=3"])
    assert parse_document(out, "out").root.plain() == expected.to_json()
    assert "\n  n_epochs: 5\n" in out
    code, as_json, _ = run("config", "show", "brawl", "--preset", "debug", "ppo.n_epochs=5", "seed=3", "--json")
    assert code == 0
    assert json.loads(as_json) == expected.to_json()


def test_show_says_where_each_line_comes_from(tmp_path: Path, user_file: Path) -> None:
    mine = tmp_path / "m\u00fce.yaml"
    mine.write_text("extends: debug\nppo:\n  clip_range: 0.1\n")
    user_file.write_text("device: cuda\n")
    code, out, _ = run("config", "show", "brawl", "--config", mine, "seed=3", "--origins")
    assert code == 0
    assert out.isascii()
    said: dict[str, str] = {}
    for line in out.splitlines():
        text, _, origin = line.partition("  # ")
        said.setdefault(text.strip(), origin)
    shown = str(mine).encode("unicode_escape").decode("ascii")
    assert said["name: brawl"] == "from command line: WORLD"
    assert said["device: cuda"] == f"from {user_file}:1"
    assert said["seed: 3"] == "from command line: seed=3"
    assert said["ppo:"] == f"from {shown}:2"
    assert said["level: 0.1"] == f"from {shown}:3"
    steps = DEBUG.read_text().splitlines().index("  n_steps: 32") + 1
    assert said["n_steps: 32"] == f"from {DEBUG}:{steps}"
    assert said["target_kl: null"] == "default"
    assert parse_document(out, "out").root.plain() == load_run_config("brawl", None, mine, ["seed=3"]).to_json()


def test_list_names_every_preset_and_what_it_is_for() -> None:
    code, out, _ = run("config", "list")
    assert code == 0
    assert out.splitlines()[0].split() == ["world", "preset", "about"]
    lines = [line for line in out.splitlines() if line.split()[:2] == ["brawl-v1", "debug"]]
    assert any("Seconds: small enough" in line for line in lines)
    assert any(line.split()[:2] == ["gym:ID", "default"] for line in out.splitlines())
    assert all(line.endswith(".") for line in out.splitlines()[1:]), "every description is whole"
    assert "`ludus train city --game micropolis` runs it." in out, "the last sentence of three lines"
    _, of_brawl, _ = run("config", "list", "brawl")
    assert "debug" in of_brawl
    assert "gym:" not in of_brawl
    assert run("config", "list", "rps") == (0, "rps has no presets; its runs begin with the plain defaults\n", "")


def test_path_is_where_user_defaults_are_looked_for(user_file: Path) -> None:
    code, out, err = run("config", "path")
    assert (code, out) == (0, f"{user_file}\n")
    assert "it sets nothing yet; its keys can be: name, device, runs_folder, webhook_env, wandb_project" in err
    user_file.write_text("name: Ada\n")
    assert run("config", "path") == (0, f"{user_file}\n", "")
    user_file.write_text("nam: Ada\n")
    code, _, err = run("config", "path")
    assert code == 2
    assert f"{user_file}:1:1: nam: unknown key (got 'Ada'); did you mean 'name'?" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "chess"), "[ERROR] unknown world 'chess'; valid: brawl-v1"),
        (("show", "brawl", "--preset", "debgu"), "[ERROR] unknown preset 'debgu' (did you mean 'debug'?); valid: "),
        (("show", "brawl", "--preset", "debug", "--config", "x.yaml"), "are given; choose one"),
        (
            ("show", "brawl", "--config", "gone.yaml"),
            "gone.yaml:1:1: top level: configuration cannot be read: there is no",
        ),
        (("show", "brawl", "--preset", "debug", "quick"), "command line: quick: 'quick': should be a key"),
        (("list", "chess"), "[ERROR] unknown world 'chess'"),
        (("show",), "Missing argument 'WORLD'"),
    ],
)
def test_wrong_input_is_explained(arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run("config", *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert err.isascii()
