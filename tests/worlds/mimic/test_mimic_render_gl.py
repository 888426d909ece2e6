"""Tests of how GL is opened: what is tried, what the errors say, and the software fallback in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.core.errors import VideoError
from ludus.worlds.mimic.rendering import gl

DRAW = """
import sys
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.rendering import gl
from ludus.worlds.mimic.rendering.painter import WalkerPainter
from ludus.worlds.mimic.rendering.figure import WalkerView

if "no-egl" in sys.argv:
    gl._MODULES = {"egl": "mujoco.no_such_module"}
walker = make_walker(MimicConfig())
with WalkerPainter(walker, (160, 90)) as painter:
    print(type(painter._context).__name__, painter.paint(WalkerView(walker.model.qpos0.copy(), None, 0.0, 1.0)).std())
"""


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


def test_glfw_without_a_screen_is_an_error_and_no_warning() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-c", DRAW],
        env={**environment, gl.SETTING: "glfw"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "VideoError: walkers cannot be drawn without OpenGL (glfw: GLFW finds no screen)" in done.stderr
    assert "GLFWError" not in done.stderr


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


@pytest.mark.parametrize(("words", "setting"), [((), "osmesa"), (("no-egl",), None)])
def test_software_rendering_draws_where_egl_does_not(words: tuple[str, ...], setting: str | None) -> None:
    try:
        gl._osmesa_library()
    except OSError:
        pytest.skip("needs libOSMesa, from the Debian package libosmesa6")
    environment = {name: value for name, value in os.environ.items() if name != gl.SETTING}
    if setting is not None:
        environment[gl.SETTING] = setting
    command = [sys.executable, "-c", DRAW, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    name, spread = done.stdout.split()
    assert name == "OsmesaContext"
    assert float(spread) > 20.0


def test_without_egl_and_without_osmesa_the_command_says_what_to_install(tmp_path: Path) -> None:
    """The whole command, in a process of its own in which neither library can be found."""
    code = (
        "import sys; from ludus.worlds.mimic.rendering import gl; gl._MODULES = {'egl': 'mujoco.no_such_module'}\n"
        "gl._OSMESA_LIBRARIES = ('libNoSuchThing.so',)\n"
        "sys.argv = ['ludus', 'demo', 'mimic', '--video', 'never.mp4', '--frames', '2']\n"
        "from ludus.cli.main import main; main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != gl.SETTING}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
    assert "[ERROR] walkers cannot be drawn without OpenGL" in done.stderr
    assert "libosmesa6" in done.stderr
    assert "Traceback" not in done.stderr
