"""OpenGL without a screen: EGL where it can be opened, else Mesa's software renderer OSMesa, else an error that helps.

MuJoCo chooses its GL once, when it is imported, and PyOpenGL can never change its own later. So contexts are opened
here: that of EGL by MuJoCo's class, that of OSMesa by the library's three functions, which need no PyOpenGL.
"""

import ctypes
import importlib
import os
import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from ludus.core.errors import VideoError

SETTING = "MUJOCO_GL"  # MuJoCo's own variable; its C library reads it too
_CHOOSES_ITSELF = ("", "enable", "enabled", "on", "true", "1")
_GLFW = "mujoco.glfw"
# Name -> module of MuJoCo with a class `GLContext`; OSMesa is opened here.
_MODULES: Mapping[str, str] = MappingProxyType(
    {"egl": "mujoco.egl", "glfw": _GLFW, "glx": _GLFW, "wgl": _GLFW, "cgl": "mujoco.cgl"}
)
_NAMES = ("egl", "osmesa", "glfw")
_HEADLESS = ("egl", "osmesa")
_OSMESA_LIBRARIES = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")
_LONGEST_FAULT = 120  # characters of what a library says
_RGBA, _UNSIGNED_BYTE = 0x1908, 0x1401  # GL_RGBA, GL_UNSIGNED_BYTE
_DEPTH_BITS, _STENCIL_BITS, _ACCUMULATION_BITS = 24, 8, 0


class Context(Protocol):
    """What all contexts offer."""

    def make_current(self) -> None:
        """Make this context current in this thread."""

    def free(self) -> None:
        """Release it; may be called twice."""


class OsmesaContext:
    """Software rendering into memory, by the library of Debian's libosmesa6."""

    def __init__(self, width: int, height: int) -> None:
        """Open the context; raise OSError without the library, RuntimeError if it gives none."""
        self._library, self._size = _osmesa_library(), (width, height)
        create = self._library.OSMesaCreateContextExt
        create.restype = ctypes.c_void_p
        self._handle: int | None = create(_RGBA, _DEPTH_BITS, _STENCIL_BITS, _ACCUMULATION_BITS, None)
        if not self._handle:
            raise RuntimeError("OSMesa gives no context")
        self._pixels = ctypes.create_string_buffer(4 * width * height)

    def make_current(self) -> None:
        """Make this context current in this thread; raise RuntimeError if OSMesa refuses."""
        handle = ctypes.c_void_p(self._handle)
        if not self._library.OSMesaMakeCurrent(handle, self._pixels, _UNSIGNED_BYTE, *self._size):
            raise RuntimeError("OSMesa does not make its context current")

    def free(self) -> None:
        """Release it; may be called twice."""
        if self._handle:
            self._library.OSMesaMakeCurrent(None, None, _UNSIGNED_BYTE, 0, 0)
            self._library.OSMesaDestroyContext(ctypes.c_void_p(self._handle))
            self._handle = None


def open_context(width: int, height: int) -> Context:
    """Open a context for pictures of this size and make it current: of `MUJOCO_GL` if set, else EGL, then OSMesa.

    Raises VideoError, which names the packages that are missing, if nothing can be drawn here.
    """
    asked = os.environ.get(SETTING, "").strip().lower()
    if asked in _CHOOSES_ITSELF:
        names = _HEADLESS if sys.platform == "linux" else ("glfw",)
    elif asked in _MODULES or asked == "osmesa":
        names = (asked,)
    else:
        raise VideoError(f"{SETTING}={asked} lets nothing be drawn; valid: {', '.join(_NAMES)}, or leave it unset")
    faults = []
    for name in names:
        try:
            return _open(name, width, height)
        except Exception as error:  # drivers and bindings raise whatever they like
            said = " ".join(str(error).split()) or type(error).__name__
            faults.append(f"{name}: {said[:_LONGEST_FAULT]}")
    raise VideoError(
        f"walkers cannot be drawn without OpenGL ({'; '.join(faults)}); install Debian's libegl1 and libegl-mesa0 (for "
        f"{SETTING}=egl) or libosmesa6 (for {SETTING}=osmesa), and leave {SETTING} unset or set it to one of these"
    )


def _open(name: str, width: int, height: int) -> Context:
    if name == "osmesa":
        context: Context = OsmesaContext(width, height)
        os.environ[SETTING] = name  # MuJoCo's C library has to take its functions from there
    else:
        context = _open_module(_MODULES[name], width, height)
    try:
        context.make_current()
    except BaseException:
        context.free()
        raise
    return context


def _open_module(module: str, width: int, height: int) -> Context:
    if module == _GLFW:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without a screen GLFW only warns, and MuJoCo's class would not notice
            if not importlib.import_module("glfw").init():
                raise RuntimeError("GLFW finds no screen")
    return cast("Context", importlib.import_module(module).GLContext(width, height))


def _osmesa_library() -> ctypes.CDLL:
    faults = []
    for name in _OSMESA_LIBRARIES:
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)  # MuJoCo looks for functions in all that is loaded
        except OSError as error:
            faults.append(str(error))
    raise OSError(faults[0])


def check_gl() -> str:
    """Check that walkers can be drawn, for `ludus doctor --install`; raise VideoError if they cannot."""
    try:
        open_context(16, 16).free()
    except VideoError as error:
        raise VideoError(f"{error}. Training goes without it") from error
    return f"walkers can be drawn ({SETTING}={os.environ.get(SETTING, '') or 'not set'})"
