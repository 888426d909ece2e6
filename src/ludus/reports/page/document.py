"""The report: one JSON document of numbers, text and lists, written into one HTML file.

The page holds the document, our own scripts and styles; it may load nothing and run nothing else. Everything that a
run's files say is data: it stands in the page as JSON without a single `<`, and the scripts put it on the page as text.
Texts are cut, and what turns the order of letters is escaped.
The content policy names the hashes of our script and style, so nothing else could run.
"""

import base64
import hashlib
import html
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ludus.core.files import JSON, write_text_atomic
from ludus.core.tables import Table, phase_starts, read_table
from ludus.core.text import page_text
from ludus.reports import run_data as files
from ludus.reports.doctor import examine
from ludus.reports.page.curves import MOST_POINTS, Curve, curve_of, make_panels, read_times, title_of
from ludus.reports.page.evaluations import read_evaluations, read_latents, read_payoffs
from ludus.reports.page.runs import Group, Run, Setting, group_runs, read_runs, settings_by_part

_STYLE = "page.css"
_SHARED = ("elements.js", "chart.js", "marks.js", "sections.js")  # of all pages; each uses what those before it have
# Of the page of runs, report or live. The last one starts the report, for which the painters of the worlds come first.
SCRIPTS = (*_SHARED, "player.js", "page.js")
_TEMPLATE = "page.html"

ALARM, WARNING, INFO = "alarm", "warning", "info"
_UNENDED = {"killed": "was killed", "silent": "has not ended; whether it is still running is unknown"}  # by status
_MOST_ROLLBACKS = 5
_MOST_WARNINGS = 20
_MOST_NOTICES = 200  # of a run
_LONGEST_TEXT = 1000  # letters of a sentence, a command or a line of a log
_MOST_PHASES = 100
_MOST_ENTRIES = 10_000  # of a list or an object that holds more than numbers
# Many worlds and policies do not write these, and resources can be switched off.
_NOT_ALWAYS = (files.STRATEGY, files.OPPONENTS, files.EPISODE_METRICS, files.RESOURCES)
_MOST_EXAMINED_BYTES = 256 << 20  # of episodes; more would take too long
_KNOWN_KEYS = ("world", "seed", "user", "sessions", "parent")

_STACK_POINTS = 160
_PER_STEPS = 1000.0  # reward terms are shown per this many env steps
MOST_BYTES = 5_000_000
_SPARE_BYTES = 100_000  # for scripts and styles
Part: TypeAlias = Callable[[Sequence[Group]], Any]


def make_page(document: JSON, title: str, painters: Sequence[str] = ()) -> str:
    """Return the whole HTML file.

    The painters are scripts that draw replays, one per world; they come with the worlds' packages, never from a run.
    """
    *shared, main = map(read_asset, SCRIPTS)
    scripts = "\n".join((*shared, *painters, main))
    return fill_page(read_asset(_TEMPLATE), title=title, style=read_asset(_STYLE), scripts=scripts, document=document)


def write_page(file: Path, title: str, document: Mapping[str, Any], *scripts: str, style: str = "") -> None:
    """Write a page of its own scripts and more style, after those of all pages, that shows a document and its date.

    Raises:
        StoreError: The file cannot be written.
    """
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    text = fill_page(
        read_asset(_TEMPLATE),
        title=title,
        style=read_asset(_STYLE) + (read_asset(style) if style else ""),
        scripts="\n".join(map(read_asset, (*_SHARED, *scripts))),
        document=round_document({**document, "made": made}),
    )
    write_text_atomic(file, text)


def fill_page(template: str, *, title: str, style: str, scripts: str, document: JSON, script_sources: str = "") -> str:
    """Return an HTML file from its template; its content policy allows this style and these scripts alone.

    `script_sources` are further sources of the policy's `script-src`, such as `'wasm-unsafe-eval'`.
    """
    script = f'"use strict";\n(() => {{\n{scripts}\n}})();\n'
    allowed = f"script-src '{_hash(script)}'{' ' * bool(script_sources)}{script_sources}; style-src '{_hash(style)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    parts = {
        "policy": html.escape(policy, quote=True),
        "title": html.escape(page_text(title)),
        "style": style,
        "data": embedded(document),
        "script": script,
    }
    pieces = template.split("{{")
    # One pass over the template: what is put in is never looked at again, whatever it holds.
    return pieces[0] + "".join(_filled(piece, parts) for piece in pieces[1:])


