"""Properties that hold in any game: symmetry, determinism, limits, no NaN, and independence of the batch."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_views
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match
from ludus.worlds.rocket.layout import PAD_COUNT, PADS
from ludus.worlds.rocket.rules import BALL_MAX_SPEED, BALL_MAX_SPIN, CAR_MAX_SPEED, CAR_MAX_SPIN, SETTERS

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch, Pitch

pytestmark = pytest.mark.compile

ALL_SCENES = dict.fromkeys(SETTERS, 1.0)
MIRRORED_PADS = [PADS.index((0.0 - x, y)) for x, y in PADS]


def _flip(vectors: Tensor, *signs: float) -> None:
    vectors *= torch.tensor(signs)


def mirrored(snapshot: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns a state seen in a mirror that exchanges left and right."""
    image = {name: tensor.clone() for name, tensor in snapshot.items()}
    cars, balls = struct_views(image["cars"], Car), struct_views(image["balls"], Ball)
    for views in (cars, balls):
        _flip(views["position"], -1, 1, 1)
        _flip(views["velocity"], -1, 1, 1)
        _flip(views["spin"], 1, -1, -1)
    _flip(cars["normal"], -1, 1, 1)
    x, y, z, w = cars["rotation"].clone().unbind(-1)
    cars["rotation"][:] = torch.stack([-y, -x, w, z], -1)
    for name in ("steer", "yaw", "roll", "wheel_angle", "dodge_y", "autoflip_sign"):
        cars[name].neg_()
    inside = cars["inside_pad"].clone().long()
    cars["inside_pad"][:] = torch.where(inside >= 0, torch.tensor(MIRRORED_PADS)[inside], -1).int()
    image["pads"] = image["pads"][:, MIRRORED_PADS]
    return image


