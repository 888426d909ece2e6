"""NaN and infinity are refused by every option that is a number, with its name and exit code 2; so are absurd ones."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from tests.worlds.mimic.captures import STYLES, bvh_text, gait_clip
from typer.main import get_command

from ludus.cli.main import app
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import make_walker

Run = Callable[..., tuple[int, str, str]]


def float_options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields every option of a command and those below it that takes a number with a fraction."""
    below = getattr(command, "commands", {})
    if not below:
        hints = get_type_hints(inspect.unwrap(command.callback))
        for parameter in command.params:
            hint = hints.get(parameter.name)
            if hint is float or float in get_args(hint):
                yield path, parameter.opts[0]
    for name, each in below.items():
        yield from float_options(each, (*path, name))


OPTIONS = sorted(float_options(get_command(app)))


def test_options_of_several_groups_are_found() -> None:
    found = {(path[0], option) for path, option in OPTIONS}
    assert {("mimic", "--start"), ("analyze", "--seconds"), ("demo", "--fps")} <= found


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(("path", "option"), OPTIONS, ids=[" ".join((*path, option)) for path, option in OPTIONS])
def test_an_option_that_is_not_finite_is_a_wrong_use(run: Run, path: tuple[str, ...], option: str, text: str) -> None:
    code, _, err = run(*path, f"{option}={text}")
    assert code == 2
    assert f"Invalid value for '{option}'" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("text", ["0", "-1", "1e308", "-1e308", "1e-308"])
@pytest.mark.parametrize("option", ["--start", "--stop", "--height"])
def test_absurd_numbers_of_an_import_are_no_traceback(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    walker = make_walker(MimicConfig())
    Path("walk.bvh").write_text(bvh_text(walker, gait_clip(walker, 1.25, 60.0, 2.0), STYLES["mixamo"]))
    code, _, err = run("mimic", "motion", "import", "walk.bvh", f"{option}={text}")
    fits = (option, text) in {("--start", "0"), ("--start", "1e-308"), ("--stop", "1e308")}
    assert code == (0 if fits else 2), err
    assert "Traceback" not in err


@pytest.mark.parametrize("text", ["0", "-1", "1e308", "-1e308", "1e-308"])
@pytest.mark.parametrize("option", ["--speed", "--rate", "--height"])
def test_absurd_numbers_of_an_export_are_no_traceback(run: Run, tmp_path: Path, option: str, text: str) -> None:
    code, _, err = run("mimic", "motion", "export", tmp_path / "walk.csv", f"{option}={text}")
    assert code == 2
    assert option.removeprefix("--") in err
    assert "Traceback" not in err
