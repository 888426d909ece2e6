"""Moves: which keys give which, how long they take, charging, follow-ups, own motion and landing."""

from typing import TYPE_CHECKING

import pytest

from ludus.worlds.brawl.rules import Ground, Slot, State

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage


@pytest.mark.parametrize("weapon", [0, 1, 2])
@pytest.mark.parametrize(
    ("airborne", "keys", "slot"),
    [
        (False, "light", Slot.GROUND_LIGHT_NEUTRAL),
        (False, "light up", Slot.GROUND_LIGHT_NEUTRAL),
        (False, "light left right", Slot.GROUND_LIGHT_NEUTRAL),
        (False, "light down", Slot.GROUND_LIGHT_DOWN),
        (False, "light down right", Slot.GROUND_LIGHT_DOWN),
        (False, "light right", Slot.GROUND_LIGHT_SIDE),
        (False, "light left", Slot.GROUND_LIGHT_SIDE),
        (False, "heavy", Slot.GROUND_HEAVY_NEUTRAL),
        (False, "heavy light", Slot.GROUND_HEAVY_NEUTRAL),
        (False, "heavy down", Slot.GROUND_HEAVY_DOWN),
        (False, "heavy left", Slot.GROUND_HEAVY_SIDE),
        (True, "light", Slot.AIR_LIGHT_NEUTRAL),
        (True, "light down", Slot.AIR_LIGHT_DOWN),
        (True, "light right", Slot.AIR_LIGHT_SIDE),
        (True, "heavy", Slot.RECOVERY),
        (True, "heavy right", Slot.RECOVERY),
        (True, "heavy down", Slot.GROUND_POUND),
    ],
)
def test_the_keys_of_the_eleven_moves(stage: "Stage", airborne: bool, keys: str, slot: Slot, weapon: int) -> None:
    stage.set(0, weapon=weapon)
    if airborne:
        stage.hang(0, -5.0, -3.0)
    result = stage.step(keys)
    assert stage.state() == State.ATTACK
    assert stage.get(0, "move") == 11 * weapon + slot
    assert stage.get(0, "move_frame") == 0
    assert result.events["attacks"][0].tolist() == [1, 0]
    if "left" in keys and "right" not in keys:
        assert stage.get(0, "facing") == -1


@pytest.mark.parametrize("slot", [s for s in Slot if s <= Slot.GROUND_HEAVY_SIDE])
def test_a_whiff_takes_exactly_its_total(stage: "Stage", slot: Slot) -> None:
    total = stage.env.table.move(slot).total
    stage.stand(0, -5.0, facing=-1)
    key = "light" if slot <= Slot.GROUND_LIGHT_SIDE else "heavy"
    aim = ("", "down", "left")[slot % 3]
    attacks = float(stage.step(f"{key} {aim}").events["attacks"][0, 0])
    frames = 1
    while True:
        attacks += float(stage.step("down" if aim == "down" else "").events["attacks"][0, 0])
        if stage.state() != State.ATTACK:
            break
        assert stage.get(0, "move_frame") == frames
        frames += 1
    assert frames == total
    assert attacks == 1
    assert (stage.get(0, "move"), stage.get(0, "move_frame"), stage.get(0, "hit_mask")) == (-1, 0, 0)


def test_a_held_key_attacks_again_at_once(stage: "Stage") -> None:
    total = stage.env.table.move(Slot.GROUND_LIGHT_NEUTRAL).total
    attacks = [float(stage.step("light").events["attacks"][0, 0]) for _ in range(2 * total + 1)]
    assert [frame for frame, began in enumerate(attacks) if began] == [0, total, 2 * total]


def test_keys_count_again_in_the_frame_in_which_an_attack_is_over(stage: "Stage") -> None:
    stage.step("light")
    stage.step(frames=19)
    assert stage.state() == State.ATTACK
    stage.step("jump")
    assert stage.get(0, "ground") == Ground.NONE


def test_an_attack_cannot_be_broken_off(stage: "Stage") -> None:
    stage.step("light")
    stage.step()
    for _ in range(9):
        stage.step("jump dodge taunt left")
        assert stage.state() == State.ATTACK
        assert stage.get(0, "facing") == 1
        stage.step()


@pytest.mark.parametrize("held", [0, 1, 7, 20, 24])
def test_a_heavy_move_waits_and_charges_while_its_key_is_held(stage: "Stage", held: int) -> None:
    # Frame 5 is the waiting frame; it is left as soon as the key is up, or after 20 frames.
    stage.step("heavy", frames=6)
    assert (stage.get(0, "move_frame"), stage.get(0, "charge")) == (5, 0)
    for frame in range(held):
        stage.step("heavy")
        charge = min(frame + 1, 20)
        assert (stage.get(0, "move_frame"), stage.get(0, "charge")) == (5 + max(frame - 19, 0), charge)
    before = stage.get(0, "move_frame")
    stage.step()
    assert stage.get(0, "move_frame") == before + 1
    assert stage.get(0, "charge") == min(held, 20)


