"""How fast Brawl is drawn: pictures a second, beside a yardstick measured in the same run.

The yardstick is the least that any renderer of this size has to do: copy one full-screen surface and hand out its
bytes. Run it with `python benchmarks/render.py`; `--json` prints one JSON object.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from itertools import cycle

import torch

from ludus.envs.brawl.env import BrawlEnv
from ludus.envs.brawl.render import Renderer
from ludus.envs.brawl.view import MatchView
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.envs.registry import make_env

WINDOWS = 5


def main() -> None:
    """Measures in turns, so that noise of the machine meets both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each of the two")
    parser.add_argument("--frames", type=int, default=900, help="frames of the match that is drawn")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    env, views = play_match(arguments.frames)
    renderer = Renderer(env.table)
    turn = cycle(views)
    yardstick = make_yardstick(renderer.size)
    rates, yardstick_rates = [], []
    for _ in range(WINDOWS):
        rates.append(rate(lambda: renderer.frame(next(turn)), arguments.seconds / WINDOWS))
        yardstick_rates.append(rate(yardstick, arguments.seconds / WINDOWS))
    middle, yardstick_middle = median(rates), median(yardstick_rates)
    measured = {
        "picture": f"{renderer.size[0]}x{renderer.size[1]}",
        "frames_per_s": middle,
        "frames_per_s_low": min(rates),
        "frames_per_s_high": max(rates),
        "yardstick": "blit of a full-screen surface and its bytes as RGB",
        "yardstick_frames_per_s": yardstick_middle,
        "ratio": middle / yardstick_middle,
    }
    if arguments.json:
        print(json.dumps(measured, indent=2))
        return
    for name, value in measured.items():
        print(f"{name:24}{value:.2f}" if isinstance(value, float) else f"{name:24}{value}")


def play_match(frames: int) -> tuple[BrawlEnv, list[MatchView]]:
    """Plays two bots that use weapons and moves of all kinds; returns the environment and a view a frame."""
    env = make_env("brawl", seed=1)
    assert isinstance(env, BrawlEnv)
    bots = env.bots(["weapon-seeker", "switcher"])
    seats = torch.tensor([[0, 1]], dtype=torch.int32)
    actions = torch.zeros((1, 2, 10), dtype=torch.int8)
    views = []
    for _ in range(frames):
        bots.act(seats, actions)
        env.step(actions)
        views.append(env.view(0))
    return env, views


def make_yardstick(size: tuple[int, int]) -> Callable[[], object]:
    """Copies a surface and takes its bytes."""
    canvas, picture = new_surface(size), new_surface(size)
    picture.fill((90, 120, 60))

    def work() -> bytes:
        canvas.blit(picture, (0, 0))
        return pygame.image.tobytes(canvas, "RGB")

    return work


def rate(work: Callable[[], object], seconds: float) -> float:
    """Calls a second over at least `seconds`."""
    work()
    calls, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        work()
        calls += 1
    return calls / (time.perf_counter() - started)


def median(values: Sequence[float]) -> float:
    """Returns the middle one of an odd number of values."""
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    main()
