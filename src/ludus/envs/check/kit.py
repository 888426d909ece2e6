"""Runs all conformance checks on a world and says which failed, and how."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ludus.core.errors import ConformanceError
from ludus.envs.base import BatchedEnv
from ludus.envs.check.choice_checks import check_choices
from ludus.envs.check.episode_checks import check_ends, check_final_observations, check_partial_reset, check_restart
from ludus.envs.check.mirror_checks import check_mirror
from ludus.envs.check.player_checks import check_actions, check_bots, check_close, check_render
from ludus.envs.check.probe import Probe
from ludus.envs.check.random_checks import check_batch, check_different_seeds, check_equal_seeds, check_inputs
from ludus.envs.check.report import CheckOptions, ConformanceReport, EnvMaker, NotApplicableError
from ludus.envs.check.shape_checks import check_reset, check_spec, check_step
from ludus.envs.check.state_checks import check_foreign_snapshot, check_snapshot
from ludus.envs.registry import make_env

# Name -> check. A check yields what is wrong; its docstring says what must hold.
CHECKS: Mapping[str, Callable[[Probe], Iterator[str]]] = MappingProxyType(
    {
        "spec": check_spec,
        "reset": check_reset,
        "step": check_step,
        "mirror": check_mirror,
        "choices": check_choices,
        "ends": check_ends,
        "restart": check_restart,
        "final_observations": check_final_observations,
        "partial_reset": check_partial_reset,
        "equal_seeds": check_equal_seeds,
        "different_seeds": check_different_seeds,
        "batch": check_batch,
        "inputs": check_inputs,
        "snapshot": check_snapshot,
        "foreign_snapshot": check_foreign_snapshot,
        "actions": check_actions,
        "bots": check_bots,
        "render": check_render,
        "close": check_close,
    }
)


def check_env(make: EnvMaker | str, options: CheckOptions | None = None) -> ConformanceReport:
    """Checks that a world keeps the batched contract.

    Args:
        make: A function of (num_games, seed, first_game) that returns a new batch, or the name of a registered
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
    """Runs all checks and returns what was found, failures included."""
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
        except Exception as error:  # whatever a world raises is a finding, not the kit's end
            faults.append(f"raised {type(error).__name__}: {error}")
        if faults:
            failed[name] = tuple(faults)
        else:
            passed.append(name)
    return ConformanceReport(probe.spec.id, tuple(passed), MappingProxyType(skipped), MappingProxyType(failed))


def _named_maker(name: str) -> EnvMaker:
    def make(num_games: int, seed: int, first_game: int, /) -> BatchedEnv:
        return make_env(name, num_games, seed=seed, first_game=first_game)

    return make
