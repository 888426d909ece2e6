"""How fast Brawl and Rocket are drawn: pictures a second, beside a yardstick measured in the same run.

The yardstick is the least that any renderer of this size has to do: copy one full-screen surface and hand out its
bytes. Run it with `python benchmarks/render.py`, or `... --world rocket --view chase`; `--json` prints one JSON object,
`--all --json` a list of them: brawl, and rocket from everywhere.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from itertools import cycle, pairwise

import torch

from ludus.envs.pygame_tools import new_surface, pygame
from ludus.envs.registry import make_env
from ludus.worlds.brawl import render as brawl_render
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.rocket import render as rocket_render
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.rendering.director import VIEWS
from ludus.worlds.rocket.view import between

SIZE = (1280, 720)

WINDOWS = 5


def main() -> None:
    """Measures and prints what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=("brawl", "rocket"), default="brawl", help="world that is drawn")
    parser.add_argument("--view", choices=VIEWS, default="chase", help="from where, in rocket")
    parser.add_argument("--mode", default="2v2", help="team sizes, in rocket")
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each of the two")
    parser.add_argument("--frames", type=int, default=900, help="frames of the match that is drawn")
    parser.add_argument("--all", action="store_true", help="both worlds, and all views of rocket")
    parser.add_argument("--json", action="store_true", help="print one JSON object, or a list of them")
    arguments = parser.parse_args()
    asked = [(arguments.world, arguments.view)]
    if arguments.all:
        asked = [("brawl", arguments.view), *(("rocket", view) for view in VIEWS)]
    rows = [
        measure(world, view, arguments.mode, frames=arguments.frames, seconds=arguments.seconds)
        for world, view in asked
    ]
    if arguments.json:
        print(json.dumps(rows if arguments.all else rows[0], indent=2))
        return
    for row in rows:
        for name, value in row.items():
            print(f"{name:24}{value:.2f}" if isinstance(value, float) else f"{name:24}{value}")


def measure(world: str, view: str, mode: str, *, frames: int, seconds: float) -> dict[str, str | float]:
    """Draws a match and the yardstick in turns, so that noise of the machine meets both.

    Args:
        world: brawl or rocket.
        view: From where, in rocket.
        mode: Team sizes, in rocket.
        frames: Frames of the match.
        seconds: Time for each of the two.
    """
    draw = brawl_pictures(frames) if world == "brawl" else rocket_pictures(frames, mode, view)
    yardstick = make_yardstick(SIZE)
    rates, yardstick_rates = [], []
    for _ in range(WINDOWS):
        rates.append(rate(draw, seconds / WINDOWS))
        yardstick_rates.append(rate(yardstick, seconds / WINDOWS))
    middle, yardstick_middle = median(rates), median(yardstick_rates)
    return {
        "world": world if world == "brawl" else f"rocket {mode}, {view}",
        "picture": f"{SIZE[0]}x{SIZE[1]}",
        "frames_per_s": middle,
        "frames_per_s_low": min(rates),
        "frames_per_s_high": max(rates),
        "yardstick": "blit of a full-screen surface and its bytes as RGB",
        "yardstick_frames_per_s": yardstick_middle,
        "ratio": middle / yardstick_middle,
    }


def brawl_pictures(frames: int) -> Callable[[], object]:
    """Plays two bots that use weapons and moves of all kinds; returns what draws its next frame."""
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
    renderer, turn = brawl_render.Renderer(env.table), cycle(views)
    return lambda: renderer.frame(next(turn))


def rocket_pictures(frames: int, mode: str, view: str) -> Callable[[], object]:
    """Plays bots that boost and shoot; returns what draws its next frame, every second one between two decisions."""
    env = make_env("rocket", seed=1, config={"mode": mode, "episode": "match"})
    assert isinstance(env, RocketEnv)
    bots = env.bots(["shooter", "chaser"])
    seats = torch.tensor([env.spec.teams], dtype=torch.int32)
    actions = torch.zeros((1, env.spec.seats), dtype=torch.int64)
    views = [env.view(0)]
    for _ in range(frames // 2):
        bots.act(seats, actions)
        env.step(actions)
        views.append(env.view(0))
    renderer = rocket_render.Renderer(view=view)
    turn = cycle([between(*pair, share) for pair in pairwise(views) for share in (0.5, 1.0)])
    return lambda: renderer.frame(next(turn))


def make_yardstick(size: tuple[int, int]) -> Callable[[], object]:
    """Copies a surface and takes its bytes."""
    canvas, picture = new_surface(size), new_surface(size)
    picture.fill((90, 120, 60))

    def work() -> bytes:
        canvas.blit(picture, (0, 0))
        return pygame.image.tobytes(canvas, "RGB")

    return work


def rate(work: Callable[[], object], seconds: float) -> float:
    """Calls a second of one core's time over at least `seconds`; what else the machine does does not count."""
    work()
    calls, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        work()
        calls += 1
    return calls / (time.process_time() - started)


def median(values: Sequence[float]) -> float:
    """Returns the middle one of an odd number of values."""
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    main()
