"""How long a user waits from `ludus train WORLD` to the first update, and what for.

Each start is the real command in a process of its own, which ends after its first iteration. Its parts:

- interpreter: from the start of the process to the first line of Python;
- imports: of Python modules, wherever they are imported;
- config: reading the preset and resolving it;
- kernels: loading Warp's kernels from their cache, or compiling them if it is empty;
- checks: the checks before a run, with their own small games, policy, rollout and update;
- run: making the run's games, policy, learner and tables;
- checkpoint: saving `init`;
- rollout, update: those of the first iteration; on a GPU with the compilation by Triton and the capture of graphs;
- other: everything else, such as the summary of the settings.

No part counts time of another: kernels that are loaded during the checks are kernels. A warm start is the second one
with the same caches; a cold one has empty folders for the caches of Warp, Triton and torch, yet Python's own bytecode.
Beside the clock stands the process's own time on all its threads, which other work on the machine disturbs less.

    python benchmarks/startup.py                                 # all worlds on the CPU, and on a GPU if there is one
    python benchmarks/startup.py --worlds brawl --device cpu --cold
    python benchmarks/startup.py --cold --warm --json docs/data/startup.json
"""

import argparse
import builtins
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PARTS = ("interpreter", "imports", "config", "kernels", "checks", "run", "checkpoint", "rollout", "update", "other")
PRESETS = {"brawl": "quick", "rocket": "quick", "mimic": "walk", "city": "quick", "roshambo": "quick"}
GPU_WORLDS = ("brawl", "rocket", "roshambo", "city")  # whose games a GPU plays; mimic's need mujoco-warp
CACHES = ("WARP_CACHE_PATH", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
WARM_GOAL_S, COLD_GOAL_S, IMPORT_GOAL_S = 5.0, 30.0, 0.3
_TIMEOUT_S = 900.0


def main() -> None:
    """Measures and prints a table; with `--json` also merges the rows into a file."""
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        run_child(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", choices=tuple(PRESETS), default=list(PRESETS))
    parser.add_argument("--device", action="append", help="cpu or cuda; may be repeated; all there are if left out")
    parser.add_argument("--cold", action="store_true", help="measure cold starts")
    parser.add_argument("--warm", action="store_true", help="measure warm starts; the default unless --cold is given")
    parser.add_argument("--repeats", type=int, default=3, help="warm starts of each world, of which the median counts")
    parser.add_argument("--json", type=Path, help="file whose rows of the same world, device and start are replaced")
    options = parser.parse_args()
    kinds = [kind for kind in ("cold", "warm") if getattr(options, kind)] or ["warm"]
    rows = [import_row()]
    print_row(rows[0])
    for device in options.device or devices():
        for world in options.worlds:
            if device != "cpu" and world not in GPU_WORLDS:
                continue
            for row in starts(world, device, kinds, options.repeats):
                rows.append(row)
                print_row(row)
    if options.json is not None:
        merge(options.json, rows)


def devices() -> list[str]:
    """Returns the devices of this machine."""
    import torch

    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def starts(world: str, device: str, kinds: list[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Measures the starts of a world on a device: a cold one, or the median of several warm ones, or both."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: str(Path(folder) / name.lower()) for name in CACHES} if "cold" in kinds else {}
        first = start(world, device, caches)  # warms the caches where it is not a cold start itself
        if "cold" in kinds:
            yield describe(world, device, "cold", [first])
        if "warm" in kinds:
            yield describe(world, device, "warm", [start(world, device, caches) for _ in range(repeats)])


def describe(world: str, device: str, kind: str, measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the row of the start whose total is the median one."""
    middle = sorted(measured, key=lambda each: float(each["total_s"]))[len(measured) // 2]
    return {
        "world": world,
        "preset": PRESETS[world],
        "device": device_name(device),
        "start": kind,
        "starts": len(measured),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "total_s_all": [round(each["total_s"], 2) for each in measured],
        **middle,
    }


def device_name(device: str) -> str:
    """Returns `cpu`, or the name of the GPU without its maker's."""
    if device == "cpu":
        return device
    import torch

    return torch.cuda.get_device_name(device).removeprefix("NVIDIA ")


def start(world: str, device: str, caches: dict[str, str]) -> dict[str, Any]:
    """Starts the command once and returns what its process measured."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["train", world, "--preset", PRESETS[world], "--device", device, "monitoring.console=plain"]
        environment = {**os.environ, **caches, "LUDUS_STARTED_S": repr(time.time())}
        environment.pop(
            "PYTHONDONTWRITEBYTECODE", None
        )  # some images set it, and then every start compiles all modules
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--child", str(report), *words],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
        if not report.exists():
            raise SystemExit(f"[ERROR] ludus {' '.join(words)} did not get to its first update:\n{done.stderr[-4000:]}")
        measured: dict[str, Any] = json.loads(report.read_text())
        return measured


def import_row() -> dict[str, Any]:
    """Measures `import ludus` in processes of their own."""
    code = "import time; started = time.perf_counter(); import ludus; print(time.perf_counter() - started)"
    taken = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    name = {"world": "import ludus", "preset": "", "device": "cpu", "start": "warm", "starts": len(taken)}
    return name | {"cores": os.cpu_count(), "machine": platform.machine(), "total_s": statistics.median(taken)}


def print_row(row: dict[str, Any]) -> None:
    """Prints a row, with a mark by the goal of its kind."""
    goal_s = {"cold": COLD_GOAL_S, "warm": WARM_GOAL_S}[row["start"]]
    goal_s = IMPORT_GOAL_S if row["world"] == "import ludus" else goal_s
    mark = "OK" if row["total_s"] <= goal_s else "WARN"
    parts = ", ".join(f"{name} {row['parts_s'][name]:.2f}" for name in PARTS) if "parts_s" in row else ""
    own = ", ".join(f"{name} {row['own_parts_s'][name]:.2f}" for name in PARTS) if "parts_s" in row else ""
    kernels = f", {row['compiled']} modules compiled" if row.get("compiled") else ""
    name = f"{row['world']} on {row['device']}, {row['start']}"
    print(f"[{mark}] {name}: {row['total_s']:.2f} s (goal {goal_s:g} s): {parts}{kernels}".rstrip(": "))
    if own:
        print(f"     own time {row['own_time_s']:.2f} s: {own}", flush=True)


def merge(file: Path, rows: list[dict[str, Any]]) -> None:
    """Writes rows to a file, in the place of earlier ones of the same world, device and start."""

    def key(row: dict[str, Any]) -> tuple[str, str, str]:
        return row["world"], row["device"], row["start"]

    old = json.loads(file.read_text()) if file.exists() else []
    merged = {key(row): row for row in [*old, *rows]}
    file.write_text(json.dumps(list(merged.values()), indent=1) + "\n")
    print(f"[OK] {file}")


class Timeline:
    """Adds up the time of each part; of parts inside each other only the innermost counts."""

    def __init__(self, started_s: float) -> None:
        self._sums_s: defaultdict[str, float] = defaultdict(float)
        self._own_sums_s: defaultdict[str, float] = defaultdict(float)
        self._inside = ["other"]
        self._thread = threading.current_thread()
        self._started_s, self._last_s, self._own_last_s = started_s, time.time(), time.process_time()
        self._sums_s["interpreter"], self._own_sums_s["interpreter"] = self._last_s - started_s, self._own_last_s

    def enter(self, part: str) -> None:
        """Begin a part."""
        self._lap()
        self._inside.append(part)

    def leave(self) -> None:
        """End the part that began last."""
        self._lap()
        self._inside.pop()

    def _lap(self) -> None:
        now_s, own_now_s, part = time.time(), time.process_time(), self._inside[-1]
        self._sums_s[part] += now_s - self._last_s
        self._own_sums_s[part] += own_now_s - self._own_last_s
        self._last_s, self._own_last_s = now_s, own_now_s

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that does the same and counts its time, on the thread of the timeline."""

        def timed(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any function
            if threading.current_thread() is not self._thread:
                return function(*arguments, **named)
            self.enter(part)
            try:
                return function(*arguments, **named)
            finally:
                self.leave()

        return timed

    def around_steps(self, part: str, generator: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Returns a generator function that does the same and counts the time until each of its items."""

        def timed(*arguments: Any, **named: Any) -> Iterator[Any]:  # noqa: ANN401 - of any function
            items = generator(*arguments, **named)
            following = self.around(part, lambda: next(items, self))
            while (item := following()) is not self:
                yield item

        return timed

    def read(self) -> dict[str, Any]:
        """Return the seconds of all parts so far and their sum, by the clock and of the process's own time."""
        self._lap()
        return {
            "total_s": round(self._last_s - self._started_s, 3),
            "parts_s": {part: round(self._sums_s[part], 3) for part in PARTS},
            "own_time_s": round(self._own_last_s, 3),
            "own_parts_s": {part: round(self._own_sums_s[part], 3) for part in PARTS},
        }


def run_child(report: Path, words: list[str]) -> None:
    """Runs the command with a timeline, writes that to a file after the first iteration and ends the process."""
    timeline = Timeline(float(os.environ.pop("LUDUS_STARTED_S")))
    time_imports(timeline)
    compiled: list[bool] = []
    module: Any = importlib.import_module("warp._src.context").Module
    method = "_compile" if hasattr(module, "_compile") else "compile"
    compile_module = getattr(module, method)

    def counted(*arguments: Any, **named: Any) -> bool:  # noqa: ANN401 - Warp leaves it untyped
        compiled.append(bool(compile_module(*arguments, **named)))
        return compiled[-1]

    setattr(module, method, counted)
    module.load = timeline.around("kernels", module.load)
    from ludus.envs import warp_tools

    warp_tools.load_kernels = timeline.around("kernels", warp_tools.load_kernels)  # before others import it
    from ludus.cli import main as command
    from ludus.training import loop, preflight, presets, resolve

    def end(_: Any, iteration: Any) -> None:  # noqa: ANN401
        assert iteration.counters.iterations == 1, "the first iteration"
        report.write_text(json.dumps(timeline.read() | {"compiled": sum(compiled)}))
        os._exit(0)

    places: list[tuple[Any, str, str]] = [
        (presets, "load_run_config", "config"),
        (resolve, "resolve", "config"),
        (loop.Trainer, "__init__", "run"),
        (loop.Trainer, "save", "checkpoint"),
        (loop.Trainer, "_iterate", "update"),
        (loop.Trainer, "_collect", "rollout"),
    ]
    for place, name, part in places:
        setattr(place, name, timeline.around(part, getattr(place, name)))
    preflight.verify = timeline.around_steps("checks", preflight.verify)
    setattr(loop.Trainer, "_report", end)  # noqa: B010 - the end of an iteration; types do not let methods be replaced
    sys.argv = ["ludus", *words]
    command.main()


def time_imports(timeline: Timeline) -> None:
    """Counts the time of imports from here on."""
    do_import, depth = builtins.__import__, 0

    def timed(name: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the function that it replaces
        nonlocal depth
        if depth or threading.current_thread() is not threading.main_thread():
            return do_import(name, *arguments, **named)
        depth += 1
        timeline.enter("imports")
        try:
            return do_import(name, *arguments, **named)
        finally:
            timeline.leave()
            depth -= 1

    builtins.__import__ = timed
    importlib.import_module = timeline.around("imports", importlib.import_module)


if __name__ == "__main__":
    main()
