"""The document of some runs, in the form of the report's, made again part by part as the runs grow.

A part that took long is made seldom: at most a small share of the time is spent on each, so that a page costs the
training next to nothing however long the run and its tables are.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ludus.core.files import JSON, read_end
from ludus.core.text import blame
from ludus.reports.page.curves import make_panels
from ludus.reports.page.document import PARTS, Part, describe_notices, round_document
from ludus.reports.page.runs import Group, Run, group_runs
from ludus.reports.run_data import LOG
from ludus.watch.runs import Catalogue, WatchedRun

logger = logging.getLogger(__name__)

MOST_CHOSEN = 12  # runs on one page
LOG_LINES = 120
_POINTS = 400  # of a curve
_SHARE = 0.0005  # of the time, for each part
_SHARES = {"panels": 0.003, "runs": 0.001}  # that people wait for
_LOG_BYTES = 64 << 10
_PANELS, _NOTICES, _LOG = "panels", "notices", "log"
_EXAMINED_BYTES = 32 << 20  # of the episodes of a run
_FORGET_S = 60.0  # after which what was made for a page that nobody has open is released
_LATE_S = 1.5  # after which the doctor is first asked: a page must not wait for it
Texts: TypeAlias = dict[str, str]  # JSON by name
Choice: TypeAlias = tuple[tuple[str, ...], bool]  # ids of runs, and whether seeds are merged


@dataclass(slots=True)
class _Made:
    """The last making of a part."""

    texts: Texts = field(default_factory=dict)
    next_s: float = 0.0
    is_old: bool = True  # whether the runs have changed since


@dataclass(slots=True)
class _Page:
    """What the pages that show the same runs share."""

    made: dict[str, _Made]
    used_s: float
    shown: tuple[tuple[str, int, str], ...] = ()  # id, version and status of each run


class Documents:
    """Makes the documents of all pages; those that show the same runs share one."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._pages: dict[Choice, _Page] = {}
        self._versions: dict[str, int] = {}  # of the runs, by id

    def make(self, ids: Sequence[str], *, merged: bool) -> Texts:
        """Return the parts of the document as JSON, by name; panels are parts of their own, as `panels/NAME`.

        Args:
            ids: The runs; those that are gone are left out.
            merged: Whether runs that differ only in their seed become one line.
        """
        with self._catalogue.lock:
            runs = [run for run in map(self._catalogue.find, ids[:MOST_CHOSEN]) if run is not None and run.is_there]
            key, now_s = (tuple(run.id for run in runs), merged), time.monotonic()
            self._pages = {each: page for each, page in self._pages.items() if now_s - page.used_s < _FORGET_S}
            if key not in self._pages:
                self._pages[key] = _Page({name: _Made() for name in (*_PARTS, _LOG)}, now_s)
                self._pages[key].made[_NOTICES].next_s = now_s + _LATE_S
            page = self._pages[key]
            page.used_s = now_s
            if runs:
                self._refresh(page, runs, merged=merged)
            return {name: text for part in page.made.values() for name, text in part.texts.items()}

    def _refresh(self, page: _Page, watched: Sequence[WatchedRun], *, merged: bool) -> None:
        runs: dict[str, Run] = {}
        for each in watched:
            runs[each.id], changed = each.read()
            self._versions[each.id] = self._versions.get(each.id, 0) + changed
        shown = tuple((each.id, self._versions[each.id], str(each.summary.get("status"))) for each in watched)
        if shown != page.shown:
            is_turn = bool(page.shown) and [each[2] for each in shown] != [each[2] for each in page.shown]
            page.shown = shown
            for part in page.made.values():
                part.is_old = True
                if is_turn:  # a run has started, ended or died: everything is worth making at once
                    part.next_s = 0.0
        groups = group_runs(list(runs.values())) if merged else [Group(run.name, (run,)) for run in runs.values()]
        for name, maker in _PARTS.items():
            _make(page.made[name], _SHARES.get(name, _SHARE), partial(_make_texts, name, maker, groups))
        page.made[_LOG].is_old = True  # a log may grow while nothing else does
        _make(page.made[_LOG], _SHARE, lambda: {_LOG: _encode({each.name: read_log(each.folder) for each in watched})})


def _make(part: _Made, share: float, maker: Callable[[], Texts]) -> None:
    """Make a part again if it is old and its turn has come."""
    started_s = time.monotonic()
    if not part.is_old or started_s < part.next_s:
        return
    spent_s, part.is_old = time.thread_time(), False
    try:
        with np.errstate(all="ignore"):  # of numbers that no run writes
            part.texts = maker()
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        # Files may be damaged in unexpected ways; the rest of the page is still useful.
        logger.warning("[WARN] a part of the page cannot be made: %s", blame(error))
        part.texts = {}
    part.next_s = started_s + (time.thread_time() - spent_s) / share


def _make_texts(name: str, maker: Part, groups: Sequence[Group]) -> Texts:
    content = maker(groups)
    if name == _PANELS:
        named = {f"{_PANELS}/{round_document(panel.name)}": _encode(panel) for panel in content}
        return {**named, _PANELS: _encode([each.partition("/")[2] for each in named])}
    return {name: _encode(content)}


def _encode(content: Any) -> str:  # noqa: ANN401 - what `round_document` takes
    return json.dumps(round_document(content), separators=(",", ":"), allow_nan=False)


def read_log(folder: Path) -> list[JSON]:
    """Return the last lines of a run's log."""
    return list(read_end(folder / LOG, _LOG_BYTES)[-LOG_LINES:])


_PARTS: Mapping[str, Part] = {
    **PARTS,
    _PANELS: lambda groups: make_panels(groups, _POINTS),
    _NOTICES: lambda groups: describe_notices(groups, _EXAMINED_BYTES),
}
