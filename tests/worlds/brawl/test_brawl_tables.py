"""Files of the user's own: broken move tables and scripts are refused, and a fourth weapon needs no kernel."""

import copy
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from ruamel.yaml import YAML

from ludus.core.errors import ConfigError, SnapshotError
from ludus.envs.warp_tools import struct_views
from ludus.worlds.brawl.bots import load_script
from ludus.worlds.brawl.kernels.structs import Hit, Move
from ludus.worlds.brawl.moves import DEFAULT_TABLE, load_move_table, pack_moves, parse_move_table
from ludus.worlds.brawl.observation import FIELDS
from ludus.worlds.brawl.rules import Slot

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage

Change = Callable[[dict[str, Any]], None]
COLUMN = {field.name: index for index, field in enumerate(FIELDS)}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The package's own table as plain data."""
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(DEFAULT_TABLE.read_text())
    return loaded


def jab(document: dict[str, Any]) -> dict[str, Any]:
    move: dict[str, Any] = document["weapons"]["fists"]["moves"]["ground_light_neutral"]
    return move


def first_hit(document: dict[str, Any]) -> dict[str, Any]:
    hit: dict[str, Any] = jab(document)["hits"][0]
    return hit


BROKEN: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no weapons": (lambda d: d.pop("weapons"), ("weapons", "required")),
    "empty weapons": (lambda d: d["weapons"].clear(), ("weapons", "at least 1")),
    "five weapons": (
        lambda d: d["weapons"].update(dict.fromkeys(("bow", "axe"), d["weapons"]["spear"])),
        ("weapons", "at most 4", "5"),
    ),
    "missing move": (
        lambda d: d["weapons"]["spear"]["moves"].pop("recovery"),
        ("weapons.spear.moves", "missing recovery", "ground_pound"),
    ),
    "unknown move": (
        lambda d: d["weapons"]["spear"]["moves"].update(uppercut=jab(d)),
        ("weapons.spear.moves", "unknown uppercut"),
    ),
    "unknown key": (lambda d: jab(d).update(speed=3), ("ground_light_neutral.speed", "3")),
    "unknown key of a hit": (lambda d: first_hit(d).update(knockback=3), ("hits.0.knockback",)),
    "unknown top key": (lambda d: d.update(version=2), ("version",)),
    "no hits": (lambda d: jab(d).update(hits=[]), ("hits", "at least 1")),
    "five hits": (lambda d: jab(d).update(hits=[first_hit(d)] * 5), ("hits", "at most 4")),
    "frames in the wrong order": (lambda d: first_hit(d).update(frames=[5, 3]), ("frames", "frame 5", "the last 3")),
    "one frame": (lambda d: first_hit(d).update(frames=[3]), ("frames",)),
    "three frames": (lambda d: first_hit(d).update(frames=[3, 4, 5]), ("frames",)),
    "negative frame": (lambda d: first_hit(d).update(frames=[-1, 3]), ("frames.0", "-1")),
    "half a frame": (lambda d: first_hit(d).update(frames=[1.5, 3]), ("frames.0", "1.5")),
    "hit after the end": (lambda d: first_hit(d).update(frames=[3, 99]), ("99", "total")),
    "negative damage": (lambda d: first_hit(d).update(damage=-5), ("damage", "-5")),
    "no damage": (lambda d: first_hit(d).update(damage=0), ("damage", "0")),
    "damage of words": (lambda d: first_hit(d).update(damage="much"), ("damage", "much")),
    "endless damage": (lambda d: first_hit(d).update(damage=math.inf), ("damage", "inf")),
    "damage that is no number": (lambda d: first_hit(d).update(damage=math.nan), ("damage", "nan")),
    "no radius": (lambda d: first_hit(d).update(radius=0), ("radius",)),
    "radius that is no number": (lambda d: first_hit(d).update(radius=math.nan), ("radius", "nan")),
    "reach beyond the stage": (lambda d: first_hit(d).update(end=[40, 0]), ("end.0", "40")),
    "stun of nothing": (lambda d: first_hit(d).update(stun=0), ("stun",)),
    "angle downward behind": (lambda d: first_hit(d).update(angle=-120), ("angle", "-120")),
    "negative launch": (lambda d: first_hit(d).update(launch=[-1, 0]), ("launch.0", "-1")),
    "short total": (lambda d: jab(d).update(total=3), ("total", "3")),
    "no name": (lambda d: jab(d).update(name=""), ("name",)),
    "charge after the hit": (
        lambda d: jab(d).update(charge={"frame": 9, "max_frames": 10, "bonus": 0.5}),
        ("charge frame 9", "first hit"),
    ),
    "charge of nothing": (
        lambda d: jab(d).update(charge={"frame": 1, "max_frames": 0, "bonus": 0.5}),
        ("charge.max_frames",),
    ),
    "motion in the wrong order": (
        lambda d: jab(d).update(motion={"frames": [7, 3], "velocity": [1, 0]}),
        ("motion frames", "wrong order"),
    ),
    "motion too fast": (
        lambda d: jab(d).update(motion={"frames": [3, 7], "velocity": [99, 0]}),
        ("motion.velocity.0", "99"),
    ),
    "follow-up of nothing": (
        lambda d: jab(d).update(follow_up={"move": "headbutt", "frame": 8}),
        ("follow_up.move", "ground_light_side", "headbutt"),
    ),
    "follow-up after the end": (
        lambda d: jab(d).update(follow_up={"move": "recovery", "frame": 110}),
        ("follow-up frame 110",),
    ),
    "landing lag": (lambda d: jab(d).update(landing_lag=100), ("landing_lag 100",)),
    "colour": (lambda d: d["weapons"]["spear"].update(color=[0, 0, 256]), ("color", "256")),
    "a weapon that is a list": (lambda d: d["weapons"].update(spear=[1, 2]), ("weapons.spear",)),
}


