"""Reads motions out of CSV files, and writes them: a header with units in the names, then one line a frame."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ludus.core.errors import FormatError
from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.motion.table import MAX_COLUMNS, MAX_FRAMES, Faults, Table, read_columns

_RATE = "rate_hz"


def read_csv(path: Path, data: bytes) -> Table:
    """Reads a table out of the content of a CSV file.

    Raises:
        FormatError: The content is no table of numbers, or its columns are unknown; all faults are listed.
    """
    faults = Faults(path)
    lines = _lines(path, data)
    rate = _rate(lines, faults)
    rows = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not rows:
        raise FormatError(f"motion file {path} is empty; its first line must name the columns, such as right_knee_deg")
    place, names = f"line {rows[0][0]}", _cells(rows[0][1])
    if len(names) > MAX_COLUMNS:
        raise FormatError(f"motion file {path}: {place} names {len(names)} columns; at most {MAX_COLUMNS} are read")
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise FormatError(f"motion file {path}: {place} has no commas; columns must be separated by commas")
    columns = read_columns(names, place, faults)
    faults.check()
    frames = rows[1:]
    if len(frames) > MAX_FRAMES:
        raise FormatError(f"motion file {path} has {len(frames)} frames; at most {MAX_FRAMES} are read")
    values = _numbers(frames, names, faults)
    faults.check()
    return Table(path, columns, values, tuple(number for number, _ in frames), "line", rate)


def csv_text(columns: Mapping[str, Floats], rate_hz: float, comments: Sequence[str]) -> str:
    """Returns a file's text.

    Args:
        columns: Name with unit -> `(frames,)`.
        rate_hz: Frames a second.
        comments: Lines that stand at the top.
    """
    head = [f"# {comment}" for comment in comments]
    lines = [*head, f"# {_RATE}: {rate_hz:g}", ",".join(columns)]
    lines += [",".join(f"{value:.4f}" for value in row) for row in np.stack(list(columns.values()), axis=1)]
    return "\n".join(lines) + "\n"


def _lines(path: Path, data: bytes) -> list[tuple[int, str]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"motion file {path}: line {number} is no UTF-8 text; save it as plain CSV") from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]


def _cells(line: str) -> list[str]:
    return [cell.strip().removeprefix('"').removesuffix('"').strip() for cell in line.split(",")]


def _rate(lines: Sequence[tuple[int, str]], faults: Faults) -> float | None:
    """Returns what a comment such as `# rate_hz: 100` says, if there is one."""
    found = None
    for number, line in lines:
        name, colon, text = line.removeprefix("#").partition(":")
        if not (line.startswith("#") and colon and name.strip() == _RATE):
            continue
        rate = _number(text.strip())
        if rate is None or not math.isfinite(rate):
            faults.add(f"line {number}: {_RATE} is {text.strip()!r}, which is no number; write '# {_RATE}: 100'")
        elif found is not None and rate != found:
            faults.add(f"line {number}: {_RATE} is {rate:g}, but was {found:g} before; keep one of them")
        else:
            found = rate
    return found


def _numbers(frames: Sequence[tuple[int, str]], names: Sequence[str], faults: Faults) -> Floats:
    """Returns `(frames, columns)`; adds a fault for every line or cell that is not as it must be."""
    values = np.zeros((len(frames), len(names)))
    for frame, (number, line) in enumerate(frames):
        cells = _cells(line)
        if len(cells) != len(names):
            faults.add(f"line {number} has {len(cells)} cells, but the header names {len(names)} columns")
            continue
        for index, cell in enumerate(cells):
            value = _number(cell)
            if value is None:
                faults.add(f"line {number}, column {names[index]!r}: {cell[:40]!r} is not a number")
            elif not math.isfinite(value):
                faults.add(f"line {number}, column {names[index]!r}: {cell!r} is not finite; fill gaps before loading")
            else:
                values[frame, index] = value
    return values


def _number(cell: str) -> float | None:
    if "_" in cell:  # Python reads 1_000 as a number
        return None
    try:
        return float(cell)
    except ValueError:
        return None
