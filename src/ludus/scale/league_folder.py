"""The folder of a league, from which it resumes; everything in it is YAML, JSON, safetensors and run folders.

    league.yaml                      the league with everything that it extends; `ludus league scale` changes it
    state.json                       members and learners, written whenever one changes
    payoffs.jsonl                    one line per report of matches, each with its own id; the payoff table is their sum
    snapshots/main-1-g1-0003.ludus    a member: a file like those of `ludus export`
    learners/main-1/gen-0001/        a run folder like any other; exploiters have one each time that they begin again

A report is safe once its line is. Whoever repeats it, a learner killed before it knew or a head killed
before it wrote `state.json`, uses the same id, and nothing counts twice.
"""

import json
import logging
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ludus.config import list_faults
from ludus.core.errors import FormatError, StateError, brief
from ludus.core.files import (
    EXPORT_SUFFIX,
    JSON,
    MAX_DOCUMENT_BYTES,
    clean_temporaries,
    make_folder,
    read_json_object,
    read_regular,
    write_atomic,
    write_text_atomic,
)
from ludus.league.payoffs import Record
from ludus.scale.matchmaking import Member, PayoffTable
from ludus.scale.population import LeaguePlan, Role
from ludus.store import DEFAULT_LIMITS
from ludus.training.loggers.csv_logger import AppendLog

logger = logging.getLogger(__name__)

STATE_FILE, PAYOFFS_FILE = "state.json", "payoffs.jsonl"
SNAPSHOTS_FOLDER, LEARNERS_FOLDER = "snapshots", "learners"
TRAINING, EVALUATION = "training", "evaluation"  # where a report comes from
_VERSION = 1
_RATING_SHARE = 0.02  # of the head's time may be spent on ratings, which only people look at
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_MOST_NAMED = 5
_MOST_COUNTED = 1 << 53  # beyond it sums are not exact

Matches: TypeAlias = Mapping[tuple[str, str], Record]
"""Matches by pair, from the side of the first."""


class LearnerRecord(BaseModel):
    """What is known of a learner.

    Attributes:
        name: Its name, such as `main-1`.
        role: Its role.
        state: `left` was taken out by `ludus league scale` and can come back.
        generation: How often it has begun, from 1.
        env_steps: Of its present generation.
        earlier_env_steps: Of all generations before.
        reported: Number of the last report of its present generation that was counted; -1 if there is none.
        replaced: How often its process was lost and replaced.
        reason: Why it is not running.
    """

    model_config = ConfigDict(extra="ignore")

    name: str = Field(min_length=1, max_length=100, pattern=r"^[a-z0-9-]+$")
    role: Role
    state: Literal["waiting", "running", "finished", "left", "failed"] = "waiting"
    generation: int = Field(default=1, ge=1)
    env_steps: int = Field(default=0, ge=0)
    earlier_env_steps: int = Field(default=0, ge=0)
    reported: int = Field(default=-1, ge=-1)
    replaced: int = Field(default=0, ge=0)
    reason: str = ""


class _State(BaseModel):
    model_config = ConfigDict(extra="ignore")

    version: Literal[1]
    session: int = Field(ge=0)
    wall_s: float = Field(ge=0.0)
    learners: list[LearnerRecord]
    members: list[Member]