def test_a_move_without_charge_does_not_wait(stage: "Stage") -> None:
    stage.step("heavy right", frames=12)
    assert (stage.get(0, "move_frame"), stage.get(0, "charge")) == (11, 0)


@pytest.mark.parametrize("held", [0, 1, 10, 20])
def test_charging_raises_damage_and_launch_by_the_documented_fraction(stage: "Stage", held: int) -> None:
    stage.stand(1, -4.7, damage=30.0)
    stage.step("heavy", frames=6 + held)
    hits = [stage.step() for _ in range(1)]
    while stage.get(1, "state") != State.STUN:
        hits.append(stage.step())
    # 20 damage and launch [8, 6], both times 1 + 0.5 * charge / 20; growth from the damage after the hit.
    boost = 1.0 + 0.5 * held / 20
    assert float(hits[-1].events["damage_dealt"][0, 0]) == pytest.approx(20.0 * boost)
    damage = 30.0 + 20.0 * boost
    assert stage.get(1, "damage") == pytest.approx(damage)
    speed = boost * (8.0 + 6.0 * (damage / 70 + damage**2 / 12000))
    assert stage.get(1, "vy") == pytest.approx(-speed, rel=1e-5)
    assert stage.get(1, "vx") == pytest.approx(0.0, abs=1e-5)
    assert stage.get(1, "timer") == 10 + int(0.25 * speed)


def test_a_follow_up_comes_after_a_hit_with_the_key_held(stage: "Stage") -> None:
    stage.stand(1, -4.0)
    stage.step("light")
    for frame in range(1, 8):
        stage.step("light")
        assert (stage.get(0, "move"), stage.get(0, "move_frame")) == (Slot.GROUND_LIGHT_NEUTRAL, frame)
    assert stage.get(0, "hit_mask") == 1
    result = stage.step("light")  # from frame 8 on
    assert (stage.get(0, "move"), stage.get(0, "move_frame")) == (Slot.GROUND_LIGHT_SIDE, 0)
    assert stage.get(0, "hit_mask") == 0
    assert result.events["attacks"][0].tolist() == [1, 0]


def test_a_follow_up_may_turn_around(stage: "Stage") -> None:
    stage.stand(1, -4.0)
    stage.step("light", frames=8)
    stage.step("light left")
    assert (stage.get(0, "move"), stage.get(0, "facing")) == (Slot.GROUND_LIGHT_SIDE, -1)


@pytest.mark.parametrize(("touching", "keys"), [(False, "light"), (True, ""), (True, "heavy")])
def test_no_follow_up_on_a_whiff_or_without_the_key(stage: "Stage", touching: bool, keys: str) -> None:
    stage.stand(1, -4.0 if touching else 5.0)
    stage.step("light", frames=8)
    assert (stage.get(0, "hit_mask") == 1) == touching
    for frame in range(8, 20):
        stage.step(keys)
        assert (stage.get(0, "move"), stage.get(0, "move_frame")) == (Slot.GROUND_LIGHT_NEUTRAL, frame)


def test_a_late_follow_up_is_a_follow_up_too(stage: "Stage") -> None:
    stage.stand(1, -4.0)
    stage.step("light")
    stage.step(frames=15)
    stage.step("light")
    assert stage.get(0, "move") == Slot.GROUND_LIGHT_SIDE


def test_a_lunge_carries_its_fighter(stage: "Stage") -> None:
    stage.stand(0, -6.0)
    stage.step("light right", frames=3)  # frames 0 to 2
    assert stage.get(0, "x") == -6.0
    stage.step(frames=6)  # frames 3 to 8 at 8.5
    assert stage.get(0, "x") == pytest.approx(-6.0 + 6 * 8.5 / 30, abs=1e-5)
    stage.step()
    assert stage.get(0, "vx") == pytest.approx(7.0)  # slows by 1.5 a frame


def test_the_recovery_move_rises_and_comes_once_an_airtime(stage: "Stage") -> None:
    stage.hang(0, -5.0, -2.0, facing=1)
    stage.step("heavy", frames=4)  # frames 0 to 3 fall freely
    y = stage.get(0, "y")
    stage.step(frames=8)  # frames 4 to 11: 10.5 upward, no gravity
    assert stage.get(0, "y") == pytest.approx(y - 8 * 10.5 / 30, abs=1e-4)
    assert stage.get(0, "x") == pytest.approx(-5.0 + 8 * 2.5 / 30, abs=1e-4)
    stage.step(frames=17)  # 28 frames after its first
    assert stage.state() == State.IN_AIR
    stage.set(0, y=-5.0, vy=0.0)
    for _ in range(5):
        stage.step("heavy")
        assert stage.state() == State.IN_AIR
    while stage.get(0, "ground") == Ground.NONE:
        stage.step()
    stage.step("jump")
    stage.step("heavy")
    assert stage.get(0, "move") == Slot.RECOVERY


