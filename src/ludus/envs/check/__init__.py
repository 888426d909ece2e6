"""The conformance kit: run `check_env` on any world to see whether it keeps the batched contract."""

from ludus.envs.check.kit import CHECKS, check_env, run_checks
from ludus.envs.check.report import CheckOptions, ConformanceReport, EnvMaker

__all__ = ["CHECKS", "CheckOptions", "ConformanceReport", "EnvMaker", "check_env", "run_checks"]
