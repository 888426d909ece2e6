"""The doctor: names what is wrong with a run, with evidence, remedy and the setting to change.

A new diagnosis is a function of a `RunData` that returns findings (none if all is well) or `Unknown`, and a line in
`DIAGNOSES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ludus.reports.doctor.costs import memory_growth, slow
from ludus.reports.doctor.finding import Change, Diagnosis, Finding, Unknown
from ludus.reports.doctor.learning import entropy_collapse, instability, kl_spikes, not_learning, value_loss_exploding
from ludus.reports.doctor.play import (
    dominating_term,
    encoder_ignored,
    falling_off,
    forgetting,
    overfitting_to_self_play,
    passive,
    reward_scale,
    zero_terms,
)
from ludus.reports.run_data import RunData

__all__ = ["Change", "DIAGNOSES", "Examination", "Finding", "Unknown", "examine"]

DIAGNOSES: Mapping[str, Diagnosis] = MappingProxyType(
    {
        "not-learning": not_learning,
        "instability": instability,
        "reward-scale": reward_scale,
        "zero-term": zero_terms,
        "dominating-term": dominating_term,
        "entropy-collapse": entropy_collapse,
        "kl-spikes": kl_spikes,
        "value-loss": value_loss_exploding,
        "self-play-overfit": overfitting_to_self_play,
        "forgetting": forgetting,
        "encoder-ignored": encoder_ignored,
        "passive": passive,
        "falling-off": falling_off,
        "slow": slow,
        "memory-growth": memory_growth,
    }
)


@dataclass(frozen=True, slots=True)
class Examination:
    """Results of all diagnoses of a run."""

    findings: tuple[tuple[str, Finding], ...]  # what is wrong and the diagnosis that found it, in the table's order
    healthy: tuple[str, ...]  # diagnoses that found nothing
    unknown: Mapping[str, str]  # diagnoses with too little data, and what is missing

    def as_json(self) -> list[dict[str, Any]]:
        """Return the findings as JSON."""
        return [{"diagnosis": name} | finding.as_json() for name, finding in self.findings]


def examine(data: RunData, diagnoses: Mapping[str, Diagnosis] = DIAGNOSES) -> Examination:
    """Run all diagnoses."""
    findings: list[tuple[str, Finding]] = []
    healthy, unknown = [], {}
    for name, diagnosis in diagnoses.items():
        verdict = diagnosis(data)
        if isinstance(verdict, Unknown):
            unknown[name] = verdict.reason
        elif verdict:
            findings += [(name, finding) for finding in verdict]
        else:
            healthy.append(name)
    return Examination(tuple(findings), tuple(healthy), unknown)
