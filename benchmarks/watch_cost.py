"""What `ludus watch` costs a run on the same cores: the same training with a page open, and with the watcher stopped.

One run trains and logs as always. Beside it run the real `ludus watch` and a reader that takes the stream of changes
as a browser does. Iteration by iteration they are stopped (SIGSTOP) and continued (SIGCONT) in turns, so that noise of
the machine meets both. The cost is the share of an iteration's time that it does not need without the watcher: the
median over pairs, with the quartiles as its spread. On a busy machine that is noise around the truth; the processor
time of the watcher per second of training, which other work disturbs less, is printed beside it.

With `--matches` the newest agent also plays its matches, and gets a new checkpoint every ten iterations.

    PYTHONPATH=. python benchmarks/watch_cost.py
    PYTHONPATH=. python benchmarks/watch_cost.py --matches --iterations 60
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch
from benchmarks.logging_cost import CASES, logged_way

from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint
from ludus.training.callbacks import Counters
from ludus.training.config import TrainConfig
from ludus.training.presets import load_run_config
from ludus.training.run_folder import RunLock, describe_run

GOAL = 0.01
_CHECKPOINT_EVERY = 10  # iterations
_READER = "import sys, urllib.request as u; s = u.urlopen(sys.argv[1])\nwhile s.readline(): pass"


def main() -> None:
    """Measures and prints a table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="brawl", choices=list(CASES))
    parser.add_argument("--iterations", type=int, default=30, help="of each way")
    parser.add_argument("--threads", type=int, default=None, help="that torch may use")
    parser.add_argument("--matches", action="store_true", help="also let the newest agent play")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("overrides", nargs="*", help="settings as key=value")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    world, preset, overrides = CASES[options.case]
    words = (*overrides, "world.device=cpu", "evaluation=null", *options.overrides)
    report = measure(load_run_config(world, preset, None, words), options.iterations, matches=options.matches)
    report = {"case": options.case, "matches": options.matches, "threads": torch.get_num_threads(), **report}
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        print(f"{name:<28} {value:,.4g}" if isinstance(value, float) else f"{name:<28} {value}")
    cost = report["watching_share"]
    print(f"[{'OK' if cost < GOAL else 'WARN'}] watching costs {cost:.2%} of the time; the goal is {GOAL:.0%}")


def measure(config: TrainConfig, iterations: int, *, matches: bool) -> dict[str, Any]:
    """Times iterations with and without the watcher in turns; see the names in the result."""
    times_s: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        with logged_way(config, folder) as run, RunLock(folder):
            describe_run(folder, config, Counters())
            if matches:
                save_agent(config, folder, 0)
            for _ in range(3):  # warms up, and writes what the watcher reads first
                run.iterate()
            with watching(folder.parent, matches=matches) as watcher:
                for number in range(iterations):
                    if matches and number % _CHECKPOINT_EVERY == 0:
                        save_agent(config, folder, number)
                    for is_watched in (number % 2 == 0, number % 2 == 1):
                        watcher.let(is_watched)
                        started_s = time.perf_counter()
                        run.iterate()
                        times_s[is_watched].append(time.perf_counter() - started_s)
                watcher.let(True)
                used_s, parts = watcher.used_s()
    pairs = zip(times_s[True], times_s[False], strict=True)
    low, middle, high = statistics.quantiles([1.0 - without / watched for watched, without in pairs], n=4)
    return {
        "iterations": iterations,
        "iteration_s": statistics.median(times_s[False]),
        "watching_share": middle,
        "watching_share_quartiles": [round(low, 4), round(high, 4)],
        "watcher_cpu_share": used_s / sum(times_s[True]),  # of one core
        "watcher_processes": parts,
        "load_average": os.getloadavg()[0],
    }


def save_agent(config: TrainConfig, folder: Path, number: int) -> None:
    """Saves an untrained agent as the newest checkpoint of the run."""
    with make_env(config.world.name, config=config.world.settings or None) as env:
        policy = Policy(env.spec, config.policy)
    checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), dict(config.world.settings or {}))
    save_checkpoint(folder / "checkpoints" / f"step-{number:012d}", checkpoint, step=number)


class Watcher:
    """`ludus watch`, what it started, and a reader of its page."""

    def __init__(self, server: psutil.Process, reader: psutil.Process) -> None:
        self._server, self._reader = server, reader
        self._before_s = self._times_s()

    def _processes(self) -> list[psutil.Process]:
        return [self._server, *self._server.children(recursive=True), self._reader]

    def let(self, runs: bool) -> None:
        """Stops or continues all of them."""
        for process in self._processes():
            process.send_signal(signal.SIGCONT if runs else signal.SIGSTOP)

    def _times_s(self) -> dict[str, float]:
        names = ("server", *("matches" for _ in self._processes()[1:-1]), "reader")
        times = [process.cpu_times() for process in self._processes()]
        return {name: each.user + each.system for name, each in zip(names, times, strict=True)}

    def used_s(self) -> tuple[float, dict[str, float]]:
        """Returns the processor time of all of them since the start, and that of each."""
        used = {name: round(now_s - self._before_s.get(name, 0.0), 3) for name, now_s in self._times_s().items()}
        return sum(used.values()), used


@contextmanager
def watching(folder: Path, *, matches: bool) -> Iterator[Watcher]:
    """Starts the watcher, and opens its page."""
    command = [sys.executable, "-m", "ludus", "watch", str(folder), "--port", "0", "--no-browser"]
    command += [] if matches else ["--no-matches"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    run = _first_run(address)
    query = f"events?runs={run}&merged=0&match={run}"
    reader = subprocess.Popen([sys.executable, "-c", _READER, address + query])
    try:
        time.sleep(2.0)  # the first document
        yield Watcher(psutil.Process(server.pid), psutil.Process(reader.pid))
    finally:
        for process in (reader, server):
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait()


def _first_run(address: str) -> str:
    from urllib.request import urlopen

    with urlopen(f"{address}events", timeout=30) as stream:  # noqa: S310 - our own server
        while True:
            line = stream.readline().decode()
            if line.startswith('data: {"all"'):
                return str(json.loads(line.removeprefix("data: "))["runs"][0]["id"])


if __name__ == "__main__":
    main()
