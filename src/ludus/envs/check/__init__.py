"""The conformance kit: check that an environment keeps the batched contract; see `check_env`."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ludus.core.errors import ConformanceError
from ludus.core.faults import let_pass
from ludus.core.text import blame
from ludus.envs.base import BatchedEnv
from ludus.envs.check import contract_checks as contract
from ludus.envs.check import player_checks as player
from ludus.envs.check.probe import CheckOptions, ConformanceReport, EnvMaker, NotApplicableError, Probe
from ludus.envs.registry import make_env

__all__ = ["CHECKS", "CheckOptions", "ConformanceReport", "EnvMaker", "check_env", "run_checks"]

# Name -> check. A check yields what is wrong; its docstring says what must hold.
CHECKS: Mapping[str, Callable[[Probe], Iterator[str]]] = MappingProxyType(
    {
        "spec": contract.check_spec,
        "reset": contract.check_reset,
        "step": contract.check_step,
        "mirror": player.check_mirror,
        "choices": player.check_choices,
        "ends": contract.check_ends,
        "restart": contract.check_restart,
        "final_observations": contract.check_final_observations,
        "partial_reset": contract.check_partial_reset,
        "equal_seeds": contract.check_equal_seeds,
        "different_seeds": contract.check_different_seeds,
        "batch": contract.check_batch,
        "inputs": contract.check_inputs,
        "snapshot": contract.check_snapshot,
        "foreign_snapshot": contract.check_foreign_snapshot,
        "actions": player.check_actions,
        "bots": player.check_bots,
        "render": player.check_render,
        "close": player.check_close,
    }
)


def check_env(make: EnvMaker | str, options: CheckOptions | None = None) -> ConformanceReport:
    """Check that a world keeps the batched contract.

    Args:
        make: A function of (num_envs, seed, first_game) that returns a new batch, or the name of a registered
            world.
        options: How hard to look; the defaults take a few seconds for a small world.

    Returns:
        The checks that passed, and those that do not apply to this world.

    Raises:
        ConformanceError: At least one check failed; the message names each and says what was wrong.
    """
    report = run_checks(make, options)
    if report.failed:
        faults = [f"- {name}: {fault}" for name, faults in report.failed.items() for fault in faults]
        raise ConformanceError(
            f"{report.world} breaks the batched contract in {len(report.failed)} of {len(CHECKS)} checks:\n"
            + "\n".join(faults)
        )
    return report


def run_checks(make: EnvMaker | str, options: CheckOptions | None = None) -> ConformanceReport:
    """Run all checks and return what was found, failures included."""
    probe = Probe(_named_maker(make) if isinstance(make, str) else make, options or CheckOptions())
    passed: list[str] = []
    skipped: dict[str, str] = {}
    failed: dict[str, tuple[str, ...]] = {}
    for name, check in CHECKS.items():
        faults: list[str] = []
        try:
            # One by one, so that faults found before an exception are kept.
            for fault in check(probe):
                faults.append(fault)  # noqa: PERF402
        except NotApplicableError as reason:
            if not faults:
                skipped[name] = str(reason)
                continue
        except BaseException as error:  # whatever a world raises is a finding, not the kit's end
            let_pass(error)
            faults.append(f"raised {blame(error)}")
        if faults:
            failed[name] = tuple(faults)
        else:
            passed.append(name)
    return ConformanceReport(probe.spec.id, tuple(passed), MappingProxyType(skipped), MappingProxyType(failed))


def _named_maker(name: str) -> EnvMaker:
    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        return make_env(name, num_envs, seed=seed, first_game=first_game)

    return make
