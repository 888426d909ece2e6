"""Observations: bounds, no dead value, hand-checked numbers, slots, both teams' views, mirrors and forecasts."""

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from ludus.worlds.rocket.layout import PADS
from ludus.worlds.rocket.observation import LAYOUT, MATES, RIVALS
from ludus.worlds.rocket.rules import SETTERS

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch, Pitch

PLACES = {field.name: place for place, field in enumerate(LAYOUT.fields)}


def observe(pitch: "Pitch") -> Tensor:
    """Returns the observations `(games, seats, size)` after fields were written by hand."""
    return pitch.env.restore(pitch.env.snapshot())["vector"].clone()


def values(pitch: "Pitch", seat: int = 0, game: int = 0) -> dict[str, float]:
    """Returns what a seat sees, by name."""
    row = observe(pitch)[game, seat]
    return {name: float(row[place]) for name, place in PLACES.items()}


def vector(seen: dict[str, float], *names: str) -> list[float]:
    return [seen[name] for name in names]


def test_bounds_hold_and_no_value_is_constant_over_varied_play(make_pitch: "MakePitch") -> None:
    games = 96
    scenes, clock = dict.fromkeys(SETTERS, 1.0), {"episode": "match", "match_s": 8.0, "overtime_s": 4.0}
    pitch = make_pitch(games, mode="3v3", actions="table", setters=scenes, **clock)
    env = pitch.env
    names = ["random", "chaser", "shooter", "goalkeeper", "support", "shooter:noise=0.5"]
    bots = env.bots(names)
    assignment = torch.arange(games * 6, dtype=torch.int32).view(games, 6) * 7 % len(names)
    low, high = torch.tensor(LAYOUT.low), torch.tensor(LAYOUT.high)
    lowest, highest = torch.full((LAYOUT.size,), torch.inf), torch.full((LAYOUT.size,), -torch.inf)
    actions = torch.zeros((games, 6), dtype=torch.int64)
    for step in range(240):
        bots.act(assignment, actions)
        if step == 100:  # rare in play
            pitch.cars["demolished_s"][:20, :3] = 2.0
            pitch.match["blue_goals"][:5] = 40
        result = env.step(actions)
        seen = result.observations["vector"].view(-1, LAYOUT.size)
        lowest, highest = torch.minimum(lowest, seen.amin(0)), torch.maximum(highest, seen.amax(0))
        ended = result.ended
        if bool(ended.any()):
            final = result.final_observations["vector"][ended].view(-1, LAYOUT.size)
            lowest, highest = torch.minimum(lowest, final.amin(0)), torch.maximum(highest, final.amax(0))
    beyond = [LAYOUT.fields[i].name for i in torch.nonzero((lowest < low) | (highest > high)).flatten()]
    assert beyond == []
    constant = {LAYOUT.fields[i].name for i in torch.nonzero(lowest == highest).flatten()}
    # In three against three every slot is taken.
    assert constant == {name for name in PLACES if name.endswith(".present")}


def test_bounds_hold_for_states_that_play_does_not_reach(make_pitch: "MakePitch") -> None:
    """A state from outside may lie a little inside the walls, and be as fast and far apart as can be."""
    generator = torch.Generator().manual_seed(0)
    pitch = make_pitch(256, mode="3v3")
    for views, speed, spin in ((pitch.cars, 2300.0, 5.5), (pitch.ball, 6000.0, 6.0)):
        position = views["position"]
        drawn = torch.rand(position.shape, generator=generator) * 2 - 1
        position[:] = drawn.sign() * torch.tensor([4190.0, 6090.0, 0.0]) + torch.tensor([0.0, 0.0, 1.0]) * (
            drawn[..., 2:].abs() * 2140.0
        )
        for name, most in (("velocity", speed), ("spin", spin)):
            way = torch.randn(position.shape, generator=generator)
            views[name][:] = most * way / way.norm(dim=-1, keepdim=True)
    rotation = torch.randn(pitch.cars["rotation"].shape, generator=generator)
    pitch.cars["rotation"][:] = rotation / rotation.norm(dim=-1, keepdim=True)
    seen = observe(pitch)
    assert bool((seen >= torch.tensor(LAYOUT.low)).all())
    assert bool((seen <= torch.tensor(LAYOUT.high)).all())


