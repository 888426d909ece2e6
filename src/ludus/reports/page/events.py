"""Reads speeds from a run's `tensorboard/` folder, without TensorBoard's own readers, which would load everything."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ludus.reports.run_data import Numbers

FOLDER = "tensorboard"
_SPEED = "speed/env_steps_per_s"
_SHARE = "speed/share_"
_MOST_RECORD_BYTES = 4 << 20
_MOST_FILE_BYTES = 512 << 20  # what is beyond is left out; a run of 100,000 iterations writes 170 MB
_HEADER = struct.Struct("<QI")  # length of a record, and its checksum
_FOOTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Speeds:
    """How fast a run was.

    Attributes:
        env_steps: `(iterations,)`.
        steps_per_s: `(iterations,)`.
        shares: Share of the time by what it was spent on, mean over all iterations.
    """

    env_steps: Numbers
    steps_per_s: Numbers
    shares: dict[str, float]


def read_speeds(run_folder: Path) -> Speeds:
    """Returns the speeds of a run; of a stretch that was repeated after a resume the last one counts."""
    last = dict(_scalars(run_folder / FOLDER))
    rows = sorted(last.items())
    speeds = [(step, values[_SPEED]) for step, values in rows if _SPEED in values]
    shares = [
        {name: value for name, value in values.items() if name.startswith(_SHARE)} for _, values in rows
    ]  # fmt: skip
    kept = [row for row in shares if row]
    names = dict.fromkeys(name for row in kept for name in row)
    return Speeds(
        np.array([step for step, _ in speeds]),
        np.array([speed for _, speed in speeds]),
        {name.removeprefix(_SHARE): float(np.mean([row.get(name, 0.0) for row in kept])) for name in names},
    )


def _scalars(folder: Path) -> Iterator[tuple[float, dict[str, float]]]:
    """Gives step and speeds of every event; a file that is cut off or damaged ends there."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]

    for path in sorted(folder.glob("events.out.tfevents.*")):
        for record in _records(path):
            try:
                event = Event.FromString(record)
            except DecodeError:
                break
            values = {value.tag: value.simple_value for value in event.summary.value if value.tag.startswith("speed/")}
            finite = {name: float(value) for name, value in values.items() if np.isfinite(value)}
            if finite:
                yield float(event.step), finite


def _records(path: Path) -> Iterator[bytes]:
    read = 0
    with path.open("rb") as file:
        while read < _MOST_FILE_BYTES:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return
            length, _ = _HEADER.unpack(header)
            if length > _MOST_RECORD_BYTES:
                return
            record = file.read(length + _FOOTER_BYTES)
            if len(record) < length + _FOOTER_BYTES:
                return
            read += length
            yield record[:length]
