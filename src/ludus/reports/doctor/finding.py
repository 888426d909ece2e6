"""What a diagnosis says: a finding with its evidence and remedy, or that there is too little to judge by."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ludus.reports.run_data import RunData


@dataclass(frozen=True, slots=True)
class Change:
    """A setting to change.

    Attributes:
        setting: Its path, such as `ppo.entropy`.
        now: What the run had.
        better: What to try.
    """

    setting: str
    now: Any
    better: Any

    @property
    def line(self) -> str:
        """The change for people: `ppo.entropy: 0.001 -> 0.01`."""
        return f"{self.setting}: {flow(self.now)} -> {flow(self.better)}"

    @property
    def override(self) -> str:
        """The change for the command line of `ludus train`: `ppo.entropy=0.01`."""
        return f"{self.setting}={flow(self.better)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a run.

    Attributes:
        what: What is wrong, in a sentence.
        evidence: The numbers that say so, each with the file that it comes from.
        remedy: What to do.
        changes: Settings to change, the most promising one first; none where no setting helps.
    """

    what: str
    evidence: tuple[str, ...]
    remedy: str
    changes: tuple[Change, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Returns it as JSON."""
        changes = [
            {"setting": change.setting, "now": change.now, "better": change.better, "override": change.override}
            for change in self.changes
        ]
        return {"what": self.what, "evidence": list(self.evidence), "remedy": self.remedy, "changes": changes}

    def overrides(self) -> str:
        """Returns all changes as they are pasted into a shell."""
        return " ".join(shlex.quote(change.override) for change in self.changes)


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is too little to judge by.

    Attributes:
        reason: What is missing.
    """

    reason: str


Verdict: TypeAlias = Sequence[Finding] | Unknown
Diagnosis: TypeAlias = Callable[[RunData], Verdict]


def flow(value: object) -> str:
    """Returns a setting as YAML in one line; a constant schedule or weight as its number."""
    if isinstance(value, Mapping):
        if value.get("kind") == "constant" and "level" in value:
            return flow(value["level"])
        points = value.get("points")
        if isinstance(points, Sequence) and len(points) == 1:
            return flow(points[0][1])
        return "{" + ", ".join(f"{key}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)
