"""What several learners cost in turns in one process, beside the same learners one after the other.

Every learner is a run with its own seed, folder, tables and checkpoints, as `ludus train --seeds` makes them.
Each repeat trains them in both ways, so that other work on the machine meets both; medians are compared.

- On a CPU the cost is compared: the process's own time on all its threads, from the making of the first run to the end
  of the last one. Beside it stands what as many commands `ludus train` cost, measured on one of them: each also pays
  for the start of a process and the checks before a run.
- On a GPU the rate is compared with that of one learner alone, which learners one after the other have: env steps per
  second of all learners by the clock, from the moment when each has warmed up until the first one ends.

With `--host` it measures on a CPU what the limit on a GPU is made of: the work of the host per iteration besides what a
GPU does as CUDA graphs (playing, weighing the rollout, steps on minibatches). It prints CPU microseconds, calls of
operations of torch, each of which a GPU would start by itself, and the lines that call most of them.

    python benchmarks/together.py                                                  # 16 small learners on the CPU
    python benchmarks/together.py --host --cases brawl:quick                       # the host's work per iteration
    python benchmarks/together.py --device cuda --learners 16 --json together.json # 1 learner and 16 on a GPU
    python benchmarks/together.py --device cuda --cases brawl:quick --set world.num_envs=4096
"""

import argparse
import functools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import ludus
from ludus.algorithms.ppo.update import Updater
from ludus.rollout.collector import Collector
from ludus.training import BaseCallback, Iteration, TrainConfig
from ludus.training.presets import load_run_config
from ludus.training.run_folder import changed_config
from ludus.training.session import Received, training_turns
from ludus.training.together import Turns, train_together

CASES = ("brawl:debug", "brawl:quick")
_WARM_UP = 3  # iterations of a run on a GPU which compile and capture graphs
_ITERATIONS = {"brawl:debug": {"cpu": 10, "cuda": 100}, "brawl:quick": {"cpu": 2, "cuda": 60}}  # of one run
_HOST_WARM_UP, _HOST_ITERATIONS = 30, 20  # with --host; in the first iterations no episode of brawl ends
_LINES = 12  # that call the most operations
# What a GPU does as CUDA graphs, and operations that only make another view of a tensor.
_RECORDED = (
    (Collector, "_play"), (Collector, "_finish"), (Updater, "_minibatch_step"), (Updater, "_measure"),
    (Updater, "_clear"),
)  # fmt: skip
_VIEWS = frozenset({"alias", "detach", "expand", "permute", "select", "slice", "split", "split_with_sizes", "squeeze",
                    "t", "transpose", "unbind", "unsqueeze", "view", "_unsafe_view"})  # fmt: skip
_QUIET = ("evaluation=null", "monitoring.console=off", "monitoring.tensorboard=false", "monitoring.curves=false")