@pytest.mark.parametrize("fault", list(BROKEN))
def test_a_broken_table_is_refused_with_the_place_and_the_value(document: dict[str, Any], fault: str) -> None:
    broken = copy.deepcopy(document)
    change, words = BROKEN[fault]
    change(broken)
    with pytest.raises(ConfigError) as caught:
        parse_move_table(broken, "mine.yaml")
    assert "mine.yaml" in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_all_faults_are_listed_at_once(document: dict[str, Any]) -> None:
    broken = copy.deepcopy(document)
    first_hit(broken).update(damage=-1, radius=9, colour="red")
    with pytest.raises(ConfigError, match="3") as caught:
        parse_move_table(broken, "mine.yaml")
    assert all(word in str(caught.value) for word in ("hits.0.damage", "hits.0.radius", "hits.0.colour"))


HOSTILE: dict[str, str | bytes] = {
    "nothing": "",
    "a list": "- 1\n- 2\n",
    "a word": "hello",
    "no YAML": "weapons: [1, 2",
    "a tab": "\tweapons: {}",
    "two documents": "a: 1\n---\nb: 2\n",
    "a key twice": "weapons: {}\nweapons: {}\n",
    "an unknown alias": "weapons: *x\n",
    "a list within itself": "weapons: &a [*a]\n",
    "code": "weapons: !!python/object/apply:os.system [ls]\n",
    "a date that is none": "weapons: 2020-99-99\n",
    "a truth that is none": "weapons: !!bool maybe\n",
    "a number that is none": "weapons: !!int many\n",
    "a number without end": "weapons: " + "9" * 5000,
    "brackets without end": "[" * 50_000,
    "lists without end": "- " * 20_000,
    "bytes": b"\xff\xfe\x00\x01",
    "zeros": b"\x00" * 100,
    "too much": "# " + "x" * 250_000,
    # Nine lists of nine lists of ...: 9^9 words if they were written out.
    "a bomb": "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))
    + "weapons: {fists: *a8}\n",
    "a bomb as a name": "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 5))
    + "? *a4\n: 1\n",
}


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_hostile_files_are_refused_quickly(tmp_path: Path, kind: str) -> None:
    content = HOSTILE[kind]
    file = tmp_path / "hostile.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for load in (load_move_table, load_script):
        start = time.process_time()
        with pytest.raises(ConfigError, match=r"hostile\.yaml") as caught:
            load(file)
        assert time.process_time() - start < 3.0
        assert len(str(caught.value)) < 20_000


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "nowhere.yaml", Path("/dev/zero"), Path("a\0b")):
        for load in (load_move_table, load_script):
            with pytest.raises(ConfigError, match="no such file"):
                load(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {frames: 0, keys: [right]}", ("frames", "0")),
        ("- {frames: 5, keys: [rigth]}", ("rigth", "did you mean 'right'", "taunt")),
        ("- {frames: 5, keys: right}", ("keys", "right")),
        ("- {frame: 5}", ("frame",)),
        ("[]", ("empty", "frames: 30")),
        ("{frames: 5}", ("list",)),
        ("- {frames: 5, keys: [" + "x" * 5000 + "]}", ("keys",)),
    ],
)
def test_broken_scripts(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "script.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_script(tmp_path / "script.yaml")
    assert all(word in str(caught.value) for word in ("script.yaml", *words)), str(caught.value)
    assert len(str(caught.value)) < 1000


def test_packing_keeps_every_number() -> None:
    table = load_move_table()
    packed_moves, packed_hits = pack_moves(table)
    moves, hits = struct_views(packed_moves, Move), struct_views(packed_hits, Hit)
    assert packed_moves.shape[0] == 33
    assert packed_hits.shape[0] == 33 * 4
    for index in range(33):
        move = table.move(index)
        assert moves["total"][index] == move.total
        assert moves["startup"][index] == min(hit.frames[0] for hit in move.hits)
        assert moves["active_end"][index] == max(hit.frames[1] for hit in move.hits)
        follow_up = move.follow_up and index // 11 * 11 + Slot[move.follow_up.move.upper()]
        assert moves["follow_up"][index] == (-1 if follow_up is None else follow_up)
        for place in range(4):
            row = {name: float(values[4 * index + place]) for name, values in hits.items()}
            if place >= len(move.hits):
                assert row["start"] == -1
                continue
            hit = move.hits[place]
            assert (int(row["start"]), int(row["end"])) == hit.frames
            assert (row["from_x"], row["from_y"], row["to_x"], row["to_y"]) == pytest.approx((*hit.start, *hit.end))
            assert (row["damage"], row["stun"], row["radius"]) == pytest.approx((hit.damage, hit.stun, hit.radius))
            assert row["launch_x"] == pytest.approx(math.cos(math.radians(hit.angle)), abs=1e-6)
            assert row["launch_y"] == pytest.approx(-math.sin(math.radians(hit.angle)), abs=1e-6)


@pytest.fixture
def four_weapons(document: dict[str, Any], tmp_path: Path) -> Path:
    """A user's file: the package's weapons and a whip that nobody knew when the kernels were written."""
    table = copy.deepcopy(document)
    table["weapons"]["whip"] = copy.deepcopy(table["weapons"]["fists"])
    table["weapons"]["whip"]["value"] = 7.5
    first = table["weapons"]["whip"]["moves"]["ground_light_neutral"]
    first["total"], first["hits"] = 40, [first["hits"][0] | {"frames": [2, 2], "end": [3.0, 0.0], "damage": 33.0}]
    first.pop("follow_up", None)
    first.pop("motion", None)
    (tmp_path / "mine.yaml").write_text(json.dumps(table))  # JSON is YAML too, and keeps the order
    return tmp_path / "mine.yaml"


def test_a_fourth_weapon_works_without_touching_a_kernel(make_stage: "MakeStage", four_weapons: Path) -> None:
    stage = make_stage(move_table=four_weapons)
    assert stage.env.table.names == ("fists", "spear", "hammer", "whip")
    stage.drop_item(1, -5.0, 2.85, 3)
    result = stage.step("pickup")
    assert stage.get(0, "weapon") == 3
    assert result.events["pickup_value"][0].tolist() == [7.5, 0.0]
    assert result.observations["vector"][0, 0, COLUMN["self.weapon_3"]] == 1
    assert stage.env.view().players[0].weapon == "whip"
    stage.stand(1, -2.2)
    stage.step("light")
    assert stage.get(0, "move") == 33
    dealt = [float(stage.step().events["damage_dealt"][0, 0]) for _ in range(5)]
    assert dealt == [0.0, 33.0, 0.0, 0.0, 0.0]  # frame 2 of the whip's own first move
    stage.drop_item(0, 5.0, 0.85, 3)
    row = stage.env.restore(stage.env.snapshot())["vector"][0, 0]
    assert row[COLUMN["far_spawn.is_3"]] == 1


def test_a_fourth_weapon_appears_as_often_as_the_others(make_stage: "MakeStage", four_weapons: Path) -> None:
    stage = make_stage(256, weapon_spawns=True, move_table=four_weapons)
    seen = torch.zeros(4)
    idle = stage.keys()
    for _ in range(400):
        stage.env.step(idle)
        new = stage.items["life"][:, :2] == 350
        seen += torch.bincount(stage.items["weapon"][:, :2][new], minlength=4)
    assert seen[0] == 0
    assert all(0.27 < share < 0.40 for share in (seen[1:] / seen.sum()).tolist())


def test_bots_play_with_a_fourth_weapon_and_its_snapshots_do_not_fit_elsewhere(
    make_stage: "MakeStage", four_weapons: Path
) -> None:
    stage = make_stage(32, weapon_spawns=True, move_table=four_weapons)
    bots = stage.env.bots(["weapon-seeker", "aggressive"])
    assignment = torch.tensor([[0, 1]] * 32, dtype=torch.int32)
    actions = torch.zeros((32, 2, 10), dtype=torch.int8)
    used = False
    for _ in range(900):
        bots.act(assignment, actions)
        stage.env.step(actions)
        used |= bool((stage.fields["move"] >= 33).any())
        if used:
            break
    assert used
    with pytest.raises(SnapshotError, match="valid: "):
        make_stage(32, weapon_spawns=True, move_table=None).env.restore(stage.env.snapshot())


def test_a_table_of_one_weapon_has_nothing_to_spawn(
    make_stage: "MakeStage", document: dict[str, Any], tmp_path: Path
) -> None:
    table = copy.deepcopy(document)
    table["weapons"] = {"claws": table["weapons"]["hammer"]}
    (tmp_path / "one.yaml").write_text(json.dumps(table))
    stage = make_stage(8, weapon_spawns=True, move_table=tmp_path / "one.yaml")
    stage.step(frames=400)
    assert int(stage.items["life"].max()) == 0


def test_a_table_extends_the_standard_one_by_whole_moves(document: dict[str, Any], tmp_path: Path) -> None:
    own = jab(copy.deepcopy(document)) | {"name": "poke"}
    table = tmp_path / "table.yaml"
    table.write_text(json.dumps({"extends": "standard", "weapons": {"fists": {"moves": {"recovery": own}}}}))
    standard, extended = load_move_table(), load_move_table(table)
    for name, weapon in extended.weapons.items():
        changed = [slot for slot, move in weapon.moves.items() if move != standard.weapons[name].moves[slot]]
        assert changed == (["recovery"] if name == "fists" else [])
    table.write_text("extends: other\nweapons: {}\n")
    with pytest.raises(ConfigError, match="extends 'other'; valid: 'standard'"):
        load_move_table(table)
