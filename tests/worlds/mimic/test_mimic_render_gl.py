"""Tests of how GL is opened: what is tried, what the errors say, and the software fallback in a process of its own."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import Commands

from ludus.core.errors import VideoError
from ludus.worlds.mimic.rendering import gl

# Begins as if nobody had chosen a library or had a screen.
BARE = """
import os
import sys

for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
    os.environ.pop(name, None)
"""
DRAW = """
_, os.environ["MUJOCO_GL"], *words = sys.argv
if not os.environ["MUJOCO_GL"]:
    del os.environ["MUJOCO_GL"]
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.rendering import gl
from ludus.worlds.mimic.rendering.painter import WalkerPainter
from ludus.worlds.mimic.rendering.figure import WalkerView

if "no-egl" in words:
    gl._MODULES = {"egl": "mujoco.no_such_module"}
walker = make_walker(MimicConfig())
with WalkerPainter(walker, (160, 90)) as painter:
    print(type(painter._context).__name__, painter.paint(WalkerView(walker.model.qpos0.copy(), None, 0.0, 1.0)).std())
"""


def draw(commands: Commands, folder: Path, setting: str, *words: str) -> tuple[int, str]:
    """Draw a walker in a process of its own with `MUJOCO_GL`, or without it; return the exit code and what it said."""
    program = folder / "draw.py"
    program.write_text(BARE + DRAW)
    command = commands.start(program, setting, *words)
    return command.wait(120.0), command.said


def failing(tried: list[str]) -> Callable[[str, int, int], gl.Context]:
    def open_nothing(name: str, _: int, __: int) -> gl.Context:
        tried.append(name)
        raise AttributeError(f"no {name} here\nand more lines")

    return open_nothing


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (None, ["egl", "osmesa"]),
        ("on", ["egl", "osmesa"]),
        ("egl", ["egl"]),
        ("OSMesa", ["osmesa"]),
        ("glfw", ["glfw"]),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="EGL and OSMesa are Linux's")
def test_egl_goes_before_osmesa_unless_the_user_has_chosen(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, names: list[str]
) -> None:
    if setting is None:
        monkeypatch.delenv(gl.SETTING, raising=False)
    else:
        monkeypatch.setenv(gl.SETTING, setting)
    tried: list[str] = []
    monkeypatch.setattr(gl, "_open", failing(tried))
    with pytest.raises(VideoError) as error:
        gl.open_context(64, 48)
    assert tried == names
    for words in (f"{names[0]}: no {names[0]} here", "libegl1", "libosmesa6", "MUJOCO_GL=egl", "MUJOCO_GL=osmesa"):
        assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("setting", ["off", "disable", "vulkan"])
def test_a_setting_that_draws_nothing_is_named(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(gl.SETTING, setting)
    with pytest.raises(VideoError, match=f"MUJOCO_GL={setting} lets nothing be drawn; valid: egl, osmesa, glfw"):
        gl.open_context(64, 48)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gl.SETTING, "osmesa")
    monkeypatch.setattr(gl, "_OSMESA_LIBRARIES", ("libNoSuchThing.so.8",))
    with pytest.raises(VideoError, match=r"osmesa: libNoSuchThing\.so\.8: cannot open .* libosmesa6"):
        gl.open_context(64, 48)


def test_glfw_without_a_screen_is_an_error_and_no_warning(commands: Commands, tmp_path: Path) -> None:
    _, said = draw(commands, tmp_path, "glfw")
    assert "VideoError: walkers cannot be drawn without OpenGL (glfw: GLFW finds no screen)" in said
    assert "GLFWError" not in said


def test_a_context_that_cannot_be_used_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = []

    class Useless:
        def __init__(self, _: int, __: int) -> None: ...

        def make_current(self) -> None:
            raise RuntimeError("not here")

        def free(self) -> None:
            freed.append(True)

    monkeypatch.setenv(gl.SETTING, "osmesa")
    monkeypatch.setattr(gl, "OsmesaContext", Useless)
    with pytest.raises(VideoError, match="osmesa: not here"):
        gl.open_context(64, 48)
    assert freed == [True]


@pytest.mark.parametrize(("setting", "words"), [("osmesa", ()), ("", ("no-egl",))])
def test_software_rendering_draws_where_egl_does_not(
    setting: str, words: tuple[str, ...], commands: Commands, tmp_path: Path
) -> None:
    try:
        gl._osmesa_library()
    except OSError:
        pytest.skip("needs libOSMesa, from the Debian package libosmesa6")
    code, said = draw(commands, tmp_path, setting, *words)
    assert code == 0, said
    name, spread = said.split()
    assert name == "OsmesaContext"
    assert float(spread) > 20.0


def test_without_egl_and_without_osmesa_the_command_says_what_to_install(commands: Commands, tmp_path: Path) -> None:
    """The whole command, in a process of its own in which neither library can be found."""
    program, folder = tmp_path / "program.py", tmp_path / "empty"
    folder.mkdir()
    program.write_text(f"""{BARE}
from ludus.worlds.mimic.rendering import gl

gl._MODULES = {{'egl': 'mujoco.no_such_module'}}
gl._OSMESA_LIBRARIES = ('libNoSuchThing.so',)
sys.argv = ['ludus', 'demo', 'mimic', '--video', 'never.mp4', '--frames', '2']
from ludus.cli.main import main

main()
""")
    command = commands.start(program, folder=folder)
    assert command.wait(120.0) == 2, command.said
    assert list(folder.iterdir()) == []
    assert "[ERROR] walkers cannot be drawn without OpenGL" in command.said
    assert "libosmesa6" in command.said
