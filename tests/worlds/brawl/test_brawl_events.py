"""Events and measures: what is reported each step adds up over whole matches and agrees with the state."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from ludus.envs.base import packed
from ludus.worlds.brawl.rules import EVENTS, MEASURES, Event, Ground, Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

PLAYERS = ["random", "based", "aggressive", "edge-guarder", "weapon-seeker", "heavy-spammer:noise=0.2"]


def test_names_and_columns_agree(stage: "Stage") -> None:
    assert tuple(event.name.lower() for event in Event) == EVENTS
    result = stage.step()
    assert tuple(result.events) == EVENTS == stage.env.spec.events
    assert tuple(result.state_metrics) == MEASURES == stage.env.spec.state_metrics
    for values in (*result.events.values(), *result.state_metrics.values()):
        assert (values.shape, values.dtype) == ((1, 2), torch.float32)


def test_sums_over_matches_are_consistent(make_stage: "MakeStage") -> None:
    games = 192
    stage = make_stage(games, weapon_spawns=True, move_table=None, step_limit=700, stocks=2)
    env = stage.env
    bots = env.bots(PLAYERS)
    seats = torch.arange(games * 2, dtype=torch.int32).view(games, 2)
    assignment = (seats + seats // 7) % len(PLAYERS)
    actions = torch.zeros((games, 2, 10), dtype=torch.int8)
    totals = {name: torch.zeros(games, 2) for name in EVENTS}
    matches = 0
    seen = dict.fromkeys(EVENTS, 0.0)
    for _ in range(1600):
        held = stage.fields["weapon"].clone()
        damage = stage.fields["damage"].clone()
        bots.act(assignment, actions)
        result = env.step(actions)
        events = result.events
        for name in EVENTS:
            totals[name] += events[name]
            seen[name] += float(events[name].sum())
        _check_step(events, result.state_metrics, held, damage)
        ended = result.terminated
        if bool(ended.any()):
            matches += int(ended.sum())
            _check_match({name: total[ended] for name, total in totals.items()}, result.state_metrics, ended)
            for total in totals.values():
                total[ended] = 0.0
    assert matches > 2 * games  # some were over before the clock
    assert all(seen[name] > 0 for name in EVENTS if name != "draws"), seen


def _check_step(
    events: Mapping[str, Tensor], state_metrics: Mapping[str, Tensor], held: Tensor, damage: Tensor
) -> None:
    """What must hold in every step."""
    assert torch.equal(events["damage_dealt"], events["damage_taken"].flip(1))
    assert torch.equal(events["knockouts"], events["knocked_out"].flip(1))
    assert torch.equal(events["wins"], events["losses"].flip(1))
    assert torch.equal(events["draws"][:, 0], events["draws"][:, 1])
    for name in EVENTS:
        if name not in ("damage_dealt", "damage_taken", "pickup_value"):
            assert bool(((events[name] == 0) | (events[name] == 1)).all()), name
    assert bool((events["damage_dealt"] >= 0).all())
    assert bool((events["hits"] >= events["stun_hits"]).all())
    assert bool(((events["damage_dealt"] == 0) | (events["hits"] == 1)).all())
    assert torch.equal(events["pickup_value"] > 0, events["pickups"] > 0)  # both weapons have a value
    lost = (events["knocked_out"] + events["falls"]) > 0
    assert bool((state_metrics["state"][lost] == State.KO).all())
    # Damage is what it was plus what was taken, or 0 after a lost stock or a respawn.
    expected = torch.where(lost, 0.0, damage + events["damage_taken"])
    torch.testing.assert_close(state_metrics["damage"], expected)
    expected_weapon = held.float() * (1 - events["drops"])
    same = (events["pickups"] == 0) & ~lost
    assert torch.equal(state_metrics["weapon"][same], expected_weapon[same])
    assert bool((state_metrics["weapon"][lost] == 0).all())


def _check_match(totals: Mapping[str, Tensor], state_metrics: Mapping[str, Tensor], ended: Tensor) -> None:
    """What must hold at the end of every match; rows are the matches that ended."""
    stocks = state_metrics["stocks"][ended]
    assert torch.equal(totals["knocked_out"] + totals["falls"], 2 - stocks)
    assert torch.equal(totals["wins"] + totals["losses"] + totals["draws"], torch.ones_like(stocks))
    assert torch.equal(totals["damage_dealt"], totals["damage_taken"].flip(1))
    assert bool((totals["pickups"] >= totals["drops"]).all())
    assert bool((totals["hits"] >= totals["stun_hits"]).all())
    decided = stocks[:, 0] != stocks[:, 1]
    assert torch.equal(totals["wins"][decided][:, 0] > 0, stocks[decided][:, 0] > stocks[decided][:, 1])
    damage = state_metrics["damage"][ended]
    close = ~decided & (damage[:, 0] != damage[:, 1])
    assert torch.equal(totals["wins"][close][:, 0] > 0, damage[close][:, 0] < damage[close][:, 1])
    even = ~decided & (damage[:, 0] == damage[:, 1])
    assert torch.equal(totals["draws"][:, 0] > 0, even)


def test_measures_show_the_state_before_a_restart(make_stage: "MakeStage") -> None:
    stage = make_stage(step_limit=40)
    stage.matches["frame"][:] = 39
    stage.stand(0, -4.5, damage=33.0, stocks=2, weapon=1, facing=1)
    stage.hang(1, 3.5, -2.0, facing=1)
    result = stage.step("right up", "")
    assert bool(result.terminated[0])
    state_metrics = {name: values[0].tolist() for name, values in result.state_metrics.items()}
    x, fallen = -4.5 + 6.75 / 30, 17.808 / 900
    assert state_metrics["x"] == pytest.approx([x, -3.5])  # each from its own side
    assert state_metrics["y"] == pytest.approx([2.35, -2.0 + fallen])
    assert state_metrics["distance"] == pytest.approx([((3.5 - x) ** 2 + (4.35 - fallen) ** 2) ** 0.5] * 2)
    assert state_metrics["heading"] == [1, -1]  # seat 0 faces the other, seat 1 faces away
    assert state_metrics["damage"] == [33.0, 0.0]
    assert state_metrics["stocks"] == [2, 3]
    assert state_metrics["state"] == [State.WALKING, State.IN_AIR]
    assert state_metrics["grounded"] == [1, 0]
    assert state_metrics["weapon"] == [1, 0]
    assert state_metrics["keys_held"] == [2, 0]
    assert state_metrics["opponent_x"] == pytest.approx([3.5, -x])  # each from its own side
    assert state_metrics["opponent_y"] == pytest.approx([-2.0 + fallen, 2.35])
    assert stage.get(0, "damage") == 0.0  # the state itself is the next match already


def test_heading_is_zero_when_above_each_other(stage: "Stage") -> None:
    stage.hang(0, -5.0, -2.0)
    stage.hang(1, -5.0, 1.0)
    assert stage.step().state_metrics["heading"][0].tolist() == [0, 0]


def test_closing_is_the_own_speed_toward_the_opponent(stage: "Stage") -> None:
    """Positions that the step reaches are 3 and 4 apart, so the unit vector from seat 0 is (0.6, -0.8)."""
    dt, gained = 1 / 30, 17.808 / 30  # one frame of gravity
    stage.hang(0, -12.0 - 5.0 * dt, 1.0 - 10.0 * dt, vx=5.0, vy=10.0 - gained)
    stage.hang(1, -9.0 + 2.0 * dt, -3.0, vx=-2.0, vy=-gained)
    result = stage.step()
    assert result.state_metrics["distance"][0].tolist() == pytest.approx([5.0, 5.0])
    # 0.6 * 5 - 0.8 * 10 flies apart; the other's unit vector is (-0.6, 0.8), and it moves at (-2, 0).
    assert result.state_metrics["closing"][0].tolist() == pytest.approx([-5.0, 1.2], abs=1e-5)


def test_closing_on_level_ground_is_the_walking_speed_from_either_side(stage: "Stage") -> None:
    stage.stand(0, -5.0, facing=1)
    stage.stand(1, -3.0, facing=1)
    result = stage.step("right", "right")  # one walks after the other at 6.75 units/s
    assert result.state_metrics["closing"][0].tolist() == pytest.approx([6.75, -6.75])


def test_closing_is_zero_where_there_is_no_distance(stage: "Stage") -> None:
    for seat in (0, 1):
        stage.hang(seat, -5.0, -2.0, vx=3.0, state=State.STUN, timer=9)
    result = stage.step()
    assert result.state_metrics["distance"][0].tolist() == [0, 0]
    assert result.state_metrics["closing"][0].tolist() == [0, 0]


def test_measures_of_a_fighter_that_went_out_are_those_of_its_start(stage: "Stage") -> None:
    stage.stand(0, -5.0)
    stage.hang(1, 13.9, 0.0, vx=40.0)
    result = stage.step()
    assert stage.state(1) == State.KO
    assert bool(packed(result.state_metrics, MEASURES).isfinite().all())
    assert result.state_metrics["opponent_x"][0].tolist() == [5.0, 5.0]
    assert result.state_metrics["opponent_y"][0].tolist() == pytest.approx([0.0, 2.35])
    assert result.state_metrics["closing"][0].tolist() == [0, 0]


def _hit_and_throw_out(stage: "Stage") -> None:
    """Hits seat 1 with a jab in the air."""
    stage.hang(0, 12.0, -3.0, facing=1, state=State.ATTACK, move=Slot.AIR_LIGHT_NEUTRAL, move_frame=3)
    stage.hang(1, 12.8, -3.0)
    assert stage.step().events["hits"][0, 0] == 1


def test_out_after_a_hit_is_a_knockout(stage: "Stage") -> None:
    _hit_and_throw_out(stage)
    stage.set(1, vx=40.0)
    result = stage.step()
    assert result.events["knockouts"][0].tolist() == [1, 0]
    assert result.events["knocked_out"][0].tolist() == [0, 1]
    assert result.events["falls"].sum() == 0


def test_a_late_death_in_the_air_after_a_hit_is_a_knockout_too(stage: "Stage") -> None:
    _hit_and_throw_out(stage)
    stage.hang(0, -12.0, -7.0, damage=0.0)
    for _ in range(60):
        stage.set(0, y=-7.0, vy=0.0)
        result = stage.step()
        if stage.state(1) == State.KO:
            break
    assert result.events["knocked_out"][0].tolist() == [0, 1]


def test_a_fall_after_standing_safely_is_ones_own(stage: "Stage") -> None:
    _hit_and_throw_out(stage)
    stage.stand(1, 5.0, timer=0)
    stage.stand(0, -5.0)
    stage.step()
    stage.hang(1, 0.0, 7.9, vy=12.0)
    result = stage.step()
    assert result.events["falls"][0].tolist() == [0, 1]
    assert result.events["knocked_out"].sum() == 0


def test_sliding_over_the_ground_in_stun_is_not_safe(stage: "Stage") -> None:
    stage.stand(1, 5.0, state=State.STUN, timer=5, threatened=1)
    stage.step()
    assert stage.get(1, "threatened") == 1
    stage.hang(1, 14.5, 0.0)
    assert stage.step().events["knocked_out"][0].tolist() == [0, 1]


def test_sliding_over_the_edge_from_a_blow_is_a_knockout(stage: "Stage") -> None:
    """A thrown body touches the ground for some frames after its stun and slides on over the edge."""
    stage.hang(1, 6.9, 0.3, vx=8.0, vy=3.0, threatened=1)
    touched = 0
    for _ in range(60):
        result = stage.step()
        touched += stage.get(1, "ground") == Ground.SOLID
        if stage.state(1) == State.KO:
            break
    assert touched > 0
    assert result.events["knocked_out"][0].tolist() == [0, 1]
    assert result.events["falls"].sum() == 0


def test_the_blame_does_not_outlive_the_stock(stage: "Stage") -> None:
    stage.hang(1, 14.5, 0.0, threatened=1)
    assert stage.step().events["knocked_out"][0, 1] == 1
    stage.step(frames=91)
    stage.hang(1, 14.5, 0.0)
    assert stage.step().events["falls"][0, 1] == 1
