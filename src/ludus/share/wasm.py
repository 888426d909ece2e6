"""Compile a captured program to WebAssembly: generated C++ of its kernels, its memory, and `assets/*.cpp`.

The compiler is that of the `ziglang` wheel. Floating-point numbers come out as on any CPU and GPU: WebAssembly rounds
as IEEE 754 says, kernels use +, -, *, / and square roots alone, and nothing is fused. Only the policy uses SIMD, which
adds up in another order.
"""

import hashlib
import importlib.util
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import warp as wp
from filelock import FileLock

from ludus.core.errors import MissingDependencyError, UnsupportedError
from ludus.core.files import temporary_folder, wrap_disk_errors, write_atomic, write_text_atomic
from ludus.envs.settings import host_threads
from ludus.share.program import (
    SEED,
    Argument,
    ArrayArgument,
    Launch,
    NumberArgument,
    Program,
    RecordArgument,
    StructArgument,
)

logger = logging.getLogger(__name__)

_Flat: TypeAlias = ArrayArgument | StructArgument | NumberArgument

RANDOM_HOLD = 4  # frames for which `play_random` holds an action
_COMMON = (
    *("-target", "wasm32-freestanding", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-math-errno"),
    *("-ffp-contract=off", "-fbuiltin", "-fno-threadsafe-statics", "-fvisibility=hidden", "-DNDEBUG", "-w"),
)
_KERNEL_FLAGS = (*_COMMON, "-O2", "-D_Float16=float")
_ENGINE_FLAGS = (*_COMMON, "-O2")
_POLICY_FLAGS = (*_COMMON, "-O3", "-msimd128")
_LINK_FLAGS = (
    *("-target", "wasm32-freestanding", "-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--gc-sections", "-s"),
    *("-Wl,-z,stack-size=262144",),
)
_CTYPES = {"int8": "signed char", "float32": "float", "int64": "int32_t"}  # of an action
_FIRST_DEFINITION = re.compile(r"^(?:struct|static|template|extern|inline|CUDA_CALLABLE)\b", re.MULTILINE)
_INCLUDED = '#include "program.h"'
_EXPORT = re.compile(r"^EXPORT [^(]*?(\w+)\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A translation unit."""

    name: str
    source: str
    flags: tuple[str, ...]


def compile_program(program: Program) -> bytes:
    """Return the WebAssembly module of a program.

    What was compiled before comes from a cache, file by file: other settings of a world cost a second.

    Raises:
        MissingDependencyError: The compiler is not installed.
        UnsupportedError: A kernel uses something that WebAssembly has not.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise MissingDependencyError("the compiler in ziglang", "web", "building a game for the browser")
    header, *units = _units(program)
    keys = [_key(unit.source, *unit.flags, header.source if _INCLUDED in unit.source else "") for unit in units]
    whole = cache_folder() / f"{_key(*keys, *_LINK_FLAGS)}.wasm"
    if whole.is_file():
        return whole.read_bytes()
    with wrap_disk_errors("the cache of compiled games, which XDG_CACHE_HOME can put into another folder,"):
        whole.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(whole.with_name("compiling.lock")):  # of two processes that want the same game, one compiles it
        module = whole.read_bytes() if whole.is_file() else _build(units, keys, header, whole.parent)
        write_atomic(whole, module)
    return module


def _build(units: Sequence[_Unit], keys: Sequence[str], header: _Unit, kept: Path) -> bytes:
    """Compile what is not among the kept objects, and link all of them."""
    objects = [kept / f"{key}.o" for key in keys]
    missing = [(unit, target) for unit, target in zip(units, objects, strict=True) if not target.is_file()]
    if len(missing) > 1:
        logger.warning("Compiling the game for the browser; this happens once on a machine and takes some seconds ...")
    with temporary_folder("ludus-share-") as folder, ThreadPoolExecutor(host_threads(None)) as team:
        write_text_atomic(folder / header.name, header.source)
        list(team.map(lambda each: _compile(each[0], each[1], folder), missing))
        exports = [found for unit in units for found in _EXPORT.findall(unit.source)]
        flags = [*_LINK_FLAGS, *(f"-Wl,--export={export}" for export in exports)]
        _run(["c++", *map(str, objects), "-o", "game.wasm", *flags], folder, "the game")
        return (folder / "game.wasm").read_bytes()


def cache_folder() -> Path:
    """Return where compiled games are kept: `$XDG_CACHE_HOME/ludus/share`, else `~/.cache/ludus/share`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "ludus" / "share"


def _key(*parts: str) -> str:
    """Return a name for what is made of these texts with the compiler and the headers that are installed."""
    tools = (version("ziglang"), str(wp.__version__))
    return hashlib.sha256("\0".join((*parts, *tools)).encode()).hexdigest()[:32]


def _units(program: Program) -> Iterator[_Unit]:
    yield _Unit("program.h", _header(program), ())
    yield _Unit("engine.cpp", _asset("engine.cpp"), _ENGINE_FLAGS)
    yield _Unit("policy.cpp", _asset("policy.cpp"), _POLICY_FLAGS)
    yield _Unit("memory.cpp", _memory(program), _ENGINE_FLAGS)
    binding = _asset("slot.h") + _asset("bind.h")
    for number, (module, source) in enumerate(program.sources.items()):
        launches = {launch.kernel: launch for launch in _launches(program) if launch.module == module}
        starters = "".join(_starter(program, launches[kernel]) for kernel in sorted(launches))
        # Modules that share structs define the same functions of them: each gets a namespace of its own.
        begin = _FIRST_DEFINITION.search(source)
        place = begin.start() if begin else len(source)
        space = re.sub(r"\W", "_", module)
        inner = f"namespace {space} {{\n{source[place:]}{binding}{starters}}}\n"
        yield _Unit(f"module{number}.cpp", source[:place] + inner, _KERNEL_FLAGS)


def _launches(program: Program) -> Iterator[Launch]:
    for launches in program.operations.values():
        yield from launches


def _compile(unit: _Unit, target: Path, folder: Path) -> None:
    write_text_atomic(folder / unit.name, unit.source)
    native = Path(str(files("warp"))) / "native"
    compiled = folder / f"{unit.name}.o"
    _run(["c++", "-c", unit.name, "-o", str(compiled), f"-I{native}", *unit.flags], folder, unit.name)
    write_atomic(target, compiled.read_bytes())


def _run(arguments: Sequence[str], folder: Path, what: str) -> None:
    command = [sys.executable, "-m", "ziglang", *arguments]
    caches = dict.fromkeys(
        ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(folder / "zig")
    )  # not in the home folder
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **caches}
    )
    if done.returncode:
        faults = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
        raise UnsupportedError(f"{what} cannot be compiled for WebAssembly: {'; '.join(faults[:3])[:600]}")