def exchanged(snapshot: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns a state of equal teams turned by half a turn, with each team in the other's place."""
    image = {name: tensor.clone() for name, tensor in snapshot.items()}
    seats = image["cars"].shape[1]
    half = seats // 2
    order = [*range(half, seats), *range(half)]
    image["cars"] = image["cars"][:, order].contiguous()
    cars, balls = struct_views(image["cars"], Car), struct_views(image["balls"], Ball)
    for views in (cars, balls):
        for name in ("position", "velocity", "spin"):
            _flip(views[name], -1, -1, 1)
    _flip(cars["normal"], -1, -1, 1)
    x, y, z, w = cars["rotation"].clone().unbind(-1)
    cars["rotation"][:] = torch.stack([-y, x, w, -z], -1)
    cars["team"][:] = 1 - cars["team"]
    places = torch.tensor(order)
    bumped = cars["bump_seat"].clone().long()
    cars["bump_seat"][:] = torch.where(bumped >= 0, places[bumped], -1).int()
    inside = cars["inside_pad"].clone()
    cars["inside_pad"][:] = torch.where(inside >= 0, PAD_COUNT - 1 - inside, -1)
    image["pads"] = image["pads"].flip(1)
    _exchange_match(struct_views(image["matches"], Match), places)
    return image


def _exchange_match(match: dict[str, Tensor], places: Tensor) -> None:
    for name in ("last_touch", "last_blue", "last_orange", "before_blue", "before_orange", "shot_seat"):
        seat = match[name].clone().long()
        match[name][:] = torch.where(seat >= 0, places[seat], -1).int()
    for blue, orange in (
        ("blue_goals", "orange_goals"),
        ("last_blue", "last_orange"),
        ("last_blue_s", "last_orange_s"),
        ("before_blue", "before_orange"),
        ("before_blue_s", "before_orange_s"),
    ):
        kept = match[blue].clone()
        match[blue][:], match[orange][:] = match[orange].clone(), kept
    scored = match["goal"].clone()
    match["goal"][:] = torch.where(scored >= 0, 1 - scored, -1)
    match["shot_team"][:] = 1 - match["shot_team"]


def differing_games(env: RocketEnv, image: dict[str, Tensor]) -> Tensor:
    """Returns which games `(games,)` of an environment are not in the state of an image; 0 and -0 are the same."""
    state = env.snapshot()
    wrong = (state["pads"] != image["pads"]).any(1)
    for name, struct in (("cars", Car), ("balls", Ball), ("matches", Match)):
        ours, theirs = struct_views(state[name], struct), struct_views(image[name].contiguous(), struct)
        for field, values in ours.items():
            if field != "shot_team":  # of no meaning without a shot
                wrong |= (values != theirs[field]).reshape(len(wrong), -1).any(1)
    return wrong


class Driver:
    """Draws continuous controls that are held for some decisions, as players do."""

    def __init__(self, games: int, seats: int, seed: int) -> None:
        self._draw = torch.Generator().manual_seed(seed)
        self._held = torch.zeros(games, seats, 8)

    def next(self) -> Tensor:
        """Returns the controls `(games, seats, 8)` of the next decision."""
        fresh = torch.rand((*self._held.shape[:2], 1), generator=self._draw) < 0.3
        drawn = torch.rand(self._held.shape, generator=self._draw) * 2 - 1
        drawn[..., 0] = drawn[..., 0].abs()  # forward most of the time
        self._held = torch.where(fresh, drawn, self._held)
        return self._held


@pytest.mark.parametrize("scene", ["random", "shooter", "wall", "recovery"])
def test_the_mirror_image_of_a_game_is_a_game(make_pitch: "MakePitch", scene: str) -> None:
    pitch, image = (make_pitch(64, setters={scene: 1.0}) for _ in range(2))
    image.env.restore(mirrored(pitch.env.snapshot()))
    mirror = pitch.env.spec.mirror
    assert mirror is not None
    driver = Driver(64, 2, seed=4)
    for step in range(60):
        controls = driver.next()
        seen = pitch.env.step(controls).observations["vector"]
        twin = image.env.step(mirror.actions.apply(controls)).observations["vector"]
        first = pitch.match["episode"] == 0  # later scenes are drawn, not mirrored
        wrong = differing_games(image.env, mirrored(pitch.env.snapshot())) & first
        assert not wrong.any(), (step, wrong.nonzero().flatten().tolist())
        assert torch.equal(mirror.observations["vector"].apply(seen)[first], twin[first])
    assert first.sum() > 32


@pytest.mark.parametrize("scene", ["random", "shooter", "wall", "recovery"])
def test_teams_can_change_sides(make_pitch: "MakePitch", scene: str) -> None:
    pitch, image = (make_pitch(64, setters={scene: 1.0}) for _ in range(2))
    image.env.restore(exchanged(pitch.env.snapshot()))
    driver = Driver(64, 2, seed=5)
    for step in range(60):
        controls = driver.next()
        result, other = pitch.env.step(controls), image.env.step(controls.flip(1))
        alike = pitch.match["episode"] == 0  # later scenes are drawn, not turned
        wrong = differing_games(image.env, exchanged(pitch.env.snapshot())) & alike
        assert not wrong.any(), (step, wrong.nonzero().flatten().tolist())
        for name, values in (*result.events.items(), *result.state_metrics.items()):
            twin = other.events[name] if name in other.events else other.state_metrics[name]
            assert torch.equal(values[alike], twin[alike].flip(1)), (step, name)
        seen, twin = result.observations["vector"], other.observations["vector"]
        assert torch.equal(seen[alike], twin[alike].flip(1)), step  # every seat sees the world as blue
    assert alike.sum() > 32


def record(env: BatchedEnv, controls: Tensor) -> list[Tensor]:
    """Plays controls `(steps, games, seats, 8)` and returns all that came back, side by side, a tensor a step."""
    kept = []
    for actions in controls:
        result = env.step(actions)
        parts = [result.observations["vector"], *result.events.values(), *result.state_metrics.values()]
        kept.append(torch.cat([part.reshape(env.num_envs, -1) for part in parts], 1).clone())
    return kept


def tape(steps: int, games: int, seats: int, seed: int = 1) -> Tensor:
    driver = Driver(games, seats, seed)
    return torch.stack([driver.next().clone() for _ in range(steps)])


CONFIG = {"actions": "continuous", "setters": ALL_SCENES, "mode": "2v2", "episode_s": 1.5}


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_is_its_games_one_by_one(threads: int) -> None:
    controls = tape(40, 300, 4)
    whole = record(make_env("rocket", 300, seed=9, config=CONFIG | {"threads": threads}), controls)
    for first, count in ((0, 1), (7, 5), (299, 1)):
        part = make_env("rocket", count, seed=9, first_game=first, config=CONFIG | {"threads": 1})
        alone = record(part, controls[:, first : first + count].contiguous())
        for step, (one, other) in enumerate(zip(whole, alone, strict=True)):
            assert torch.equal(one[first : first + count], other), (first, step)


def test_restored_games_have_the_same_future() -> None:
    controls = tape(60, 32, 4)
    env = make_env("rocket", 32, seed=3, config=CONFIG)
    record(env, controls[:30])
    snapshot = env.snapshot()
    future = record(env, controls[30:])
    other = make_env("rocket", 32, seed=77, config=CONFIG)
    other.restore(snapshot)
    assert other.seed == 3
    for one, twin in zip(future, record(other, controls[30:]), strict=True):
        assert torch.equal(one, twin)


def assert_possible(env: RocketEnv, pitch: "Pitch") -> None:
    """Nothing is faster than it may be, or out of the arena."""
    cars, ball = pitch.cars, pitch.ball
    for views, speed, spin in ((cars, CAR_MAX_SPEED, CAR_MAX_SPIN), (ball, BALL_MAX_SPEED, BALL_MAX_SPIN)):
        for name, values in views.items():
            assert not values.is_floating_point() or torch.isfinite(values).all(), name
        assert views["velocity"].norm(dim=-1).max() <= speed * 1.0001
        assert views["spin"].norm(dim=-1).max() <= spin * 1.0001
        x, y, z = views["position"].abs().unbind(-1)
        assert x.max() < 4110
        assert y.max() < 6010
        assert z.max() < 2060
        assert views["position"][..., 2].min() > -10
    assert (cars["rotation"].norm(dim=-1) - 1).abs().max() < 1e-4
    assert ((cars["boost"] >= 0) & (cars["boost"] <= 100)).all()
    space = env.spec.observation_space["vector"]
    seen = env._observations["vector"].numpy()
    assert (seen >= space.low).all()  # type: ignore[attr-defined]
    assert (seen <= space.high).all()  # type: ignore[attr-defined]


def play_for_long(pitch: "Pitch", steps: int) -> int:
    """Plays and looks at everything now and then; returns how many agent ticks that were."""
    env = pitch.env
    driver = Driver(env.num_envs, env.spec.seats, seed=8)
    for step in range(steps):
        result = env.step(driver.next())
        assert torch.isfinite(result.observations["vector"]).all(), step
        if step % 10 == 0:
            assert_possible(env, pitch)
    return env.num_envs * env.spec.seats * steps * env.config.ticks


def test_nothing_impossible_happens(make_pitch: "MakePitch") -> None:
    settings = {"mode": "3v3", "setters": ALL_SCENES, "no_touch_s": 5.0}
    assert play_for_long(make_pitch(96, **settings), steps=60) > 250_000


@pytest.mark.slow
def test_ten_million_agent_ticks(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(512, mode="2v2", setters=ALL_SCENES, no_touch_s=10.0, threads=None)
    assert play_for_long(pitch, steps=650) > 10_000_000
