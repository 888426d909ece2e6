"""`ludus verify`: lines for what passed and what the run is, from a world, a preset or a file; errors with exit 2."""

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

SMALL = ("world.num_envs=8", "ppo.n_steps=16", "ppo.batch_size=64")


@pytest.fixture(autouse=True)
def _no_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))


def lines_of(out: str) -> list[str]:
    lines = out.splitlines()
    assert all(line.startswith("[OK] ") for line in lines), out
    return [line.removeprefix("[OK] ").split(":")[0].split()[0] for line in lines]


def test_a_world_passes_with_a_line_a_check_and_a_summary(run: Run) -> None:
    code, out, err = run("verify", "duel", *SMALL, "opponents=rock")
    assert (code, err) == (0, "")
    assert lines_of(out)[:9] == [
        "world", "players", "batch", "rollout", "gradients", "update", "checkpoint", "time", "memory",
    ]  # fmt: skip
    assert "8 games of duel-v1" in out
    assert "opponents rock 100%" in out
    assert out.isascii()


def test_a_preset_of_brawl_passes(run: Run) -> None:
    code, out, _ = run("verify", "brawl", "--preset", "debug", "world.device=cpu")
    assert code == 0
    assert "world: brawl-v1 on cpu" in out


def test_a_file_says_its_world_itself_or_in_what_it_extends(run: Run, tmp_path: Path) -> None:
    base, own = tmp_path / "base.yaml", tmp_path / "own.yaml"
    base.write_text("world: {name: duel, num_envs: 8}\nppo: {n_steps: 16, batch_size: 64}\nopponents: rock\n")
    own.write_text("extends: base.yaml\nopponents: {rock: 1, cycle: 3}\n")
    for file in (base, own):
        code, out, _ = run("verify", file)
        assert code == 0
        assert "8 games of duel-v1" in out
    assert "opponents rock 25%, cycle 75%" in out
    code, out, _ = run("verify", own, "world.num_envs=16")
    assert code == 0
    assert "16 games of duel-v1" in out
    code, out, _ = run("verify", "duel", "--config", own)
    assert code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ppo: {n_steps: 16}\n", "does not say its world; give it world.name, or use: ludus verify WORLD --config"),
        ("world: {name: duell}\n", "unknown world 'duell'"),
        ("world: {name: duel}\nppo: {stepps: 16}\n", "bad.yaml:2:7: ppo.stepps"),
        ("world: {name: [\n", "bad.yaml:"),
    ],
)
def test_a_file_that_is_wrong_is_refused(run: Run, tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    code, out, err = run("verify", file)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_no_file_and_two_files_are_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run("verify", tmp_path / "missing.yaml")
    assert code == 2
    assert "there is no such file" in err
    file = tmp_path / "own.yaml"
    file.write_text("world: {name: duel}\n")
    code, _, err = run("verify", file, "--config", file)
    assert code == 2
    assert "two configuration files" in err


def test_what_passed_is_shown_before_the_error(run: Run) -> None:
    code, out, err = run("verify", "duel", *SMALL, "opponents={rock: 1, rokc: 1}")
    assert code == 2
    assert lines_of(out) == ["world"]
    assert err.startswith("[ERROR] unknown opponent 'rokc' (did you mean 'rock'?)")
    code, _, err = run("verify", "duel", "world.num_envs=8", "ppo.n_steps=16", "ppo.batch_size=60")
    assert code == 2
    assert "batch_size 60 must divide" in err


def test_a_plugin_brings_its_reward_terms(run: Run, tmp_path: Path) -> None:
    plugin = tmp_path / "verify_terms.py"
    plugin.write_text(
        "from ludus.rewards.terms import reward_term\n"
        "@reward_term('duel')\n"
        "def verify_command_term(moment):\n"
        "    return moment.events['reward']\n"
    )
    words = ("verify", "duel", *SMALL, "opponents=rock", "rewards.weights={verify_command_term: 1.0}")
    code, _, err = run(*words)
    assert code == 2
    assert "unknown reward term of duel 'verify_command_term'" in err
    code, out, _ = run(*words, "--plugin", plugin)
    assert code == 0
    assert "reward terms verify_command_term" in out