def test_a_compact_view_by_hand(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(mode="1v1", episode="match", match_s=300.0)
    pitch.park(0, 1024.0, -3000.0, look="y", speed=1150.0)
    pitch.park(1, -1024.0, 1000.0, look="-y", speed=2300.0)
    pitch.put_ball(1024.0, -1000.0, 93.15, (300.0, 600.0, 0.0))
    pitch.cars["spin"][:, 0] = torch.tensor([0.0, 0.0, 2.75])
    pitch.cars["boost"][:] = torch.tensor([[40.0, 70.0]])
    pitch.cars["handbrake_value"][:, 0] = 0.25
    pitch.match["tick"][:] = 600
    pitch.match["clock_s"][:] = 150.0
    pitch.match["blue_goals"][:] = 2
    pitch.match["orange_goals"][:] = 1
    pitch.match["kickoff"][:] = 0
    pitch.env.pads[:, 0] = 600 + 360  # three seconds

    blue = values(pitch, 0)
    assert vector(blue, "self.x", "self.y", "self.z") == pytest.approx([0.25, -0.5, 17.01 / 2048])
    assert vector(blue, "self.vx", "self.vy", "self.vz") == pytest.approx([0.0, 0.5, 0.0])
    assert vector(blue, "self.forward_x", "self.forward_y", "self.up_z") == pytest.approx([0, 1, 1], abs=1e-6)
    assert vector(blue, "self.speed_ahead", "self.speed_left") == pytest.approx([0.5, 0.0], abs=1e-6)
    assert vector(blue, "self.spin_ahead", "self.spin_left", "self.spin_above") == pytest.approx([0, 0, 0.5], abs=1e-6)
    assert vector(blue, "self.boost", "self.handbrake", "self.on_ground") == pytest.approx([0.4, 0.25, 1.0])
    assert vector(blue, "self.has_jump", "self.has_dodge", "self.dodge_time") == [1.0, 0.0, 0.0]
    assert vector(blue, "ball.x", "ball.y", "ball.z") == pytest.approx([0.25, -1 / 6, 93.15 / 2048])
    assert vector(blue, "ball.vx", "ball.vy") == pytest.approx([0.1, 0.2])
    assert vector(blue, "ball.ahead", "ball.left", "ball.above") == pytest.approx(
        [2000 / 4096, 0.0, (93.15 - 17.01) / 4096], abs=1e-6
    )
    # It moves 300 to the right, and 550 slower than the car.
    assert vector(blue, "ball.speed_ahead", "ball.speed_left") == pytest.approx([-550 / 2300, -300 / 2300], abs=1e-6)
    distance = (2000.0**2 + (93.15 - 17.01) ** 2) ** 0.5
    assert blue["ball.way_ahead"] == pytest.approx(2000 / distance)
    assert blue["ball.nearness"] == pytest.approx(300 / (300 + distance))
    assert vector(blue, "ball.landing_ahead", "ball.landing_left") == vector(blue, "ball.ahead", "ball.left")
    assert blue["ball.landing_time"] == 0.0
    # From the ball to (0, 5120, 320): 1024 to the left, 6120 ahead, 226.85 up.
    to_goal = (1024.0**2 + 6120.0**2 + 226.85**2) ** 0.5
    assert vector(blue, "goals.other_ahead", "goals.other_left", "goals.other_above") == pytest.approx(
        [6120 / to_goal, 1024 / to_goal, 226.85 / to_goal]
    )
    assert blue["goals.own_ahead"] < -0.85
    assert vector(blue, "game.clock", "game.lead", "game.kickoff") == pytest.approx([0.5, 0.19737532, 0.0])
    assert vector(blue, "pads.0", "pads.1", "pads.33") == pytest.approx([0.7, 1.0, 1.0])

    orange = values(pitch, 1)
    assert vector(orange, "self.x", "self.y") == pytest.approx([0.25, -1 / 6])
    assert vector(orange, "self.vy", "self.forward_y") == pytest.approx([1.0, 1.0])
    # The ball: (2048, -2000) from the car in the world; the car looks along -y, so left is +x.
    assert vector(orange, "ball.ahead", "ball.left") == pytest.approx([2000 / 4096, 2048 / 4096], abs=1e-6)
    assert vector(orange, "ball.vx", "ball.vy") == pytest.approx([-0.1, -0.2])
    assert vector(orange, "game.lead", "pads.33", "pads.0") == pytest.approx([-0.19737532, 0.7, 1.0])

    slot = next(n for n in range(RIVALS) if blue[f"opponent_{n}.present"])
    names = [f"opponent_{slot}.{name}" for name in ("ahead", "left", "speed_ahead", "boost", "demolished")]
    assert vector(blue, *names) == pytest.approx([4000 / 4096, 2048 / 4096, -1.5, 0.7, 0.0], abs=1e-6)
    others = [name for name in blue if name.startswith(("teammate", "opponent")) and f"opponent_{slot}." not in name]
    assert len(others) == 36
    assert all(blue[name] == 0.0 for name in others)


def test_a_demolished_car_is_not_seen_but_its_return_is(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(shuffle=False)
    pitch.cars["demolished_s"][:, 1] = 1.5
    seen = values(pitch)
    assert vector(seen, "opponent_0.present", "opponent_0.demolished", "opponent_0.ahead") == [1.0, 0.5, 0.0]
    own = values(pitch, 1)
    assert vector(own, "self.demolished", "self.has_jump", "self.has_dodge") == [0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"on_ground": 0, "jumped": 1, "air_since_jump_s": 0.25}, (0.0, 1.0, 0.8)),
        ({"on_ground": 0, "jumped": 1, "air_since_jump_s": 1.3}, (0.0, 0.0, 0.0)),
        ({"on_ground": 0, "jumped": 0, "air_since_jump_s": 0.0}, (0.0, 1.0, 1.0)),  # fell off something
        ({"on_ground": 0, "jumped": 1, "dodged": 1}, (0.0, 0.0, 0.0)),
        ({"on_ground": 0, "jumped": 1, "double_jumped": 1}, (0.0, 0.0, 0.0)),
    ],
)
def test_jumps_that_are_left(pitch: "Pitch", state: dict[str, float], expected: tuple[float, ...]) -> None:
    for name, value in state.items():
        pitch.cars[name][:, 0] = value
    seen = values(pitch)
    assert vector(seen, "self.has_jump", "self.has_dodge", "self.dodge_time") == pytest.approx(expected)