class LeagueFolder:
    """A league on the disk.

    Attributes:
        path: The folder.
        session: How often the league was started.
        earlier_s: Wall time of all sessions before this one.
        members: Snapshots that are part of the league, oldest first.
        learners: By name.
        table: The payoff table.
        evaluated: Pairs that evaluators have played, the newer member first.
    """

    def __init__(self, path: Path) -> None:
        """Open a folder and read what is there.

        Raises:
            FormatError: A file is damaged.
            StoreError: The folder cannot be written.
        """
        self.path = path
        self.session, self.earlier_s = 0, 0.0
        self.members: list[Member] = []
        self._names: set[str] = set()
        self.learners: dict[str, LearnerRecord] = {}
        self.table = PayoffTable()
        self.evaluated: set[tuple[str, str]] = set()
        self._known: set[str] = set()  # ids of reports
        self._ratings: dict[str, float] = {}
        self._rate_again_s = 0.0
        make_folder(path / SNAPSHOTS_FOLDER)
        clean_temporaries(path)
        self._log = AppendLog(path / PAYOFFS_FILE)
        self._log.drop_torn_line()
        for number, line in enumerate(self._log.text().splitlines(), 1):
            self._count(*_parse_line(line, f"{path / PAYOFFS_FILE}:{number}"))
        if os.path.lexists(path / STATE_FILE):
            self._read_state()

    def _read_state(self) -> None:
        document = read_json_object(self.path / STATE_FILE, limit=MAX_DOCUMENT_BYTES)
        try:
            state = _State.model_validate(document)
        except ValidationError as error:
            raise FormatError(f"{self.path / STATE_FILE} is damaged: {list_faults(error)}") from error
        self.session, self.earlier_s = state.session, state.wall_s
        self.learners = {record.name: record for record in state.learners}
        names = [member.name for member in state.members]
        wrong = [name for name in names if not _NAME.fullmatch(name)]
        if wrong:
            raise FormatError(
                f"{self.path / STATE_FILE} names a member {brief(wrong[0])}, which cannot be a file's name"
            )
        if len({*names}) < len(names):
            raise FormatError(f"{self.path / STATE_FILE} names a member twice")
        self.members = [member for member in state.members if _is_file(self.snapshot_file(member.name))]
        self._names = {member.name for member in self.members}
        gone = [name for name in names if name not in self._names]
        if gone:
            named = ", ".join(gone[:_MOST_NAMED]) + (" ..." if len(gone) > _MOST_NAMED else "")
            logger.warning("[WARN] %d members leave the league, since their snapshots are gone: %s", len(gone), named)

    def close(self) -> None:
        """Close the files."""
        self._log.close()

    def learner(self, name: str, role: Role) -> LearnerRecord:
        """Return the record of a learner, a new one if it was never part of the league."""
        return self.learners.setdefault(name, LearnerRecord(name=name, role=role))

    def run_folder(self, record: LearnerRecord) -> Path:
        """Return the run folder of a learner's present generation."""
        return self.path / LEARNERS_FOLDER / record.name / f"gen-{record.generation:04}"

    def snapshot_file(self, name: str) -> Path:
        """Return the file of a member."""
        return self.path / SNAPSHOTS_FOLDER / f"{name}{EXPORT_SUFFIX}"

    def read_snapshot(self, name: str) -> bytes:
        """Return the content of a member's file."""
        return read_regular(self.snapshot_file(name), limit=DEFAULT_LIMITS.total_bytes)

    def has_member(self, name: str) -> bool:
        """Return whether a snapshot is part of the league."""
        return name in self._names

    def drop_member(self, name: str) -> None:
        """Take out a member whose file cannot be used; the file stays."""
        self.members = [member for member in self.members if member.name != name]
        self._names.discard(name)

    def add_member(self, member: Member, content: bytes) -> bool:
        """Write a snapshot and make it a member; return False if it is one already."""
        if member.name in self._names:
            return False
        write_atomic(self.snapshot_file(member.name), content)
        self.members.append(member)
        self._names.add(member.name)
        return True

    def report(self, report_id: str, source: str, matches: Matches) -> bool:
        """Count the matches of a report, durably; return False if it was counted before."""
        if report_id in self._known:
            return False
        rows: JSON = [[*pair, *record] for pair, record in matches.items() if record.matches]
        line: dict[str, JSON] = {"id": report_id, "source": source, "matches": rows}
        self._log.append(json.dumps(line, separators=(",", ":")) + "\n")
        self._log.flush()
        self._log.fsync()
        self._count(report_id, source, {pair: record for pair, record in matches.items() if record.matches})
        return True

    def _count(self, report_id: str, source: str, matches: Matches) -> None:
        if report_id in self._known:  # a file that was put together by hand
            return
        self._known.add(report_id)
        for pair, record in matches.items():
            self.table.add(*pair, record)
            if source == EVALUATION:
                self.evaluated.add(pair)

    def save(self, plan: LeaguePlan, *, state: str, reason: str, wall_s: float, evaluators: int) -> None:
        """Write `state.json`: what the league resumes from, and what the page shows.

        Args:
            plan: The league.
            state: `running`, `stopped` or `finished`.
            reason: Why it was stopped.
            wall_s: Wall time of this session.
            evaluators: How many evaluators are at work.
        """
        ratings = self._rate(must=state != "running")
        document: dict[str, JSON] = {
            "version": _VERSION,
            "world": plan.base.world.name,
            "state": state,
            "reason": reason,
            "session": self.session,
            "wall_s": round(self.earlier_s + wall_s, 3),
            "evaluators": evaluators,
            "matches": self.table.matches,
            "total_env_steps": plan.base.total_env_steps,
            "learners": [record.model_dump(mode="json") for record in self.learners.values()],
            "members": [_describe(member, ratings.get(member.name, 0.0)) for member in self.members],
        }
        write_text_atomic(self.path / STATE_FILE, json.dumps(document) + "\n")

    def _rate(self, *, must: bool) -> dict[str, float]:
        """Return the ratings of members; with many of them they are computed now and then."""
        started_s = time.monotonic()
        if must or started_s >= self._rate_again_s:
            self._ratings = self.table.ratings([member.name for member in self.members])
            now_s = time.monotonic()
            self._rate_again_s = now_s + (now_s - started_s) / _RATING_SHARE
        return self._ratings


def _is_file(path: Path) -> bool:
    """Return whether a name is a file's itself, not that of a link to one."""
    return os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode)


def _describe(member: Member, rating: float) -> JSON:
    """Return a member as JSON; `asdict` takes ten times as long, which counts with thousands of them."""
    return {
        "name": member.name,
        "learner": member.learner,
        "role": member.role,
        "env_steps": member.env_steps,
        "rating": round(rating, 1),
    }


def _parse_line(line: str, place: str) -> tuple[str, str, Matches]:
    try:
        document = json.loads(line)
        matches = {(str(row[0]), str(row[1])): parse_record(row[2:]) for row in document["matches"]}
        return str(document["id"]), str(document["source"]), matches
    except (ValueError, LookupError, TypeError, StateError) as error:
        raise FormatError(f"{place} is no report of matches: {error}; restore the file from a copy") from error


def parse_record(row: Iterable[object]) -> Record:
    """Return wins, draws and losses; raise StateError if they are none."""
    counts = [each for each in row if isinstance(each, int) and 0 <= each <= _MOST_COUNTED]
    if len(counts) != 3:
        raise StateError(f"wins, draws and losses are {brief(row)}")
    return Record(*counts)