def embedded(document: JSON) -> str:
    """Return JSON that can stand inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _filled(piece: str, parts: dict[str, str]) -> str:
    name, _, rest = piece.partition("}}")
    return parts[name] + rest


def read_asset(name: str) -> str:
    """Return the text of a script, style or template of the page."""
    return (resources.files("ludus.reports.page") / "assets" / name).read_text(encoding="utf-8")


def round_document(value: Any) -> JSON:  # noqa: ANN401 - whatever a part is made of
    """Return records, arrays and values as a shown document; floats have five digits, enough for a chart.

    Whole numbers stay as they are, and NaN or Inf becomes None.
    """
    return _shown(value, _rounded)


def shown_document(value: Any) -> JSON:  # noqa: ANN401 - likewise
    """Return a document whose texts are cut and escaped for a page, however long and many those of a file are."""
    return _shown(value, lambda number: number)


def _shown(value: Any, number: Callable[[float], JSON]) -> JSON:  # noqa: ANN401
    if isinstance(value, str):
        return page_text(value, _LONGEST_TEXT)
    if isinstance(value, Curve):
        band = {"low": value.low, "high": value.high} if value.has_band else {}
        value = {"x": value.x, "y": value.y, "seeds": value.seeds} | band
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    elif is_dataclass(value):
        value = _fields(value)
    if isinstance(value, dict):
        some = itertools.islice(value.items(), _MOST_ENTRIES)
        return {page_text(str(name)): _shown(each, number) for name, each in some}
    if isinstance(value, list | tuple):
        # Most of a document is lists of numbers, which are as long as they are.
        if all(type(each) in (int, float) for each in value):
            return [number(each) if type(each) is float else each for each in value]
        return [_shown(each, number) for each in value[:_MOST_ENTRIES]]
    shown: JSON = number(value) if isinstance(value, float) else value
    return shown


def _fields(record: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = value if value.is_integer() else float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


@dataclass(frozen=True, slots=True)
class Notice:
    """One line about a run."""

    run: str
    level: str  # `alarm`, `warning` or `info`
    text: str
    env_steps: int | None = None  # when it happened, if at some time
    details: tuple[str, ...] = ()  # more lines: evidence and remedy


def notices_of(run: Run, most_bytes: int = _MOST_EXAMINED_BYTES) -> tuple[Notice, ...]:
    """Return all notices of a run, the worst first; the doctor examines no more than so many bytes of episodes."""
    found = [Notice(run.name, *each) for each in (*_faults(run), *_sessions(run), *_history(run))]
    found += _findings(run, most_bytes)
    return tuple(sorted(found, key=lambda notice: (ALARM, WARNING, INFO).index(notice.level))[:_MOST_NOTICES])


def _findings(run: Run, most_bytes: int) -> Iterator[Notice]:
    """Yield the doctor's findings about a run."""
    episodes = run.folder / files.EPISODES
    if files.METRICS in run.missing or not files.is_inside(run.folder, files.EPISODES):
        return
    if episodes.is_file() and episodes.stat().st_size > most_bytes:
        yield Notice(run.name, INFO, f"Not examined by the doctor: {files.EPISODES} is too large; use `ludus doctor`")
        return
    try:
        findings = examine(replace(run, episodes=read_table(episodes))).findings
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        # Files may be damaged in ways that no diagnosis expects; the rest of the page is still useful.
        yield Notice(run.name, WARNING, f"The doctor cannot examine this run, whose files seem damaged: {error}")
        return
    for name, finding in findings:
        changes = [f"Change {change.line}" for change in finding.changes]
        details = (*finding.evidence, finding.remedy, *changes)
        yield Notice(run.name, WARNING, f"{finding.what} ({name})", None, details)


def _faults(run: Run) -> Iterator[tuple[str, str, int | None]]:
    warnings = run.run.get("warnings")
    for text in warnings[:_MOST_WARNINGS] if isinstance(warnings, list) else ():
        yield WARNING, str(text), None
    steps, rollbacks = run.metrics.numbers("env_steps"), np.nan_to_num(run.metrics.numbers("rollbacks"))
    places = np.flatnonzero(np.diff(rollbacks, prepend=0.0) > 0.0)
    for place in places[:_MOST_ROLLBACKS]:
        yield ALARM, "NaN or Inf: training was rolled back to a checkpoint", _step(steps[place])
    if len(places) > _MOST_ROLLBACKS:
        yield ALARM, f"{len(places) - _MOST_ROLLBACKS} more rollbacks", None
    skipped = np.nan_to_num(run.metrics.numbers("skipped_updates"))
    if skipped.any():
        text = f"{skipped.sum():,.0f} updates were skipped in {np.count_nonzero(skipped):,} iterations"
        yield WARNING, text, _step(steps[np.flatnonzero(skipped)[0]])
    for name in run.missing:
        if name not in _NOT_ALWAYS and run.state != "running":  # which has yet to write it
            yield (WARNING, f"{name} is missing, empty or unreadable; its charts are left out", None)


