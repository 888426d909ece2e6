"""Makes the report of run folders and writes it in one piece."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ludus.core.errors import ConfigError
from ludus.core.files import JSON, write_text_atomic
from ludus.reports.page.document import describe_run, make_document
from ludus.reports.page.html import embedded, make_page
from ludus.reports.page.runs import Group, group_runs, read_runs

MOST_BYTES = 5_000_000
_SPARE_BYTES = 100_000  # for scripts and styles


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written.

    Attributes:
        file: Where it is.
        size_bytes: How large it is.
        groups: The runs in it.
        left_out: Replays that would have made it too large, by title.
    """

    file: Path
    size_bytes: int
    groups: tuple[Group, ...]
    left_out: tuple[str, ...]

    def describe(self) -> dict[str, JSON]:
        """Returns what it is of, as JSON."""
        return {
            "file": str(self.file),
            "bytes": self.size_bytes,
            "runs": [describe_run(run, group.label) for group in self.groups for run in group.runs],
            "replays_left_out": list(self.left_out),
        }


def default_file(folders: Sequence[Path]) -> Path:
    """Returns where a report goes if nobody says: into the folder of its only run, else here."""
    return folders[0] / "report.html" if len(folders) == 1 else Path("report.html")


def read_groups(folders: Sequence[Path]) -> tuple[Group, ...]:
    """Reads run folders; those that differ in their seed alone are one group."""
    return group_runs(read_runs(folders))


def write_report(groups: Sequence[Group], file: Path, replays: Sequence[Mapping[str, JSON]] = ()) -> Report:
    """Writes the report of some runs.

    Args:
        groups: What `read_groups` gave.
        file: Where to; its folder is made.
        replays: Matches that play in the page; those that do not fit any more are left out.

    Raises:
        ConfigError: The file cannot be written.
    """
    document = make_document(groups)
    room = MOST_BYTES - _SPARE_BYTES - len(embedded(document))
    shown, left_out = [], []
    for replay in replays:
        size = len(embedded(dict(replay)))
        if size <= room:
            shown.append(dict(replay))
            room -= size
        else:
            left_out.append(str(replay.get("title", "")))
    document["replays"] = list(shown)
    title = ", ".join(group.label for group in groups)
    page = make_page(document, f"Ludus report: {title}"[:200])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomic(file, page)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}; name another file with --out") from error
    return Report(file, len(page.encode("utf-8")), tuple(groups), tuple(left_out))