def main() -> None:
    """Measure, print one line per case, and write a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="WORLD:PRESET each")
    parser.add_argument("--iterations", type=int, help=f"of each run; on a GPU more than {_WARM_UP}")
    parser.add_argument("--repeats", type=int, default=2, help="of each way")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all runs, such as world.num_envs=4096")
    parser.add_argument("--host", action="store_true", help="measure the host's work per iteration, on the CPU")
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args()
    is_cuda = torch.device(options.device).type == "cuda"
    if options.host:
        for case in options.cases:
            measure_host(case, ["world.device=cpu", *_QUIET, *options.set], options.iterations or _HOST_ITERATIONS)
        return
    name = torch.cuda.get_device_name(options.device).removeprefix("NVIDIA ") if is_cuda else "cpu"
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "threads": torch.get_num_threads()}
    report: dict[str, Any] = {"device": name, **machine, "learners": options.learners, "rows": []}
    for case in options.cases:
        iterations = options.iterations or _ITERATIONS.get(case, {}).get("cuda" if is_cuda else "cpu", 10)
        if is_cuda and iterations <= _WARM_UP:
            parser.error(f"--iterations {iterations}: the first {_WARM_UP} warm up; ask for more")
        words = [f"world.device={options.device}", *_QUIET, *options.set]
        measure = measure_rate if is_cuda else measure_cost
        row = measure(case, words, options.learners, iterations, options.repeats)
        report["rows"].append({"case": case, "iterations": iterations, "overrides": options.set, **row})
        if options.json is not None:  # an interrupted measurement keeps what it has
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure_cost(case: str, words: Sequence[str], learners: int, iterations: int, repeats: int) -> dict[str, Any]:
    """Compare CPU seconds: learners in turns, one after the other, and as commands."""
    config = load_case(case, words, iterations)
    train(config, 1)  # loads and compiles what later runs of this process find
    together, sequence = [], []
    for _ in range(repeats):
        together.append(cpu_seconds(config, learners, in_turns=True))
        sequence.append(cpu_seconds(config, learners, in_turns=False))
    command_s = command_seconds(case, [*words, f"total_env_steps={config.total_env_steps}"])
    together_s, sequence_s = statistics.median(together), statistics.median(sequence)
    print(
        f"[OK] {case}: {learners} learners of {config.total_env_steps:,} env steps cost {together_s:.1f} CPU seconds "
        f"together, {sequence_s:.1f} in sequence (ratio {together_s / sequence_s:.3f}) and {learners * command_s:.1f} "
        f"as commands (ratio {together_s / (learners * command_s):.3f})",
        flush=True,
    )
    return {
        "env_steps": config.total_env_steps,
        "together_cpu_s": together_s,
        "sequence_cpu_s": sequence_s,
        "commands_cpu_s": learners * command_s,
        "ratio": together_s / sequence_s,
        "together_cpu_s_all": together,
        "sequence_cpu_s_all": sequence,
    }


def measure_rate(case: str, words: Sequence[str], learners: int, iterations: int, repeats: int) -> dict[str, Any]:
    """Compare env steps per second: one learner alone, and learners in turns."""
    config = load_case(case, words, iterations)
    train(config, 1)
    alone, together, wall_s = [], [], []
    for _ in range(repeats):
        alone.append(warm_rate(train(config, 1)))
        started_s = time.perf_counter()
        together.append(warm_rate(train(config, learners)))
        wall_s.append(time.perf_counter() - started_s)
    alone_rate, together_rate = statistics.median(alone), statistics.median(together)
    print(
        f"[OK] {case}: {learners} learners make {together_rate:,.0f} env steps/s together, one alone {alone_rate:,.0f} "
        f"(ratio {together_rate / alone_rate:.2f}); {statistics.median(wall_s):.1f} s in all with making the runs",
        flush=True,
    )
    return {
        "env_steps": config.total_env_steps,
        "alone_steps_per_s": alone_rate,
        "together_steps_per_s": together_rate,
        "ratio": together_rate / alone_rate,
        "together_wall_s": statistics.median(wall_s),
        "alone_steps_per_s_all": alone,
        "together_steps_per_s_all": together,
    }


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts calls of torch operations outside of recorded functions, by the line of the package that calls them."""

    def __init__(self, host: "HostWork") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lines: Counter[str] = Counter()
        self._host, self._package = host, str(Path(ludus.__file__).parent)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch leaves it untyped
        types: Any,  # noqa: ANN401
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        if self._host.is_measured and func.overloadpacket.__name__ not in _VIEWS:
            frame: Any = sys._getframe(1)  # noqa: SLF001 - a traceback of each call would take minutes
            while frame is not None and not frame.f_code.co_filename.startswith(self._package):
                frame = frame.f_back
            if frame is not None:
                self.lines[f"{frame.f_code.co_filename.removeprefix(self._package)[1:]}:{frame.f_lineno}"] += 1
        return func(*args, **(kwargs or {}))


