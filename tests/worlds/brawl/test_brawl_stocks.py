"""Stocks and ends: the kill box, being out, coming back protected, and who has won when a match is over."""

from typing import TYPE_CHECKING

import pytest

from ludus.worlds.brawl.rules import Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

OUTSIDE = {"right": (14.01, -5.0), "left": (-14.01, -5.0), "below": (0.0, 8.01), "above": (10.0, -8.4)}


def _outcome(stage: "Stage", seat: int = 0) -> str:
    """Steps once and names how the match ended for a seat, or says `goes on`."""
    result = stage.step()
    for name in ("wins", "losses", "draws"):
        if result.events[name][0, seat] == 1:
            assert bool(result.terminated[0])
            return name
    assert not bool(result.terminated[0])
    return "goes on"


@pytest.mark.parametrize("side", list(OUTSIDE))
@pytest.mark.parametrize("seat", [0, 1])
def test_leaving_the_kill_box_on_any_side_costs_a_stock(stage: "Stage", seat: int, side: str) -> None:
    stage.hang(seat, *OUTSIDE[side], damage=120.0, weapon=2, jumps=0, dodge_cooldown=50, recovery_used=1)
    result = stage.step()
    assert stage.state(seat) == State.KO
    assert stage.get(seat, "stocks") == 2
    assert (stage.get(seat, "damage"), stage.get(seat, "weapon")) == (0.0, 0)
    assert stage.place(seat) == (5.0 * stage.get(seat, "home"), 0.0)
    assert stage.get(1 - seat, "stocks") == 3
    assert result.events["falls"][0].tolist() == [float(seat == 0), float(seat == 1)]
    assert not bool(result.terminated[0])


@pytest.mark.parametrize("x", [14.0, -14.0])
def test_the_border_itself_is_inside(stage: "Stage", x: float) -> None:
    stage.hang(0, x, -5.0)
    stage.step()
    assert stage.state() == State.IN_AIR
    stage.set(0, vx=x)
    stage.step()
    assert stage.state() == State.KO


def test_a_fall_into_the_gap_from_the_low_ground(stage: "Stage") -> None:
    # From 2.35 to below 8 are 5.65 units: 20 frames give 4.1552, and then 0.4 a frame: the fourth is below.
    stage.hang(0, -1.5, 2.35)
    for frame in range(1, 25):
        stage.step()
        assert (stage.state() == State.KO) == (frame == 24), frame


def test_out_for_ninety_frames_then_back_at_the_start(stage: "Stage") -> None:
    stage.hang(0, 14.5, -5.0, damage=200.0)
    stage.step()
    for _ in range(89):
        stage.step("right jump light pickup dodge")
        assert stage.state() == State.KO
        assert stage.place(0) == (-5.0, 0.0)
    stage.step()
    assert stage.state() == State.IN_AIR
    assert stage.get(0, "invincible") == 90
    assert stage.get(0, "x") == -5.0
    assert stage.get(0, "facing") == 1
    assert (stage.get(0, "damage"), stage.get(0, "stocks"), stage.get(0, "jumps")) == (0.0, 2, 2)


def test_a_fighter_that_is_out_is_hit_by_nothing(stage: "Stage") -> None:
    stage.hang(0, 14.5, -5.0)
    stage.step()
    for _ in range(80):
        stage.stand(1, -5.5, facing=1, y=0.0, state=State.ATTACK, move=Slot.GROUND_LIGHT_NEUTRAL, move_frame=2)
        result = stage.step()
        assert result.events["hits"].sum() == 0


def test_invincibility_after_a_respawn_really_protects_for_ninety_frames(stage: "Stage") -> None:
    stage.hang(0, 14.5, -5.0)
    stage.step(frames=91)
    assert stage.get(0, "invincible") == 90
    protected = 1  # the frame in which it came back
    for _ in range(120):  # in each frame, a jab that is just becoming active, from half a unit away
        stage.stand(0, -5.0)
        stage.stand(1, -5.5, facing=1, state=State.ATTACK, move=Slot.GROUND_LIGHT_NEUTRAL, move_frame=2, hit_mask=0)
        result = stage.step()
        if result.events["hits"][0, 1] == 1:
            break
        protected += 1
    assert protected == 90


def test_an_invincible_fighter_may_strike(stage: "Stage") -> None:
    stage.stand(0, -5.0, facing=-1, invincible=50)
    stage.stand(1, -5.8, facing=1)
    result = stage.step("light")
    for _ in range(5):
        result = stage.step()
        if result.events["hits"][0, 0]:
            break
    assert result.events["hits"][0].tolist() == [1, 0]


def test_losing_the_last_stock_loses_the_match(stage: "Stage") -> None:
    stage.set(0, stocks=1)
    stage.set(1, stocks=1, damage=300.0)
    stage.hang(0, 14.5, -5.0)
    assert _outcome(stage) == "losses"
    assert stage.get(0, "stocks") == stage.get(1, "stocks") == 3  # the next match has begun
    assert stage.get(1, "damage") == 0.0
    assert stage.matches["frame"][0] == 0
    assert stage.matches["episode"][0] == 1


def test_both_losing_the_last_stock_at_once_is_a_draw(stage: "Stage") -> None:
    for seat, damage in ((0, 10.0), (1, 90.0)):
        stage.set(seat, stocks=1)
        stage.hang(seat, 14.5, -5.0, damage=damage)
    assert _outcome(stage) == "draws"


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(
    ("stocks", "damage", "outcome"),
    [
        ((2, 1), (500.0, 0.0), "wins"),  # stocks count before damage
        ((1, 3), (0.0, 0.0), "losses"),
        ((2, 2), (40.0, 40.5), "wins"),
        ((2, 2), (41.0, 40.5), "losses"),
        ((3, 3), (0.0, 0.0), "draws"),
        ((1, 1), (77.0, 77.0), "draws"),
    ],
)
def test_at_the_end_of_the_clock(
    stage: "Stage", seat: int, stocks: tuple[int, int], damage: tuple[float, float], outcome: str
) -> None:
    for index in (0, 1):
        at = index if seat == 0 else 1 - index
        stage.set(at, stocks=stocks[index], damage=damage[index])
    stage.matches["frame"][:] = 2698
    assert _outcome(stage, seat) == "goes on"
    assert _outcome(stage, seat) == outcome


def test_the_last_frame_counts(stage: "Stage") -> None:
    stage.matches["frame"][:] = 2699
    stage.hang(1, 14.5, -5.0)
    assert _outcome(stage) == "wins"


def test_the_length_of_a_match_and_its_stocks_can_be_set(make_stage: "MakeStage") -> None:
    stage = make_stage(step_limit=40, stocks=5)
    assert stage.get(0, "stocks") == 5
    for _ in range(39):
        assert _outcome(stage) == "goes on"
    assert _outcome(stage) == "draws"


def test_a_match_is_never_truncated(make_stage: "MakeStage") -> None:
    stage = make_stage(step_limit=30)
    for frame in range(1, 61):
        result = stage.step()
        assert not bool(result.truncated.any())
        assert bool(result.terminated[0]) == (frame % 30 == 0)
