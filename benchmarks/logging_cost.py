"""What a run's logging costs: the same training with all of it, and as a bare loop of collect, update and metrics.

Three ways do the same work, iteration by iteration in turns, so that noise of the machine meets all of them:

- bare: rewards are weighed, and nothing else is kept;
- logged: the trace of episodes, all tables, the console as plain lines, TensorBoard and the strategy log;
- guarded: logged, and also what makes a run safe: the guard against NaN and a copy of the whole state.

Their metrics must be equal to the last bit. The share of logging is that of `logged` over `bare`: the median over
pairs of iterations, with the quartiles as its spread, by the clock on the wall and by the process's own time, which
other work on the machine disturbs less (with `--threads 1` the two mean the same). Below, where the time of logging
went; what the trace does while games are played is in the total alone.

    python benchmarks/logging_cost.py
    python benchmarks/logging_cost.py --case cartpole
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import Tensor

from ludus.algorithms.ppo.learner import PpoLearner
from ludus.envs.base import EnvSpec, StepResult, packed
from ludus.envs.registry import make_env
from ludus.envs.world_parts import metrics_of
from ludus.league.opponents import LeagueOpponents
from ludus.policies.policy import Policy
from ludus.rewards.manager import RewardManager
from ludus.rewards.step_info import StepInfo
from ludus.rollout.learner_batch import LearnerBatch
from ludus.rollout.rewards import RolloutReward
from ludus.training.callbacks import Counters, Iteration
from ludus.training.components import Components, make_rewards
from ludus.training.config import TrainConfig
from ludus.training.loggers import make_loggers
from ludus.training.loggers.csv_logger import STRATEGY, CsvLogger
from ludus.training.nan_guard import NanGuard
from ludus.training.presets import load_run_config
from ludus.training.strategy_log import StrategyLog

GOAL = 0.03
_ENCODER = "{layers: 2, heads: 4, width: 64, feedforward: 256, window: 33, latent: 32}"
_STRATEGY = (
    f"policy.strategy={_ENCODER}",
    "ppo.sequence_length=32",
    "ppo.n_steps=32",
    "world.num_envs=32",
    "ppo.batch_size=256",
)
CASES: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "brawl": ("brawl", "quick", ("world.num_envs=512", "ppo.n_steps=64")),
    "strategy": ("brawl", "quick", _STRATEGY),
    "cartpole": ("gym:CartPole-v1", None, ()),
}


def main() -> None:
    """Measures and prints a table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="brawl", choices=list(CASES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--iterations", type=int, default=30, help="of each way")
    parser.add_argument("--threads", type=int, default=None, help="that torch may use")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("overrides", nargs="*", help="settings as key=value")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    world, preset, overrides = CASES[options.case]
    words = (*overrides, f"world.device={options.device}", "evaluation=null", *options.overrides)
    report = measure(load_run_config(world, preset, None, words), options.iterations)
    report = {"case": options.case, "device": options.device, "threads": torch.get_num_threads(), **report}
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        print(f"{name:<28} {value:,.4g}" if isinstance(value, float) else f"{name:<28} {value}")
    wall, own = report["logging_share"], report["logging_share_own_time"]
    mark = "OK" if max(wall, own) < GOAL else "WARN"
    print(f"[{mark}] logging costs {wall:.2%} of the time, {own:.2%} of the process's own; the goal is {GOAL:.0%}")


def measure(config: TrainConfig, iterations: int) -> dict[str, Any]:
    """Times the three ways in turns; see the names in the result."""
    times_s: dict[str, list[float]] = defaultdict(list)
    own_times_s: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bare = stack.enter_context(bare_way(config))
        logged = stack.enter_context(logged_way(config, folder / "logged"))
        guarded = stack.enter_context(logged_way(config, folder / "guarded", guarded=True))
        ways = {"bare": bare, "logged": logged.iterate, "guarded": guarded.iterate}
        order = list(ways)
        for round_number in range(iterations + 1):
            found = {}
            for name in order:
                started_s, own_started_s = time.perf_counter(), time.process_time()
                found[name] = ways[name]()
                if round_number:  # the first one warms up
                    times_s[name].append(time.perf_counter() - started_s)
                    own_times_s[name].append(time.process_time() - own_started_s)
            if not round_number:
                logged.parts_s.clear()
            assert str(found["bare"]) == str(found["logged"]) == str(found["guarded"]), "the same work"
            order = [*order[1:], order[0]]
    steps = config.world.num_envs * config.hyperparameters.n_steps
    shares = {
        "logging_share": _shares(times_s["logged"], times_s["bare"]),
        "logging_share_own_time": _shares(own_times_s["logged"], own_times_s["bare"]),
        "guards_share_own_time": _shares(own_times_s["guarded"], own_times_s["logged"]),
    }
    return {
        "iterations": iterations,
        **{f"{name}_env_steps_per_s": steps / statistics.median(times_s[name]) for name in ways},
        **{name: middle for name, (_, middle, _) in shares.items()},
        **{f"{name}_quartiles": [round(low, 4), round(high, 4)] for name, (low, _, high) in shares.items()},
        **{f"{name}_share": seconds / sum(times_s["logged"]) for name, seconds in logged.parts_s.items()},
    }


def _shares(more_s: list[float], less_s: list[float]) -> list[float]:
    """Returns the quartiles of the share of the longer time that the shorter one does not need, over pairs."""
    return statistics.quantiles([1.0 - less / more for more, less in zip(more_s, less_s, strict=True)], n=4)


@contextmanager
def bare_way(config: TrainConfig) -> Iterator[Callable[[], dict[str, float]]]:
    """Makes what a run trains with, without a workbench and its trace."""
    world = config.world
    with make_env(world.name, world.num_envs, world.device, seed=config.seed, config=world.settings or None) as env:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            policy = Policy(env.spec, config.policy, env.device)
        rewards, phases = make_rewards(env.spec, config), config.phases()
        opponents = LeagueOpponents(env, policy, phases[0].opponents, config.league, config.seed) if phases else None
        learner = PpoLearner(
            env,
            policy,
            config.hyperparameters,
            seed=config.seed,
            reward=RewardsOnly(env.spec, rewards),
            learner=opponents.learner if opponents else None,
            opponents=opponents,
        )
        if opponents is not None:
            opponents.attach(learner.collector.rows)

        def iterate() -> dict[str, float]:
            rewards.set_time(learner.env_steps)
            return learner.iterate(learner.env_steps / config.total_env_steps)

        yield iterate


class RewardsOnly(RolloutReward):
    """Weighs rollouts and forgets them."""

    def __init__(self, spec: EnvSpec, manager: RewardManager) -> None:
        self._spec, self._manager = spec, manager

    def begin(self, steps: int, rows: LearnerBatch) -> None:
        """See `RolloutReward`."""
        self._rows = rows
        self._kept = [
            (names, torch.zeros((steps, rows.count, len(names)), device=rows.index.device))
            for names in (self._spec.events, self._spec.state_metrics)
        ]
        self._frames = [list(kept) for _, kept in self._kept]

    def record(self, step: int, result: StepResult) -> None:
        """See `RolloutReward`."""
        for columns, (names, _), frames in zip(
            (result.events, result.state_metrics), self._kept, self._frames, strict=True
        ):
            if names:
                block = columns[names[0]] if len(names) == 1 else packed(columns, names)
                block = block.reshape(-1, len(names))
                if self._rows.plays_all:
                    frames[step].copy_(block)
                else:
                    torch.index_select(block, 0, self._rows.index, out=frames[step])

    def rewards(self) -> Tensor:
        """See `RolloutReward`."""
        events, state_metrics = (
            dict(zip(names, kept.permute(2, 0, 1).contiguous(), strict=True)) for names, kept in self._kept
        )
        return self._manager.contributions(StepInfo(events, state_metrics, 1.0 / self._spec.rate_hz)).sum(0)


@contextmanager
def logged_way(config: TrainConfig, folder: Path, *, guarded: bool = False) -> Iterator["LoggedRun"]:
    """Makes the same with all logging, into a folder of its own."""
    folder.mkdir()
    with Components(config) as components, (folder / "console.txt").open("w") as stream:
        run = LoggedRun(config, components, folder, stream, NanGuard(components) if guarded else None)
        yield run
        run.close()


class LoggedRun:
    """Does what the loop of a run does.

    Attributes:
        parts_s: Seconds in each part of logging so far; what the trace does while games are played is not among them.
    """

    def __init__(
        self, config: TrainConfig, components: Components, folder: Path, stream: TextIO, guard: NanGuard | None
    ) -> None:
        self._config, self._components, self._guard = config, components, guard
        spec, monitoring = (
            components.env.spec,
            config.monitoring.model_copy(update={"console": "plain", "curves": False}),
        )
        self._csv = CsvLogger(folder, metrics_of(spec.id), has_winners="wins" in spec.events)
        total = config.total_env_steps
        self._loggers = make_loggers(monitoring, folder, total_env_steps=total, title="benchmark", stream=stream)
        self._strategy = StrategyLog(components, monitoring.strategy_every_iterations)
        self._counters = Counters()
        self.parts_s: dict[str, float] = defaultdict(float)
        for logger in self._loggers:
            logger.on_training_start(self._counters)

    def iterate(self) -> dict[str, float]:
        """Runs one iteration and logs it."""
        components, learner, guard = self._components, self._components.learner, self._guard
        started_s = time.perf_counter()
        components.rewards.set_time(learner.env_steps)
        if guard is not None:
            guard.begin()
        learner.collect()
        learner.update((learner.env_steps - self._steps()) / self._config.total_env_steps)
        if guard is not None:
            guard.look()
        metrics = learner.metrics()
        if guard is not None:
            guard.verdict(metrics)
        with self._part("reading_episodes"):
            episodes, totals, times_s = components.trace.read(), components.trace.totals(), learner.times_s()
        updates = self._counters.updates + int(metrics["updates"])
        self._counters = Counters(learner.env_steps, learner.iterations, updates)
        with self._part("strategy_log"):
            rows = self._strategy.look(self._counters)
        if guard is not None:
            components.state()
        shown = {name: value if value == value else None for name, value in metrics.items()}
        iteration = Iteration(self._counters, shown, time.perf_counter() - started_s, episodes, totals, times_s)
        with self._part("tables"):
            self._csv.iteration(iteration)
            self._csv.table(STRATEGY, rows)
        with self._part("console_and_tensorboard"):
            for logger in self._loggers:
                logger.on_iteration(iteration)
        return metrics

    def close(self) -> None:
        """Closes all files."""
        for logger in self._loggers:
            logger.on_training_end(self._counters)
        self._csv.close()

    def _steps(self) -> int:
        buffer = self._components.learner.rollout
        return buffer.steps * buffer.rows

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        started_s = time.perf_counter()
        yield
        self.parts_s[name] += time.perf_counter() - started_s


if __name__ == "__main__":
    main()
