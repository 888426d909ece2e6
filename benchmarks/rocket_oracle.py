"""Compare Rocket with RocketSim 2.2.1 over random states: cars in the air and on the ground, hits and bounces.

    python -m benchmarks.rocket_oracle                 # prints both tables and writes docs/data/rocket_oracle.json
    python -m benchmarks.rocket_oracle --out FILE      # writes them elsewhere

Needs the package `rocketsim` (extra `rocket-oracle`). Every scene lasts a second; states are drawn with fixed
seeds. RocketSim's arena is a mesh of our own arena's numbers, whose arcs are cut into flat facets.
"""

import argparse
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.rocket_lab import Lab, arena_at
from benchmarks.rocket_mesh import FACETS
from benchmarks.rocket_rival import MOTION, PLANES, VOID, Numbers, Scenes, axes, rival_tracks

from ludus.worlds.rocket.rules import (
    BACK_Y,
    BALL_BOUNCE_MIN,
    BALL_DRAG,
    BALL_FRICTION,
    BALL_MAX_SPIN,
    BALL_RADIUS,
    BALL_RESTITUTION,
    CONTACT_MARGIN,
    DT,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    GRAVITY,
    Control,
)

DATA = Path(__file__).parents[1] / "docs" / "data" / "rocket_oracle.json"
TICKS, HOLD = 120, 8
STICK = {control: [-1.0, -0.4, 0.0, 0.7, 1.0] for control in (Control.PITCH, Control.YAW, Control.ROLL)}
THROTTLE = {Control.THROTTLE: [-1.0, 0.0, 0.5, 1.0]}
BOOST = {Control.BOOST: [0.0, 1.0]}
TOUCH = BALL_RADIUS + CONTACT_MARGIN
MESHES = (8, 16, 32)  # facets per quarter circle
Random = np.random.Generator