def _header(program: Program) -> str:
    """Return the declarations that `engine.cpp` needs."""
    action = program.action
    names = {"ACTIONS": "actions", "CHOSEN": "chosen", "TERMINATED": "terminated", "TRUNCATED": "truncated"}
    hashed = [program.index(name) for name in program.state]
    hashed += [program.index(f"observations.{entry}") for entry in program.observations]
    places = {constant: program.index(name) for constant, name in (names | {"SEED": SEED}).items()}
    constants = {
        **places,
        "BUFFER_COUNT": len(program.buffers),
        "SEATS": program.seats,
        "ACTION_SIZE": len(action.counts),
        "ACTION_NUMBERS": program.seats * len(action.counts),
        "ACTIONS_ARE_WIDE": int(action.dtype == "int64"),
        "SEED_WORD_COUNT": len(program.seed_words),
        "HASHED_COUNT": len(hashed),
        "RANDOM_HOLD": RANDOM_HOLD,
    }
    generated = (
        *(f"#define {name} {value}" for name, value in constants.items()),
        f"typedef {_CTYPES[action.dtype]} action_t;",
        f"static const SeedWord SEED_WORDS[] = {{{_rows(program.seed_words)}}};",
        f"static const uint32_t HASHED[] = {{{', '.join(map(str, hashed))}}};",
        f"static const uint32_t ACTION_COUNTS[] = {{{', '.join(map(str, action.counts))}}};",
    )
    return _asset("program.h") + _asset("slot.h") + "\n".join(generated) + "\n"