def test_slots_keep_their_cars_for_an_episode_and_all_orders_are_drawn(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(400, mode="2v3", episode_s=1.0)
    boosts = torch.tensor([10.0, 20.0, 30.0, 40.0, 50.0])
    places = [PLACES[f"opponent_{slot}.boost"] for slot in range(RIVALS)]
    mates = [PLACES[f"teammate_{slot}.boost"] for slot in range(MATES)]

    def orders() -> tuple[Tensor, Tensor]:
        pitch.cars["boost"][:] = boosts
        rows = observe(pitch)
        return (rows[:, 0, places] * 100).round().int(), (rows[:, 4, mates] * 100).round().int()

    rivals, own = orders()
    assert len({tuple(row) for row in rivals.tolist()}) == 6
    assert {tuple(row) for row in own.tolist()} == {(30, 40), (40, 30)}
    pitch.step(steps=5)
    again, own_again = orders()
    assert torch.equal(rivals, again)
    assert torch.equal(own, own_again)
    pitch.step(steps=12)  # the next episode
    assert bool((pitch.match["episode"] == 1).all())
    assert not torch.equal(rivals, orders()[0])


def test_slots_without_shuffling_follow_the_seats(make_pitch: "MakePitch") -> None:
    pitch = make_pitch(mode="3v2", shuffle=False)
    pitch.cars["boost"][:] = torch.tensor([[10.0, 20.0, 30.0, 40.0, 50.0]])
    rows = observe(pitch)[0]

    def boosts(seat: int, kind: str, slots: int) -> list[float]:
        return [round(float(rows[seat, PLACES[f"{kind}_{slot}.boost"]]) * 100) for slot in range(slots)]

    assert [boosts(seat, "teammate", MATES) for seat in range(5)] == [[20, 30], [10, 30], [10, 20], [50, 0], [40, 0]]
    assert boosts(0, "opponent", RIVALS) == [40, 50, 0]
    assert boosts(3, "opponent", RIVALS) == [10, 20, 30]


def test_every_team_sees_itself_as_blue(make_pitch: "MakePitch") -> None:
    """A state turned by half a turn, with the teams exchanged, looks the same to everybody, to the last bit."""
    pitch, image = (make_pitch(64, mode="2v2", setters={"random": 1.0}) for _ in range(2))
    for name, values_ in pitch.cars.items():
        swapped = values_[:, [2, 3, 0, 1]]
        image.cars[name][:] = 1 - swapped if name == "team" else swapped
    for own, other in ((pitch.cars, image.cars), (pitch.ball, image.ball)):
        for name in ("position", "velocity", "spin"):
            turned = own[name][:, [2, 3, 0, 1]] if own is pitch.cars else own[name]
            other[name][:] = turned * torch.tensor([-1.0, -1.0, 1.0])
    x, y, z, w = image.cars["rotation"].clone().unbind(-1)
    image.cars["rotation"][:] = torch.stack([-y, x, w, -z], -1)
    pitch.env.pads[:, 3] = 500
    image.env.pads[:, 30] = 500
    pitch.match["orange_goals"][:] = 3
    image.match["blue_goals"][:] = 3
    assert torch.equal(observe(pitch), observe(image)[:, [2, 3, 0, 1]])


def test_a_mirrored_world_gives_the_mirrored_observation(make_pitch: "MakePitch") -> None:
    pitch, image = (make_pitch(64, mode="2v2", setters={"random": 1.0}) for _ in range(2))
    for own, other in ((pitch.cars, image.cars), (pitch.ball, image.ball)):
        for name, signs in (("position", (-1, 1, 1)), ("velocity", (-1, 1, 1)), ("spin", (1, -1, -1))):
            other[name][:] = own[name] * torch.tensor(signs)
    x, y, z, w = pitch.cars["rotation"].clone().unbind(-1)
    image.cars["rotation"][:] = torch.stack([-y, -x, w, z], -1)
    pitch.env.pads[:] = torch.randint(0, 900, pitch.env.pads.shape, dtype=torch.int32)
    image.env.pads[:] = pitch.env.pads[:, [PADS.index((0.0 - x, y)) for x, y in PADS]]
    assert torch.equal(LAYOUT.reflection.apply(observe(pitch)), observe(image))


@pytest.mark.parametrize(
    ("position", "velocity", "tolerance"),
    [
        ((0.0, 0.0, 1000.0), (300.0, -500.0, 0.0), 20.0),
        ((500.0, 1000.0, 600.0), (-200.0, 400.0, 700.0), 20.0),
        ((0.0, 0.0, 1700.0), (0.0, 300.0, 1500.0), 150.0),  # by way of the ceiling
        ((3000.0, 0.0, 900.0), (1500.0, 0.0, 300.0), 150.0),  # off the side wall
    ],
)
def test_the_landing_is_where_the_ball_comes_down(
    make_pitch: "MakePitch",
    position: tuple[float, float, float],
    velocity: tuple[float, float, float],
    tolerance: float,
) -> None:
    pitch = make_pitch(ticks=1)
    pitch.park(0, -3000.0, -4000.0)
    pitch.park(1, -3000.0, 4000.0)
    pitch.put_ball(*position, velocity=velocity)
    seen = values(pitch)
    seconds = seen["ball.landing_time"] * 4.0
    place = [-3000.0 - seen["ball.landing_left"] * 4096, -4000.0 + seen["ball.landing_ahead"] * 4096]
    ticks = 0
    while float(pitch.ball["position"][0, 2]) > 180.0:
        pitch.step()
        ticks += 1
    assert seconds == pytest.approx(ticks / 120, abs=0.1)
    assert pitch.ball["position"][0, :2].tolist() == pytest.approx(place, abs=tolerance)


def test_the_layout_is_what_the_spec_says(make_pitch: "MakePitch") -> None:
    env = make_pitch().env
    space: Any = env.spec.observation_space["vector"]
    assert space.shape == (LAYOUT.size,) == (len(PLACES),) == (136,)
    assert env.spec.blocks["vector"] == LAYOUT.blocks
    stops = [stop for _, stop in LAYOUT.blocks.values()]
    assert [start for start, _ in LAYOUT.blocks.values()] == [0, *stops[:-1]]
    assert stops[-1] == LAYOUT.size
