"""Poses in web pages (`figure.js`) are those of the videos (`rendering.poses`), for every frame of every attack."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.brawl.test_brawl_render import RESTING

from ludus.worlds.brawl.display import drawn_weapons
from ludus.worlds.brawl.moves import OWN_TABLES, MoveTable, load_move_table
from ludus.worlds.brawl.rendering.poses import pose_of
from ludus.worlds.brawl.rules import Ground, Slot, State
from ludus.worlds.brawl.view import PlayerView

FIGURE = Path(__file__).parents[3] / "src/ludus/worlds/brawl/figure.js"
SCRIPT = """
const weapons = JSON.parse(require("fs").readFileSync(0, "utf8")), found = [];
for (const [place, weapon] of weapons.entries()) {
  for (const slot of weapon.moves.keys()) {
    for (let frame = 0; frame < weapon.moves[slot].total; frame++) {
      const move = place * weapon.moves.length + slot;
      const pose = brawlPoseOf({ state: 9, move, moveFrame: frame, grounded: slot < 6, vy: 0 }, weapon, 0);
      const limbs = [pose.frontHand, pose.backHand, pose.frontFoot, pose.backFoot];
      found.push([...limbs.flat(), pose.lean, pose.weaponAngle]);
    }
  }
}
console.log(JSON.stringify(found));
"""
CLASH_SCRIPT = """
const weapons = JSON.parse(require("fs").readFileSync(0, "utf8")), found = [];
for (const grounded of [true, false]) {
  for (let frame = 0; frame < 12; frame++) {
    const pose = brawlPoseOf({ state: 13, move: -1, moveFrame: 0, grounded, vy: 0 }, weapons[0], frame);
    const limbs = [pose.frontHand, pose.backHand, pose.frontFoot, pose.backFoot];
    found.push([...limbs.flat(), pose.lean, pose.weaponAngle]);
  }
}
console.log(JSON.stringify(found));
"""


def drawn(script: str, table: MoveTable) -> list[list[float]]:
    """Returns the poses that a script finds with `figure.js`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("the Debian package nodejs is missing")
    done = subprocess.run(
        [node, "-e", FIGURE.read_text() + script],
        input=json.dumps(drawn_weapons(table)), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    poses: list[list[float]] = json.loads(done.stdout)
    return poses


def numbers(view: PlayerView, table: MoveTable, frame: int = 0) -> list[float]:
    """Returns the same numbers of a pose in videos."""
    pose = pose_of(view, table, frame)
    places = (pose.front_hand, pose.back_hand, pose.front_foot, pose.back_foot)
    return [*(part for place in places for part in place), pose.lean, pose.weapon_angle]


@pytest.mark.parametrize("rules", list(OWN_TABLES))
def test_pages_draw_attacks_as_videos_do(rules: str) -> None:
    table = load_move_table(rules=rules)
    shown = iter(drawn(SCRIPT, table))
    for name, weapon in table.weapons.items():
        for slot, move in zip(Slot, weapon.moves.values(), strict=True):
            ground = Ground.SOLID if slot < Slot.AIR_LIGHT_NEUTRAL else Ground.NONE
            for frame in range(move.total):
                view = replace(RESTING, state=State.ATTACK, weapon=name, slot=slot, move_frame=frame, ground=ground)
                assert next(shown) == pytest.approx(numbers(view, table), abs=1e-6), (name, slot, frame)
    assert next(shown, None) is None


def test_pages_draw_clashes_as_videos_do() -> None:
    table = load_move_table(rules="clash")
    shown = iter(drawn(CLASH_SCRIPT, table))
    for ground in (Ground.SOLID, Ground.NONE):
        view = replace(RESTING, state=State.CLASH, ground=ground)
        for frame in range(12):
            assert next(shown) == pytest.approx(numbers(view, table, frame), abs=1e-6), (ground, frame)
