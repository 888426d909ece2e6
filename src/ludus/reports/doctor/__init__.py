"""The doctor: names what is wrong with a run, with evidence, remedy and the setting to change."""

from ludus.reports.doctor.examine import DIAGNOSES, Examination, examine
from ludus.reports.doctor.finding import Change, Finding, Unknown

__all__ = ["Change", "DIAGNOSES", "Examination", "Finding", "Unknown", "examine"]
