"""Measure Ludus beside PufferLib, rlgym and loco-mujoco: in turns, on one core, every library in its own interpreter.

    python benchmarks/peers.py --peer-python pufferlib=.peers/pufferlib/bin/python rlgym=.peers/rlgym/bin/python

Peers that are not named keep the numbers that `docs/data/peers.json` has. docs/research/learner.md says how to make
their virtual environments. Both sides are processes of `benchmarks/peer_workloads.py` on the same core, which wait
while the other one works. A rate is steps per second of CPU time, the median of the windows. Both sides use one thread.
Other programs lengthen the measurement, and through shared caches CPU time too: windows are short, and the ratio is the
median of the ratios of neighbouring windows.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.rocket_mesh import write_meshes
from benchmarks.speed import processor

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data" / "peers.json"
CHILD = ROOT / "benchmarks" / "peer_workloads.py"
MESHES = "MESHES"  # in the options of a workload: the folder with a mesh of the whole arena
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A workload of ours and the one of a peer that it is measured beside."""

    peer: str
    ours: str
    theirs: str
    our_options: Mapping[str, Any] = field(default_factory=dict)
    their_options: Mapping[str, Any] = field(default_factory=dict)


MIMIC = {"world": "mimic", "games": 1024}
ROCKET = {"world": "rocket", "games": 4096, "ticks": 8}
# As loco-mujoco's human body without arms: 13 joints, 100 decisions per second of ten physics steps of 1 ms.
SAME_STEPS = {"walker": "walker-13", "physics_step_s": 0.001}
COMPARISONS = {
    "pufferlib_ppo": Comparison("pufferlib", "ludus_ppo", "pufferlib_ppo", {"epochs": 10}, {"epochs": 10}),
    "pufferlib_ppo_one_pass": Comparison("pufferlib", "ludus_ppo", "pufferlib_ppo", {"epochs": 1}, {"epochs": 1}),
    "pufferlib_vector": Comparison(
        "pufferlib", "ludus_sim", "pufferlib_vector", {"world": "gym:CartPole-v1", "games": 8}
    ),
    "pufferlib_gymnasium": Comparison("pufferlib", "cartpole", "cartpole"),
    "rlgym_planes": Comparison("rlgym", "ludus_sim", "rlgym", ROCKET),
    "rlgym_mesh": Comparison("rlgym", "ludus_sim", "rlgym", ROCKET, {"meshes": MESHES}),
    "loco_mujoco_same_steps": Comparison("loco-mujoco", "ludus_sim", "loco_mujoco", MIMIC | SAME_STEPS),
    "loco_mujoco": Comparison("loco-mujoco", "ludus_sim", "loco_mujoco", MIMIC),
}
PEERS = tuple(dict.fromkeys(comparison.peer for comparison in COMPARISONS.values()))


def main() -> None:
    """Measures the comparisons of the named peers and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", nargs="*", default=[], metavar="PEER=PATH", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--windows", type=int, default=15, help="measurements of each side, in turns")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of a measurement")
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    pythons = interpreters(options.peer_python)
    measured = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    for name, comparison in COMPARISONS.items():
        if comparison.peer in pythons:
            row = compare(comparison, pythons[comparison.peer], options.windows, options.seconds)
            measured[name] = row
            ours, theirs = (row[side]["steps_per_s"] for side in ("ours", "theirs"))
            print(f"{name:24} Ludus {ours:11,.0f}  {comparison.peer} {theirs:11,.0f}  ratio {row['ratio']:.2f}")
            options.out.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(f"[OK] {options.out}" if pythons else f"no peer was named; valid: {', '.join(PEERS)}")


def interpreters(words: Sequence[str]) -> dict[str, str]:
    """Read `PEER=PATH` pairs.

    Raises:
        SystemExit: A peer is unknown, or there is no file at the path.
    """
    found = {}
    for word in words:
        peer, _, path = word.partition("=")
        if peer not in PEERS:
            raise SystemExit(f"unknown peer {peer!r}; valid: {', '.join(PEERS)}, as PEER=PATH")
        if not Path(path).is_file():
            raise SystemExit(f"{peer}: no interpreter at {path!r}; docs/research/learner.md says how to make one")
        found[peer] = str(Path(path).absolute())  # not resolved: a link in a virtual environment must stay there
    return found


def compare(comparison: Comparison, python: str, windows: int, seconds: float) -> dict[str, Any]:
    """Measure both sides in turns; the first window of each is not counted."""
    with ExitStack() as stack:
        ours = stack.enter_context(side(sys.executable, comparison.ours, comparison.our_options))
        theirs = stack.enter_context(side(python, comparison.theirs, comparison.their_options))
        rounds = [(ours.measure(seconds), theirs.measure(seconds)) for _ in range(windows + 1)][1:]
    found = [
        {**process.about, **rates([pair[place] for pair in rounds])} for place, process in enumerate((ours, theirs))
    ]
    return {
        "peer": comparison.peer,
        "processor": processor(),
        "python": platform.python_version(),
        "windows": windows,
        "seconds": seconds,
        "ours": found[0],
        "theirs": found[1],
        "ratio": statistics.median(rate(own) / rate(other) for own, other in rounds),
    }


def rate(window: Mapping[str, float]) -> float:
    """Return steps per CPU second."""
    return window["steps"] / window["cpu_s"]


def rates(windows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return steps per CPU second over windows, and the share of a core that the process had."""
    each = [rate(window) for window in windows]
    return {
        "steps_per_s": statistics.median(each),
        "steps_per_s_low": min(each),
        "steps_per_s_high": max(each),
        "share_of_core": sum(window["cpu_s"] for window in windows) / sum(window["seconds"] for window in windows),
    }


class Side:
    """A process that works when it is asked to."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process = process
        self._name = name
        self.about = self._answer()

    def measure(self, seconds: float) -> dict[str, float]:
        """Let it work for so many CPU seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name} ended with status {self._process.wait()}; its error is above")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def side(python: str, name: str, options: Mapping[str, Any]) -> Iterator[Side]:
    """Start a workload on one core; end it afterwards."""
    environment = os.environ | ONE_THREAD
    environment.pop("PYTHONPATH", None)  # the peers' interpreters must not see our packages
    if python == sys.executable:
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with TemporaryDirectory() as folder:
        if MESHES in options.values():
            write_meshes(Path(folder))
        given = {key: folder if value == MESHES else value for key, value in options.items()}
        process = subprocess.Popen(
            [python, str(CHILD), name, json.dumps(given)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
        )  # fmt: skip
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
            yield Side(process, name)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