class HostWork(BaseCallback):
    """Takes the CPU time of every iteration without that of recorded functions."""

    def __init__(self) -> None:
        self.times_s: list[float] = []
        self._inside, self._recorded_s, self._last_s = 0, 0.0, 0.0

    @property
    def is_measured(self) -> bool:
        """Whether this is an iteration that counts, and no recorded function."""
        return len(self.times_s) > _HOST_WARM_UP and not self._inside

    def on_iteration(self, iteration: Iteration) -> None:
        """Note the end of an iteration."""
        now_s = time.thread_time()
        self.times_s.append(now_s - self._last_s - self._recorded_s)
        self._last_s, self._recorded_s = now_s, 0.0

    @contextmanager
    def leaving_out_recorded(self) -> Iterator[None]:
        """Let calls of recorded functions tell when they begin and end."""
        saved = [(owner, name, getattr(owner, name)) for owner, name in _RECORDED]
        for owner, name, function in saved:
            setattr(owner, name, self._around(function))
        try:
            yield
        finally:
            for owner, name, function in saved:
                setattr(owner, name, function)

    def _around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def outside(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any function
            started_s = time.thread_time()
            self._inside += 1
            try:
                return function(*arguments, **named)
            finally:
                self._inside -= 1
                if not self._inside:
                    self._recorded_s += time.thread_time() - started_s

        return outside


def measure_host(case: str, words: Sequence[str], iterations: int) -> None:
    """Print CPU time and operations of the host per iteration, of one run for each."""
    config = load_case(case, [*words, "ppo.native=false"], _HOST_WARM_UP + iterations)
    timed, counted = HostWork(), HostWork()
    operations = Operations(counted)
    for host, mode in ((timed, nullcontext()), (counted, operations)):
        with tempfile.TemporaryDirectory() as name, host.leaving_out_recorded(), mode:
            run = training_turns(config, Path(name) / "run", Received(), title="together", callbacks=[host])
            train_together([run], "cpu")
    median_s = statistics.median(timed.times_s[_HOST_WARM_UP:])
    least_s = min(timed.times_s[_HOST_WARM_UP:])
    print(
        f"[OK] {case}: the host works {1e6 * median_s:,.0f} us per iteration (at least {1e6 * least_s:,.0f}) and calls "
        f"{sum(operations.lines.values()) / iterations:.1f} operations",
        flush=True,
    )
    for line, count in operations.lines.most_common(_LINES):
        print(f"  {count / iterations:6.2f}  {line}")


def load_case(case: str, words: Sequence[str], iterations: int) -> TrainConfig:
    """Return the settings of the runs of a case, with a budget of so many iterations against opponents."""
    world, _, preset = case.partition(":")
    config = load_run_config(world, preset, None, words)
    steps = config.hyperparameters.n_steps * config.world.num_envs
    return changed_config(config, [f"total_env_steps={iterations * steps}"])


@dataclass
class Clock(BaseCallback):
    """Note when each iteration of a run ended, and how far the run was."""

    times_s: list[float] = field(default_factory=list)
    env_steps: list[int] = field(default_factory=list)

    def on_iteration(self, iteration: Iteration) -> None:
        """Note the end of an iteration."""
        self.times_s.append(time.perf_counter())
        self.env_steps.append(iteration.counters.env_steps)


def train(config: TrainConfig, learners: int, *, in_turns: bool = True) -> list[Clock]:
    """Train learners with consecutive seeds in turns, or one after the other."""
    clocks = [Clock() for _ in range(learners)]
    with tempfile.TemporaryDirectory() as name:
        runs = [make_run(config, seed, Path(name), clock) for seed, clock in enumerate(clocks)]
        for group in [runs] if in_turns else [[run] for run in runs]:
            train_together(group, config.world.device)
    return clocks


def cpu_seconds(config: TrainConfig, learners: int, *, in_turns: bool) -> float:
    """Return the process's own time for the training of learners."""
    started_s = time.process_time()
    train(config, learners, in_turns=in_turns)
    return time.process_time() - started_s


def make_run(config: TrainConfig, seed: int, folder: Path, clock: Clock) -> Turns:
    """Return a run that has not begun."""
    settings = changed_config(config, [f"seed={seed}"])
    return training_turns(settings, folder / f"seed-{seed}", Received(), title="together", callbacks=[clock])


def warm_rate(clocks: Sequence[Clock]) -> float:
    """Return env steps per second from the moment when all runs are warm until the first one ends."""
    start_s = max(clock.times_s[_WARM_UP - 1] for clock in clocks)
    end_s = min(clock.times_s[-1] for clock in clocks)
    steps = 0
    for clock in clocks:
        before = 0
        for time_s, env_steps in zip(clock.times_s, clock.env_steps, strict=True):
            steps += env_steps - before if start_s < time_s <= end_s else 0
            before = env_steps
    return steps / (end_s - start_s)


def command_seconds(case: str, words: Sequence[str]) -> float:
    """Return the CPU seconds of the command that trains one such run, from the start of its process to its end."""
    world, _, preset = case.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ludus", "train", world, "--preset", preset, f"--run-dir={folder}/run", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
