"""The table of diagnoses, and the examination that goes through it.

A new diagnosis is a function of a `RunData` that returns findings (none if all is well) or `Unknown`, and a line below.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ludus.reports.doctor.costs import memory_growth, slow
from ludus.reports.doctor.finding import Diagnosis, Finding, Unknown
from ludus.reports.doctor.learning import instability, not_learning
from ludus.reports.doctor.opponents import forgetting, overfitting_to_self_play
from ludus.reports.doctor.optimisation import entropy_collapse, kl_spikes, value_loss_exploding
from ludus.reports.doctor.play import falling_off, passive
from ludus.reports.doctor.rewards import dominating_term, reward_scale, zero_terms
from ludus.reports.doctor.strategy import encoder_ignored
from ludus.reports.run_data import RunData

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
    """What all diagnoses said of a run.

    Attributes:
        findings: What is wrong, with the diagnosis that found it, in the order of the table.
        healthy: Diagnoses that found nothing.
        unknown: Diagnoses that had too little to judge by, and what is missing.
    """

    findings: tuple[tuple[str, Finding], ...]
    healthy: tuple[str, ...]
    unknown: Mapping[str, str]

    def as_json(self) -> list[dict[str, Any]]:
        """Returns the findings as JSON."""
        return [{"diagnosis": name} | finding.as_json() for name, finding in self.findings]


def examine(data: RunData, diagnoses: Mapping[str, Diagnosis] = DIAGNOSES) -> Examination:
    """Goes through all diagnoses."""
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