def test_being_hit_gives_the_recovery_and_an_air_jump_back(stage: "Stage") -> None:
    stage.hang(1, -4.0, -3.0, jumps=0, recovery_used=1)
    stage.hang(0, -5.0, -3.0, state=State.ATTACK, move=Slot.AIR_LIGHT_NEUTRAL, move_frame=3)
    stage.step()
    assert (stage.get(1, "jumps"), stage.get(1, "recovery_used")) == (1, 0)


def test_a_ground_pound_falls_fast_and_ends_its_lag_after_landing(stage: "Stage") -> None:
    stage.hang(0, -5.0, -3.0)
    stage.step("down heavy", frames=8)
    y = stage.get(0, "y")
    stage.step("down heavy", frames=5)  # frames 8 to 12 at 14
    assert stage.get(0, "y") == pytest.approx(y + 5 * 14 / 30, abs=1e-4)
    while stage.get(0, "ground") == Ground.NONE:
        stage.step()
    assert stage.state() == State.ATTACK
    assert stage.get(0, "move_frame") == 34  # 46 less 12 of lag
    for _ in range(11):
        stage.step()
        assert stage.state() == State.ATTACK
    stage.step()
    assert stage.state() == State.STANDING
    assert stage.get(0, "y") == pytest.approx(2.35)


def test_landing_shortens_an_air_move_to_its_lag_and_never_lengthens_it(stage: "Stage") -> None:
    for frame, left in ((5, 3), (16, 1)):  # of 18 frames, 3 are left after landing
        stage.hang(0, -5.0, 2.34, state=State.ATTACK, move=Slot.AIR_LIGHT_NEUTRAL, move_frame=frame, facing=-1)
        stage.step()
        assert stage.get(0, "ground") == Ground.SOLID
        assert stage.get(0, "move_frame") == max(15, frame + 1)
        stage.step(frames=left)
        assert stage.state() == State.STANDING


def test_a_move_without_landing_lag_goes_on_after_landing(stage: "Stage") -> None:
    stage.hang(0, -5.0, 2.34, state=State.ATTACK, move=Slot.AIR_LIGHT_SIDE, move_frame=10, facing=-1)
    stage.step()
    assert (stage.get(0, "ground"), stage.get(0, "move_frame")) == (Ground.SOLID, 11)


def test_an_air_move_can_be_steered_by_drifting(stage: "Stage") -> None:
    stage.hang(0, -5.0, -5.0, facing=1)
    stage.step("light")
    stage.step("left", frames=5)
    assert stage.get(0, "vx") == pytest.approx(-5 * 0.358, abs=1e-4)
    assert stage.get(0, "facing") == 1


@pytest.mark.parametrize("slot", list(Slot))
def test_moves_are_the_same_to_the_left_and_to_the_right(make_stage: "MakeStage", slot: Slot) -> None:
    stage = make_stage(2)  # two games, each the other's mirror image about x = 0, where nothing is in the way
    grounded = slot <= Slot.GROUND_HEAVY_SIDE
    key = "light" if slot <= Slot.AIR_LIGHT_SIDE else "heavy"
    down = slot in (Slot.AIR_LIGHT_DOWN, Slot.GROUND_POUND)
    below = {Slot.AIR_LIGHT_DOWN: 1.0, Slot.RECOVERY: -0.9, Slot.GROUND_POUND: 1.75}.get(slot, 0.0)
    for game, side in ((0, 1), (1, -1)):
        for seat, home in ((0, -side), (1, side)):
            values = {"home": home, "x": (0.0, 0.5 * side)[seat], "y": -7.0 + below * seat, "vx": 0.0, "vy": 0.0}
            values |= {"facing": side, "state": State.IN_AIR, "ground": Ground.NONE}
            for name, value in values.items():
                stage.fields[name][game, seat] = value
        stage.fields["state"][game, 0] = State.ATTACK if grounded else State.IN_AIR
        stage.fields["move"][game, 0] = slot if grounded else -1
    actions = stage.keys("" if grounded else key + (" down" if down else ""))
    hit = False
    for _ in range(17):
        result = stage.env.step(actions)
        hit |= bool(result.events["hits"][:, 0].all())
        assert stage.fields["move"][0].tolist() == stage.fields["move"][1].tolist()
        for name in ("x", "vx", "facing"):
            assert stage.fields[name][0].tolist() == (-stage.fields[name][1]).tolist()
        for name in ("y", "vy", "damage", "state", "timer"):
            assert stage.fields[name][0].tolist() == stage.fields[name][1].tolist()
    assert hit