def held(random: Random, count: int, choices: dict[Control, list[float]], ticks: int = TICKS) -> Numbers:
    """Controls `(count, ticks, 8)` that change every 8 ticks to random ones of the choices."""
    controls = np.zeros((count, -(-ticks // HOLD), len(Control)))
    for control, values in choices.items():
        controls[..., control] = random.choice(values, size=controls.shape[:2])
    return np.repeat(controls, HOLD, axis=1)[:, :ticks]


def flying(random: Random, count: int) -> dict[str, Numbers]:
    """Cars in the air with any attitude and motion; they do not come down within a second."""
    rotation = random.normal(size=(count, 4))
    velocity = random.uniform(-800.0, 800.0, (count, 3))
    velocity[:, 2] = random.uniform(-150.0, 600.0, count)
    return {
        "position": np.tile([0.0, 0.0, 1000.0], (count, 1)),
        "velocity": velocity,
        "spin": random.uniform(-2.0, 2.0, (count, 3)),
        "rotation": rotation / np.linalg.norm(rotation, axis=1, keepdims=True),
    }


def driving(random: Random, count: int) -> dict[str, Numbers]:
    """Cars on the floor with any heading that roll forward."""
    heading, speed = random.uniform(-math.pi, math.pi, count), random.uniform(0.0, 1800.0, count)
    zero = np.zeros(count)
    return {
        "position": np.tile([0.0, 0.0, 17.03], (count, 1)),
        "velocity": np.stack((speed * np.cos(heading), speed * np.sin(heading), zero), axis=1),
        "spin": np.zeros((count, 3)),
        "rotation": np.stack((zero, zero, np.sin(0.5 * heading), np.cos(0.5 * heading)), axis=1),
    }


def own_tracks(scenes: Scenes) -> dict[str, Numbers]:
    """Our motion after every tick, as `rival_tracks`."""
    lab = Lab(len(scenes.controls))
    for name, values in scenes.car.items():
        lab.cars[name][:, 0] = torch.from_numpy(values)
    lab.cars["boost"][:] = 100.0
    lab.cars["dodged"][:] = int(not scenes.can_dodge)
    lab.ball["position"][:] = torch.tensor([3500.0, 3500.0, 1800.0])
    lab.ball["asleep"][:] = int(not scenes.ball)
    for name, values in scenes.ball.items():
        lab.ball[name][:] = torch.from_numpy(values)
    tracks: dict[str, list[Numbers]] = {}
    for tick in range(scenes.controls.shape[1]):
        lab.controls[:, 0] = torch.from_numpy(scenes.controls[:, tick])
        lab.step()
        now = {name: lab.cars[name][:, 0].double().numpy() for name in (*MOTION, "rotation")}
        now["nose"] = axes(now.pop("rotation"))[..., 0]
        now |= {f"ball_{name}": lab.ball[name].double().numpy().copy() for name in MOTION}
        for name, values in now.items():
            tracks.setdefault(name, []).append(values)
    return {name: np.stack(values, axis=1) for name, values in tracks.items()}


def apart(ours: Mapping[str, Numbers], theirs: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """How far two sets of tracks are apart, `(scenes, ticks)` per name; `height` is that of the car alone."""
    found = {name: np.linalg.norm(ours[name] - theirs[name], axis=-1) for name in ours}
    return found | {"height": np.abs(ours["position"] - theirs["position"])[..., 2]}


def flights(count: int, *, together: bool) -> Scenes:
    """Flights with stick, throttle and boost; either together, or with the throttle released from the first burn on."""
    random = np.random.default_rng(1)
    controls = held(random, count, STICK | THROTTLE | BOOST)
    if not together:
        controls[..., Control.THROTTLE] *= np.cumsum(controls[..., Control.BOOST], axis=1) == 0.0
    return Scenes(flying(random, count), controls)


def second_jumps(count: int, *, dodges: bool) -> Scenes:
    """Second jumps at any time of the first half second, dodges or without the stick in that tick."""
    random = np.random.default_rng(2)
    controls = held(random, count, STICK)
    for scene, press in enumerate(random.integers(0, 60, count)):
        controls[scene, press : press + 4, Control.JUMP] = 1.0
        stick = controls[scene, press, list(STICK)]
        if not dodges:
            controls[scene, press, list(STICK)] = 0.0
        elif np.abs(stick).sum() < 0.5:
            controls[scene, press, Control.PITCH] = -1.0
    return Scenes(flying(random, count), controls)


def drives(count: int) -> Scenes:
    """Drives over the floor with pedals, wheel, boost and handbrake."""
    random = np.random.default_rng(3)
    choices = {Control.STEER: [-1.0, -0.5, 0.0, 1.0], Control.HANDBRAKE: [0.0, 0.0, 1.0]} | THROTTLE | BOOST
    return Scenes(driving(random, count), held(random, count, choices))


def hits(count: int) -> Scenes:
    """Cars on the floor that run into a ball before them."""
    random = np.random.default_rng(4)
    car = driving(random, count)
    nose = np.stack((car["velocity"][:, 0], car["velocity"][:, 1]), axis=1)
    nose /= np.linalg.norm(nose, axis=1, keepdims=True)
    car["velocity"][:, :2] += 400.0 * nose
    ahead, aside = random.uniform(250.0, 450.0, (count, 1)), random.uniform(-50.0, 50.0, (count, 1))
    place = ahead * nose + aside * nose[:, ::-1] * np.array([-1.0, 1.0])
    ball = {
        "position": np.concatenate((place, random.uniform(94.0, 150.0, (count, 1))), axis=1),
        "velocity": random.uniform(-150.0, 150.0, (count, 3)) * np.array([1.0, 1.0, 0.0]),
        "spin": random.uniform(-2.0, 2.0, (count, 3)),
    }
    return Scenes(car, held(random, count, {Control.THROTTLE: [1.0]}), ball, can_dodge=False)


def bounces(places: Numbers, velocity: Numbers, random: Random, ticks: int = TICKS) -> Scenes:
    """Balls with given places and velocities; the car falls far from them."""
    count = len(places)
    car = {
        "position": np.tile([0.0, 0.0, 1000.0], (count, 1)),
        "velocity": np.zeros((count, 3)),
        "spin": np.zeros((count, 3)),
        "rotation": np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)),
    }
    ball = {"position": places, "velocity": velocity, "spin": random.normal(scale=2.0, size=(count, 3))}
    return Scenes(car, np.zeros((count, ticks, len(Control))), ball, can_dodge=False)


def surfaces(places: Numbers) -> Numbers:
    """The arena's normals and distances `(..., 4)` at places `(..., 3)`."""
    found = arena_at(torch.from_numpy(places.reshape(-1, 3)).contiguous())
    return found.double().numpy().reshape(*places.shape[:-1], 4)


def is_flat(places: Numbers, normals: Numbers) -> Any:  # noqa: ANN401 - an array of bool
    """Whether the surface at places is a plane also 60 uu around: as far as a ball that comes in fast can reach."""
    flat = np.ones(places.shape[:-1], dtype=bool)
    for shift in 60.0 * np.concatenate((np.eye(3), -np.eye(3))):
        flat &= (normals * surfaces(places + shift - normals * (normals @ shift)[..., None])[..., :3]).sum(
            -1
        ) > 1 - 1e-9
    return flat


def toward_surfaces(random: Random, count: int) -> tuple[Numbers, Numbers]:
    """Places near the surfaces, clear of the goals, and velocities toward them."""
    places = random.uniform([-4096.0, -BACK_Y, 0.0], [4096.0, BACK_Y, 2048.0], (40 * count, 3))
    found = surfaces(places)
    clear = (np.abs(places[:, 0]) > 1300.0) | (places[:, 2] > 1100.0) | (np.abs(places[:, 1]) < 4000.0)
    near = clear & (found[:, 3] > TOUCH) & (found[:, 3] < 400.0)
    places, found = places[near][:count], found[near][:count]
    velocity = random.normal(scale=900.0, size=(len(places), 3))
    return places, velocity - 2.0 * np.maximum((velocity * found[:, :3]).sum(1), 0.0)[:, None] * found[:, :3]


def ball_before(scenes: Scenes) -> dict[str, Numbers]:
    """Our ball's `position`, `velocity` and `spin` before every tick, each `(scenes, ticks, 3)`."""
    tracks = own_tracks(scenes)
    return {
        name: np.concatenate((scenes.ball[name][:, None], tracks[f"ball_{name}"][:, :-1]), axis=1) for name in MOTION
    }


def wall_bounces(count: int, *, flat: bool) -> Scenes:
    """Balls that bounce off planes alone within the second, or off an arc first."""
    random = np.random.default_rng(5)
    scenes = bounces(*toward_surfaces(random, 12 * count), random)
    places = ball_before(scenes)["position"]
    found = surfaces(places)
    touches, planes = found[..., 3] <= TOUCH, is_flat(places, found[..., :3])
    first = touches.argmax(axis=1)
    meets = touches.any(axis=1) & (first < TICKS // 2)
    chosen = meets & ((planes | ~touches).all(axis=1) if flat else ~planes[np.arange(len(first)), first])
    return subset(scenes, np.flatnonzero(chosen)[:count])


def subset(scenes: Scenes, chosen: Any) -> Scenes:  # noqa: ANN401 - an index array
    """Some of the scenes."""
    car = {name: values[chosen] for name, values in scenes.car.items()}
    ball = {name: values[chosen] for name, values in scenes.ball.items()}
    return Scenes(car, scenes.controls[chosen], ball, scenes.can_dodge)


def frame_bounces(count: int) -> Scenes:
    """Shots at the posts and the bar of the goals, from 300 to 900 uu before them."""
    random = np.random.default_rng(6)
    along, is_post = random.uniform(0.0, 1.0, count), random.uniform(size=count) < 0.5
    side, end = random.choice([-1.0, 1.0], (2, count))
    x = np.where(is_post, side * GOAL_HALF_WIDTH, (2.0 * along - 1.0) * (GOAL_HALF_WIDTH - 150.0))
    z = np.where(is_post, 150.0 + along * (GOAL_HEIGHT - 150.0), GOAL_HEIGHT)
    target = np.stack((x, end * BACK_Y, z), axis=1) + random.uniform(-70.0, 70.0, (count, 3)) * np.array(
        [1.0, 0.0, 1.0]
    )
    start = target + random.uniform([-400.0, -900.0, -200.0], [400.0, -300.0, 200.0], (count, 3)) * np.stack(
        (np.ones(count), end, np.ones(count)), axis=1
    )
    start[:, 2] = np.maximum(start[:, 2], 200.0)
    time_s = np.linalg.norm(target - start, axis=1, keepdims=True) / random.uniform(800.0, 2500.0, (count, 1))
    velocity = (target - start) / time_s - np.array([0.0, 0.0, 0.5 * GRAVITY]) * time_s
    return bounces(start, velocity, random)


CATEGORIES: dict[str, tuple[Callable[[], Scenes], int, bool]] = {
    "air: stick, throttle or boost": (lambda: flights(200, together=False), VOID, False),
    "air: throttle and boost together": (lambda: flights(200, together=True), VOID, False),
    "the same, the game's rule imposed on RocketSim": (lambda: flights(200, together=True), VOID, True),
    "double jump": (lambda: second_jumps(200, dodges=False), VOID, False),
    "dodge": (lambda: second_jumps(200, dodges=True), VOID, False),
    "the same, the game's rules imposed on RocketSim": (lambda: second_jumps(200, dodges=True), VOID, True),
    "driving": (lambda: drives(100), PLANES, False),
    "hit of the ball": (lambda: hits(100), PLANES, False),
    "ball off planes": (lambda: wall_bounces(200, flat=True), FACETS, False),
    "ball off arcs": (lambda: wall_bounces(200, flat=False), FACETS, False),
    "ball off goal frames": (lambda: frame_bounces(100), FACETS, False),
}


def compare(make: Callable[[], Scenes], arena: int, as_the_game: bool) -> dict[str, list[float]]:
    """Errors per scene: of the place (uu) after 0.5 s and after 1 s, and of the spin (rad/s) after 1 s."""
    scenes = make()
    off = apart(own_tracks(scenes), rival_tracks(scenes, arena, as_the_game=as_the_game))
    what = "ball_" if scenes.ball else ""
    errors = {
        "place_half_s": off[f"{what}position"][:, TICKS // 2 - 1],
        "place_1s": off[f"{what}position"][:, -1],
        "spin_1s": off[f"{what}spin"][:, -1],
    }
    return rounded(errors)


def bounced(velocity: Numbers, spin: Numbers, normal: Numbers) -> tuple[Numbers, Numbers]:
    """Velocity and spin `(n, 3)` after the ball's law of `kernels/ball.py` at surfaces with given normals."""
    into = (velocity * normal).sum(-1, keepdims=True)
    approach = into - GRAVITY * DT * normal[:, 2:]
    push = np.maximum(np.where(approach < -BALL_BOUNCE_MIN, -BALL_RESTITUTION * approach, 0.0) - into, 0.0)
    slip = velocity - normal * into - np.cross(spin, normal) * BALL_RADIUS
    speed = np.maximum(np.linalg.norm(slip, axis=-1, keepdims=True), 1e-9)
    change = -slip * np.minimum(BALL_FRICTION * push / speed, 2.0 / 7.0)
    spin = spin - np.cross(normal, change) * (2.5 / BALL_RADIUS)
    spin = spin * np.minimum(1.0, BALL_MAX_SPIN / np.maximum(np.linalg.norm(spin, axis=-1, keepdims=True), 1e-9))
    return velocity + normal * push + change, spin


def felt_normals(before: Numbers, spin: Numbers, after: Numbers, normal: Numbers) -> Numbers:
    """The normals with which the ball's law gives the velocities `after`, searched around given ones."""
    first = np.cross(normal, [0.3, 0.5, 0.8])
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    second = np.cross(normal, first)
    step = np.full((len(normal), 1), 0.05)
    for _ in range(80):
        around = [normal + step * (a * first + b * second) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        tried = np.stack([n / np.linalg.norm(n, axis=-1, keepdims=True) for n in around])
        cost = np.stack([np.linalg.norm(bounced(before, spin, n)[0] - after, axis=-1) for n in tried])
        best = cost.argmin(axis=0)
        normal = tried[best, np.arange(len(normal))]
        step = np.where(best[:, None] == 4, 0.6 * step, step)  # 4: none of the neighbours is better
    return normal


def first_contacts(scenes: Scenes) -> tuple[Scenes, Numbers]:
    """The tick of the first contact with anything but a plane, as scenes of their own, and our normals there."""
    before = ball_before(scenes)
    found = surfaces(before["position"])
    touches = found[..., 3] <= TOUCH
    index, tick = np.flatnonzero(touches.any(axis=1)), touches.argmax(axis=1)[touches.any(axis=1)]
    curved = ~is_flat(before["position"][index, tick], found[index, tick, :3])
    index, tick = index[curved], tick[curved]
    part = subset(scenes, index)
    ball = {name: values[index, tick] for name, values in before.items()}
    return Scenes(part.car, part.controls[:, :1], ball, part.can_dodge), found[index, tick, :3]


def one_bounce(surface: str, scenes: Scenes, facets: int) -> dict[str, Any]:
    """A single tick of contact: how far RocketSim's normal is from ours, and what that leaves over.

    Returns:
        Per bounce the angle between the normals (degrees), the error of the velocity after it (uu/s) and of the spin
        (rad/s), and what is left of both if the ball bounces off RocketSim's normal by our law.
    """
    scenes, normal = first_contacts(scenes)
    ours, theirs = own_tracks(scenes), rival_tracks(scenes, facets)
    before = scenes.ball["velocity"] * (1.0 - BALL_DRAG) ** DT + np.array([0.0, 0.0, GRAVITY * DT])
    after, spun = theirs["ball_velocity"][:, 0], theirs["ball_spin"][:, 0]
    felt = felt_normals(before, scenes.ball["spin"], after, normal)
    again, again_spun = bounced(before, scenes.ball["spin"], felt)
    errors = {
        "angle": np.degrees(np.arccos(np.clip((felt * normal).sum(axis=-1), -1.0, 1.0))),
        "velocity": np.linalg.norm(ours["ball_velocity"][:, 0] - after, axis=-1),
        "velocity_left": np.linalg.norm(again - after, axis=-1),
        "spin": np.linalg.norm(ours["ball_spin"][:, 0] - spun, axis=-1),
        "spin_left": np.linalg.norm(again_spun - spun, axis=-1),
    }
    return {"surface": surface, "facets": facets, **rounded(errors)}


def rounded(errors: Mapping[str, Numbers]) -> dict[str, list[float]]:
    """Lists of four digits."""
    return {name: [float(f"{value:.4g}") for value in values] for name, values in errors.items()}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA, help="where to write the errors as JSON")
    options = parser.parse_args()
    rows = []
    for category, parts in CATEGORIES.items():
        rows.append({"category": category, **compare(*parts)})
        _show(f"{category} ({len(rows[-1]['place_1s'])})", rows[-1])
    arcs = wall_bounces(200, flat=False)
    contacts = [one_bounce("arcs", arcs, facets) for facets in MESHES]
    contacts.append(one_bounce("goal frames", frame_bounces(200), FACETS))
    for contact in contacts:
        _show(f"one bounce off {contact['surface']}, {contact['facets']} facets", contact)
    options.out.write_text(json.dumps({"scenes": rows, "bounces": contacts}) + "\n", encoding="utf-8")
    print(f"written to {options.out}")


def _show(title: str, errors: dict[str, Any]) -> None:
    """Print median, 90th percentile and maximum of every list of errors."""
    print(title)
    for name, values in errors.items():
        if isinstance(values, list):
            print(f"  {name:14} " + " ".join(f"{number:10.4g}" for number in np.percentile(values, [50, 90, 100])))


if __name__ == "__main__":
    main()
