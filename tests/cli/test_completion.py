"""`ludus completion`: the script completes in a real shell, and installing it changes the home folder alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.package

LUDUS = Path(sys.executable).with_name("ludus")


def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ludus", "completion", *words], env=os.environ | environment, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_agents(tmp_path: Path) -> None:
    done = run("bash")
    assert done.returncode == 0, done.stderr
    script = tmp_path / "script.sh"
    script.write_text(done.stdout)
    asked = f"""
        source {script}
        ask() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ludus_completion ludus; echo "${{COMPREPLY[@]}}"; }}
        ask ludus tra
        ask ludus train --pres
        ask ludus agents cham
        ask ludus eval strik
    """
    path = f"{LUDUS.parent}{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", asked], env=os.environ | {"PATH": path}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert shell.stdout.split() == ["train", "--preset", "champion", "striker"], shell.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_every_shell_has_a_script(shell: str) -> None:
    done = run(shell)
    assert done.returncode == 0, done.stderr
    assert "_LUDUS_COMPLETE" in done.stdout
    assert done.stdout.isascii()


def test_the_shell_in_use_is_the_default_and_its_script_can_be_installed(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("alias l=ls\n")
    done = run("--install", HOME=str(tmp_path), SHELL="/usr/bin/bash")
    assert done.returncode == 0, done.stderr
    [script] = (tmp_path / ".bash_completions").iterdir()
    assert f"[OK] {script} written" in done.stdout
    started = (tmp_path / ".bashrc").read_text()
    assert started.startswith("alias l=ls\n")
    assert f"source '{script}'" in started


@pytest.mark.parametrize(
    ("words", "shell", "said"),
    [
        ((), "/bin/tcsh", "your shell tcsh has no completion; name one: bash"),
        (("--install", "powershell"), "", "$PROFILE"),
    ],
)
def test_what_cannot_be_done_is_a_typed_error(words: tuple[str, ...], shell: str, said: str) -> None:
    done = run(*words, SHELL=shell)
    assert done.returncode == 2
    assert done.stderr.startswith("[ERROR] ")
    assert said in done.stderr


def test_a_home_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / ".bash_completions").write_text("a file in the place of the folder")
    done = run("--install", "bash", HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("[ERROR] the completion of bash could not be written: ")