def _sessions(run: Run) -> Iterator[tuple[str, str, int | None]]:
    total, sessions = run.total_env_steps, run.sessions
    for number, session in enumerate(sessions, 1):
        last = number == len(sessions)
        if "ended" not in session and not (last and run.state in ("finished", "running")):
            text = _UNENDED.get(run.state, "has not ended: it is running, or was killed") if last else "was interrupted"
            yield WARNING, f"Session {number}, started {session.get('started', 'at an unknown time')}, {text}", None
    if run.state == "stopped" and total is not None:
        reason = sessions[-1].get("end_reason")
        because = f": {reason}" if isinstance(reason, str) and reason else ""
        yield WARNING, f"Stopped at {run.env_steps:,} of {total:,} env steps{because}", run.env_steps
    if len(sessions) > 1:
        yield INFO, f"Trained in {len(sessions)} sessions", None


def _history(run: Run) -> Iterator[tuple[str, str, int | None]]:
    parent = run.run.get("parent")
    if isinstance(parent, dict):
        changes = parent.get("changes")
        listed = f" with changes: {'; '.join(map(str, changes))}" if isinstance(changes, list) and changes else ""
        text = f"Forked from {parent.get('folder')}, checkpoint {parent.get('checkpoint')}{listed}"
        reached = parent.get("env_steps")
        yield INFO, text, reached if isinstance(reached, int) else None
    for name, reached in run.run.items():
        if name not in _KNOWN_KEYS and isinstance(reached, int):
            yield INFO, f"{name.replace('_', ' ').capitalize()} reached", reached


