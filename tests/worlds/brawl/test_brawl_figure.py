"""Poses in web pages (`figure.js`) are those of the videos (`rendering.poses`), for every frame of every attack."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.brawl.test_brawl_render import RESTING

from ludus.worlds.brawl.display import drawn_weapons
from ludus.worlds.brawl.moves import OWN_TABLES, load_move_table
from ludus.worlds.brawl.rendering.poses import pose_of
from ludus.worlds.brawl.rules import Ground, Slot, State

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


@pytest.mark.parametrize("rules", list(OWN_TABLES))
def test_pages_draw_attacks_as_videos_do(rules: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the Debian package nodejs is missing")
    table = load_move_table(rules=rules)
    done = subprocess.run(
        [node, "-e", FIGURE.read_text() + SCRIPT],
        input=json.dumps(drawn_weapons(table)), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    shown = iter(json.loads(done.stdout))
    for name, weapon in table.weapons.items():
        for slot, move in zip(Slot, weapon.moves.values(), strict=True):
            ground = Ground.SOLID if slot < Slot.AIR_LIGHT_NEUTRAL else Ground.NONE
            for frame in range(move.total):
                view = replace(RESTING, state=State.ATTACK, weapon=name, slot=slot, move_frame=frame, ground=ground)
                pose = pose_of(view, table, 0)
                places = (pose.front_hand, pose.back_hand, pose.front_foot, pose.back_foot)
                expected = [*(part for place in places for part in place), pose.lean, pose.weapon_angle]
                assert next(shown) == pytest.approx(expected, abs=1e-6), (name, slot, frame)
    assert next(shown, None) is None
