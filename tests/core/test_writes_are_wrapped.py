"""Nothing is written past the one place that turns a fault of the disk into a typed error."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ludus

SOURCE = Path(ludus.__file__).parent
WRITING = re.compile(
    r"tempfile\..*|shutil\.(copy.*|move)|np\.save.*|os\.(f?truncate|link|mkdir|makedirs|pwrite|rename|replace|symlink)"
    r"|.*\.(hardlink_to|mkdir|rename|savefig|symlink_to|touch|write_bytes|write_frames|write_text)",
    re.DOTALL,
)
EXEMPT = {
    "core/files.py": "is that place",
    "worlds/city/screen/supervisor.py": "a program without Ludus; its end is a GameLostError of its parent",
}


def writes(call: ast.Call) -> bool:
    """Says whether a call writes to a path."""
    function = ast.unparse(call.func)
    if function == "os.open":
        return any(flag in ast.unparse(call) for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"))
    if function == "open" or function.endswith(".open"):
        return has_writing_mode(call, 1 if function == "open" else 0)
    if function.endswith(".replace") and len(call.args) == 1 and not call.keywords:
        return True  # of a path: that of a text takes two arguments
    return WRITING.fullmatch(function) is not None


def has_writing_mode(call: ast.Call, position: int) -> bool:
    modes = [*call.args[position : position + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes)


def is_safe(call: ast.Call, around: list[ast.AST]) -> bool:
    """Says whether an OSError of a call is caught, or it writes to memory."""
    target = ast.unparse(call.args[0]) if call.args else ""
    for node in around:
        if isinstance(node, ast.With) and any("wrap_disk_errors(" in ast.unparse(item) for item in node.items):
            return True
        if isinstance(node, ast.Try) and any("OSError" in ast.unparse(each.type or node) for each in node.handlers):
            return True
        if isinstance(node, ast.FunctionDef) and f"{target} = io.BytesIO()" in ast.unparse(node):
            return True
    return False


def unsafe_writes(source: str) -> Iterator[str]:
    """Gives every call that writes and whose OSError nobody names."""
    waiting: list[tuple[ast.AST, list[ast.AST]]] = [(ast.parse(source), [])]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.Call) and writes(node) and not is_safe(node, around):
            yield f"line {node.lineno}: {ast.unparse(node)}"
        waiting += [(child, [*around, node]) for child in ast.iter_child_nodes(node)]


@pytest.mark.parametrize("package", sorted(path.name for path in SOURCE.iterdir() if path.suffix in ("", ".py")))
def test_every_write_is_wrapped(package: str) -> None:
    folder = SOURCE / package
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    found = {
        name: unsafe
        for name, file in ((file.relative_to(SOURCE).as_posix(), file) for file in files)
        if name not in EXEMPT and (unsafe := list(unsafe_writes(file.read_text(encoding="utf-8"))))
    }
    assert not found, "use ludus.core.files: write_atomic, make_folder, temporary_folder, or wrap_disk_errors"


@pytest.mark.parametrize(
    "line",
    ["open('a', 'w')", "path.open('ab')", "path.open(mode='r+')", "path.write_text('')", "path.mkdir()",
     "os.replace(a, b)", "path.replace(target)", "os.open(path, os.O_WRONLY)", "figure.savefig(path)",
     "shutil.copyfile(a, b)", "tempfile.TemporaryFile()", "np.savez(path)"],
)  # fmt: skip
def test_a_write_is_found_and_a_wrapped_one_is_not(line: str) -> None:
    assert list(unsafe_writes(line))
    assert not list(unsafe_writes(f"with wrap_disk_errors(path):\n    {line}"))
    assert not list(unsafe_writes("path.open(); text.replace('a', 'b'); open(path, 'rb'); store.save(name)"))