def _asset(name: str) -> str:
    return (files("ludus.share") / "assets" / name).read_text(encoding="utf-8")


def _rows(rows: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{{{first}, {second}}}" for first, second in rows)


def _memory(program: Program) -> str:
    """Return the buffers, and the operations as launches with their arguments."""
    lines = [_INCLUDED, 'extern "C" {']
    rows = []
    for number, buffer in enumerate(program.buffers):
        image = "nullptr"
        if buffer.is_reset and any(buffer.data):
            image = f"image_{number}"
            lines.append(f"static const unsigned char {image}[] = {{{_bytes(buffer.data)}}};")
        content = "" if buffer.is_reset or not any(buffer.data) else f" = {{{_bytes(buffer.data)}}}"
        lines.append(f"alignas(16) static unsigned char buffer_{number}[{max(len(buffer.data), 16)}]{content};")
        rows.append(f"{{buffer_{number}, {len(buffer.data)}, {image}, {str(buffer.is_reset).lower()}}}")
    lines += [
        f"void launch_{kernel}(unsigned, const Slot*);"
        for kernel in sorted({each.kernel for each in _launches(program)})
    ]
    for operation in ("step", "restart", "observe", "act_bots"):
        body = [_call(launch) for launch in program.operations.get(operation, ())]
        lines.append(f"void run_{operation}() {{\n{chr(10).join(body)}\n}}")
    return "\n".join((*lines, "}", f"extern const Buffer BUFFERS[] = {{{', '.join(rows)}}};", ""))


def _bytes(data: bytes) -> str:
    return ",".join(map(str, data))


def _call(launch: Launch) -> str:
    """Return a block that launches a kernel with its arguments."""
    numbers, slots = [], []
    for place, (_, argument) in enumerate(_flat(launch.arguments)):
        if isinstance(argument, NumberArgument):
            numbers.append(f"alignas(8) static const unsigned char number_{place}[] = {{{_bytes(argument.data)}}};")
            slots.append(f"{{number_{place}}}")
        elif isinstance(argument, ArrayArgument):
            shape, strides = (", ".join(map(str, each)) for each in (argument.shape, argument.strides))
            slots.append(f"{{buffer_{argument.buffer}, {len(argument.shape)}, {{{shape}}}, {{{strides}}}}}")
        else:
            slots.append(f"{{buffer_{argument.buffer}}}")
    table = f"static const Slot slots[] = {{{', '.join(slots)}}};"
    return f"{{ {' '.join(numbers)} {table} launch_{launch.kernel}({launch.threads}, slots); }}"


def _starter(program: Program, launch: Launch) -> str:
    """Return a function that launches a kernel with the arguments in a table.

    It depends on the kernel alone, so that what is compiled serves all settings of a world.
    """
    lines = []
    for place, (name, argument) in enumerate(_flat(launch.arguments)):
        if isinstance(argument, ArrayArgument):
            lines.append(f"bind_array(args.{name}, slots[{place}]);")
            continue
        size = len(argument.data if isinstance(argument, NumberArgument) else program.buffers[argument.buffer].data)
        lines.append(f'static_assert(sizeof(args.{name}) == {size}, "layout of {name}");')
        lines.append(f"__builtin_memcpy(&args.{name}, slots[{place}].data, {size});")
    return (
        f'extern "C" void launch_{launch.kernel}(unsigned threads, const Slot* slots)\n{{\n'
        f"wp_args_{launch.kernel} args;\n{chr(10).join(lines)}\n"
        f"wp::launch_bounds_t<1> dim = {{{{threads}}, threads, 1}};\n{launch.kernel}_cpu_forward(&dim, &args);\n}}\n"
    )


def _flat(arguments: Iterable[tuple[str, Argument]], prefix: str = "") -> Iterator[tuple[str, _Flat]]:
    """Yield arguments by their paths; fields of a struct with arrays one by one."""
    for name, argument in arguments:
        if isinstance(argument, RecordArgument):
            yield from _flat(argument.fields, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", argument
