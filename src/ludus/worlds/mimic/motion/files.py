"""Read motions from CSV files, and write them: a header with units in the names, then one line per frame."""

import codecs
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ludus.core.errors import FormatError
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.motion.table import (
    BLOCK,
    MAX_COLUMNS,
    MAX_FRAMES,
    Faults,
    Table,
    parse_block,
    read_columns,
)

_RATE = "rate_hz"
_MAX_LINES = 2 * MAX_FRAMES + 1_000  # frames, as many blank lines between them, and comments
_MAX_LINE_BYTES = 10_000


def read_csv(path: Path, data: bytes) -> Table:
    """Read a table out of the content of a CSV file; raise FormatError with all faults if it is none."""
    faults = Faults(path)
    lines = list(_lines(path, data))
    rate = _comment_rate_hz(lines, faults)
    rows = [(number, line) for number, line in lines if not line.startswith("#")]
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
    """Return a file's text: comments, then columns `(frames,)` by name with unit."""
    head = [f"# {comment}" for comment in comments]
    lines = [*head, f"# {_RATE}: {rate_hz:g}", ",".join(columns)]
    line = ",".join(["%.4f"] * len(columns))
    lines += [line % row for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
    return "\n".join(lines) + "\n"


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    """Yield number and text of every line that is not blank; raise FormatError for too many, too long or no UTF-8."""
    data = data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    count = data.count(b"\n")
    if count > _MAX_LINES:
        raise FormatError(f"motion file {path} has {count} lines; at most {_MAX_LINES} are read")
    for number, line in enumerate(io.BytesIO(data), start=1):
        if len(line) > _MAX_LINE_BYTES:
            raise FormatError(
                f"motion file {path}: line {number} has {len(line)} bytes; at most {_MAX_LINE_BYTES} are read"
            )
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            raise FormatError(f"motion file {path}: line {number} is not UTF-8 text; save it as plain CSV") from error
        if text:
            yield number, text


def _cells(line: str) -> list[str]:
    return [cell.strip().removeprefix('"').removesuffix('"').strip() for cell in line.split(",")]


def _comment_rate_hz(lines: Sequence[tuple[int, str]], faults: Faults) -> float | None:
    """Return the rate of a comment such as `# rate_hz: 100`, if there is one."""
    found = None
    for number, line in lines:
        name, colon, text = line.removeprefix("#").partition(":")
        if not (line.startswith("#") and colon and name.strip() == _RATE):
            continue
        rate = _number(text.strip())
        if rate is None or not math.isfinite(rate):
            faults.add(f"line {number}: {_RATE} is {text.strip()!r}, which is not a number; write '# {_RATE}: 100'")
        elif found is not None and rate != found:
            faults.add(f"line {number}: {_RATE} is {rate:g}, but was {found:g} before; keep one of them")
        else:
            found = rate
    return found


def _numbers(frames: Sequence[tuple[int, str]], names: Sequence[str], faults: Faults) -> Floats:
    """Return `(frames, columns)`; add a fault for every line or cell that is not as it must be."""
    values = np.zeros((len(frames), len(names)))
    for start in range(0, len(frames), BLOCK):
        block = frames[start : start + BLOCK]
        parsed = parse_block([line for _, line in block], len(names), ",")
        values[start : start + BLOCK] = _cell_by_cell(block, names, faults) if parsed is None else parsed
    return values


def _cell_by_cell(frames: Sequence[tuple[int, str]], names: Sequence[str], faults: Faults) -> Floats:
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