def _step(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None


def make_document(groups: Sequence[Group]) -> dict[str, JSON]:
    """Return the document of the page, without replays."""
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    parts = {name: round_document(part(groups)) for name, part in PARTS.items()}
    return {"made": made, **parts, "replays": [], "replay_notes": []}


def _runs(groups: Sequence[Group]) -> list[dict[str, JSON]]:
    return [describe_run(run, group.label) for group in groups for run in group.runs]


def describe_notices(groups: Sequence[Group], most_bytes: int = _MOST_EXAMINED_BYTES) -> list[Notice]:
    """Return the notices of all runs; see `notices_of`."""
    return [notice for group in groups for run in group.runs for notice in notices_of(run, most_bytes)]


def _settings(groups: Sequence[Group]) -> dict[str, list[Setting]]:
    return settings_by_part([[run.config for run in group.runs] for group in groups])


def _evaluations(group: Group) -> dict[str, Any] | None:
    found = read_evaluations(group)
    return None if found is None else _fields(found) | {"numbers": {name: title_of(name) for name in found.numbers}}


def _of_each(part: Callable[[Group], Any]) -> Part:
    return lambda groups: [part(group) for group in groups]


def _group(group: Group) -> dict[str, Any]:
    scores = {"best": group.score("best"), "last": group.score("last")}
    names, color = [run.name for run in group.runs], group.runs[0].color
    phases = next(filter(None, (phase_starts(run.metrics) for run in group.runs)), [])[:_MOST_PHASES]
    return {"label": group.label, "runs": names, "color": color, "phases": phases, "scores": scores}


def describe_run(run: Run, group: str) -> dict[str, JSON]:
    """Return the summary of a run."""
    first, last = (run.sessions[0], run.sessions[-1]) if run.sessions else ({}, {})
    started, command = first.get("started"), last.get("command")
    plain = (
        "world", "seed", "state", "env_steps", "parent_env_steps", "total_env_steps", "wall_s", "training_s",
        "steps_per_s", "best_score", "last_score",
    )  # fmt: skip
    return {
        "name": run.name,
        "group": group,
        **{name: getattr(run, name) for name in plain},
        "started": None if started is None else str(started),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
        "commit": run.commit,
        "versions": _words(last.get("versions")),
        "machine": _words(last.get("machine")),
        "missing": list(run.missing),
    }


def _rewards(group: Group) -> dict[str, Any] | None:
    """Return each term's contribution to the reward per 1,000 env steps, mean over seeds."""
    tables = [_per_step(run.rewards) for run in group.runs if len(run.rewards)]
    names = dict.fromkeys(name for table in tables for name in table.names if name != "env_steps")
    curves = {name: curve_of(tables, name, _STACK_POINTS) for name in names}
    known = {name: curve for name, curve in curves.items() if curve is not None}
    if not known:
        return None
    grid = max(known.values(), key=lambda curve: len(curve.x)).x
    return {"x": grid, "terms": {name: np.interp(grid, curve.x, curve.y) for name, curve in known.items()}}


def _per_step(table: Table) -> Table:
    steps = table.numbers("env_steps")
    taken = np.diff(steps, prepend=0.0)
    taken = np.where(taken > 0.0, taken, np.nan) / _PER_STEPS
    terms = [name for name in table.names if name not in ("iteration", "env_steps", "total")]
    return Table({"env_steps": steps.tolist()} | {name: (table.numbers(name) / taken).tolist() for name in terms})


def _words(mapping: object) -> JSON:
    return {str(name): str(value) for name, value in mapping.items()} if isinstance(mapping, dict) else {}


# What the document is made of; the live page makes these parts one by one, each as often as it is worth.
PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "groups": _of_each(_group),
        "runs": _runs,
        "notices": describe_notices,
        "settings": _settings,
        "panels": make_panels,
        "evaluations": _of_each(_evaluations),
        "rewards": _of_each(_rewards),
        "payoffs": _of_each(lambda group: read_payoffs(group) or None),
        "times": _of_each(lambda group: read_times(group, MOST_POINTS // 2)),
        "latents": _of_each(read_latents),
    }
)


@dataclass(frozen=True, slots=True)
class Report:
    """A written report."""

    file: Path
    size_bytes: int
    groups: tuple[Group, ...]
    left_out: tuple[str, ...]  # titles of replays that would have made it too large
    notes: tuple[str, ...]  # why replays are missing

    def describe(self) -> dict[str, JSON]:
        """Return its content as JSON values."""
        return {
            "file": str(self.file),
            "bytes": self.size_bytes,
            "runs": [describe_run(run, group.label) for group in self.groups for run in group.runs],
            "replays_left_out": list(self.left_out),
            "notes": list(self.notes),
        }


def default_file(folders: Sequence[Path]) -> Path:
    """Return the default path of a report: in the folder of its only run, else in the working directory."""
    return folders[0] / "report.html" if len(folders) == 1 else Path("report.html")


def read_groups(folders: Sequence[Path]) -> tuple[Group, ...]:
    """Read run folders and group those that differ only in their seed."""
    return group_runs(read_runs(folders))


def write_report(
    groups: Sequence[Group],
    file: Path,
    replays: Sequence[Mapping[str, JSON]] = (),
    notes: Sequence[str] = (),
    painters: Sequence[str] = (),
) -> Report:
    """Write the report of some runs, see `read_groups`; the folder of the file is created.

    Args:
        groups: The runs.
        file: Path of the report.
        replays: Matches as `ludus.evaluation.trajectory` gives them; those that do not fit are left out.
        notes: Why other replays are missing.
        painters: Scripts that draw the replays, one per world.

    Raises:
        StoreError: The file cannot be written.
    """
    document = make_document(groups)
    room = MOST_BYTES - _SPARE_BYTES - len(embedded(document)) - sum(len(script.encode()) for script in painters)
    shown: list[JSON] = []
    left_out: list[str] = []
    for replay in replays:
        content = shown_document(dict(replay))
        size = len(embedded(content))
        if size <= room:
            shown.append(content)
            room -= size
        else:
            left_out.append(str(replay.get("title", "")))
    too_large = f"the page would be larger than {MOST_BYTES / 1e6:.0f} MB"
    told = (*notes, *(f"{title} is left out: {too_large}" for title in left_out))
    document["replays"], document["replay_notes"] = shown, shown_document(list(told))
    title = ", ".join(group.label for group in groups)
    page = make_page(document, f"Ludus report: {title}", painters)
    write_text_atomic(file, page)
    return Report(file, len(page.encode("utf-8")), tuple(groups), tuple(left_out), told)
