"""How fast Rocket runs on a GPU with a decision in one kernel, and with one taken apart so that alike goes with alike.

    PYTHONPATH=. python benchmarks/rocket_kernels.py --games 65536 262144 --played 60
    PYTHONPATH=. python benchmarks/rocket_kernels.py --games 262144 --played 500 --profile   # and each kernel

Agent steps a second of one against one with random players, observations, events and the rewards of the set `dense`,
as `sim_speed.py rocket` counts them. Both ways play the same matches to the same bits; they are timed in the same
run after `--played` decisions, since later more cars are near walls or on their roofs, which costs more. Prints the
ratio of the two.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable

import torch
from benchmarks.sim_speed import random_play
from torch.profiler import ProfilerActivity, profile

from ludus.envs.registry import make_env
from ludus.worlds.rocket import env as rocket

TIMED = 20  # decisions
REPEATS = 3
PROFILED, SHOWN = 3, 16  # decisions, kernels


def main() -> None:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, nargs="+", default=[4_096, 65_536, 262_144])
    parser.add_argument("--played", type=int, default=60, help="decisions before")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true", help="of the decision that is taken apart; on a GPU")
    asked = parser.parse_args()
    for games in asked.games:
        whole = rate(games, asked.device, asked.played, is_apart=False)
        apart = rate(games, asked.device, asked.played, is_apart=True, is_profiled=asked.profile)
        print(f"[OK] {games:,} games: one kernel {whole:,.0f}/s, taken apart {apart:,.0f}/s, ratio {apart / whole:.2f}")


def rate(games: int, device: str, played: int, *, is_apart: bool, is_profiled: bool = False) -> float:
    """Returns agent steps a second, the median of a few windows."""
    setattr(rocket, "runs_in_lockstep", lambda _: is_apart)  # noqa: B010 - the world's own name for the question
    with make_env("rocket", games, device) as env:
        play = random_play(env, "dense")
        for _ in range(played):
            play()
        taken_s = []
        for _ in range(REPEATS):
            wait(device)
            started = time.perf_counter()
            for _ in range(TIMED):
                play()
            wait(device)
            taken_s.append(time.perf_counter() - started)
        if is_profiled:
            show_kernels(play)
        return TIMED * games * env.spec.seats / sorted(taken_s)[REPEATS // 2]


def show_kernels(play: Callable[[], object]) -> None:
    """Prints what the kernels of a decision take, those that take most first; a profiler slows them a little."""
    with profile(activities=[ProfilerActivity.CUDA]) as watched:
        for _ in range(PROFILED):
            play()
        torch.cuda.synchronize()
    taken_ms: Counter[str] = Counter()
    for event in watched.events() or ():
        if event.device_type.name == "CUDA":
            taken_ms[event.name[:70]] += event.device_time / 1e3 / PROFILED
    for name, milliseconds in taken_ms.most_common(SHOWN):
        print(f"  {milliseconds:8.3f} ms  {name}")


def wait(device: str) -> None:
    """Returns when the device has done its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
