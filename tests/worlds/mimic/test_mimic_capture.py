"""Recordings come back as the motions that they were made from, whatever their names, axes, units and rates."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.worlds.mimic.captures import (
    STYLES,
    Style,
    amass_arrays,
    bodies,
    bvh_text,
    c3d_bytes,
    gait_clip,
    gait_markers,
)

from ludus.worlds.mimic.body import WALKERS
from ludus.worlds.mimic.capture.amass import JOINTS
from ludus.worlds.mimic.capture.importing import Imported, import_capture, prepare, write_clip
from ludus.worlds.mimic.capture.roles import MapConfig, find_roles
from ludus.worlds.mimic.capture.skeleton import Capture
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import Walker, make_walker
from ludus.worlds.mimic.motion.clip import Clip, foot_points
from ludus.worlds.mimic.motion.library import library_clip
from ludus.worlds.mimic.motion.motion import load_motion
from ludus.worlds.mimic.motion.reference import checked_stride, natural_speed_m_s

RATE_HZ = 60.0


@pytest.fixture(scope="module", params=list(WALKERS))
def made(request: pytest.FixtureRequest) -> tuple[Walker, Clip]:
    walker = make_walker(MimicConfig(walker=request.param))
    return walker, gait_clip(walker, 1.25, RATE_HZ, 3.5)


def imported(path: Path, walker: Walker, **settings: object) -> Imported:
    corrections = MapConfig.model_validate(settings)
    return import_capture(prepare(path, corrections), walker, corrections)


def errors_deg(result: Imported, clip: Clip) -> dict[str, float]:
    """Returns the largest difference of each joint, and of the root's roll, pitch and yaw."""
    columns = (*result.clip.joints, "roll", "pitch", "yaw")
    apart = np.concatenate((result.clip.angles - clip.angles, result.clip.turns - clip.turns), axis=1)
    return dict(zip(columns, np.rad2deg(np.abs(apart)).max(axis=0).tolist(), strict=True))


def check_feet(result: Imported) -> None:
    quality = result.quality
    assert quality.float_mm < 6.5
    assert quality.sink_mm < 1.5
    assert quality.slide_mm < 11.0
    assert quality.beyond_deg == 0.0
    assert 0.9 < quality.standing < 1.5


@pytest.mark.parametrize("name", [name for name in STYLES if name != "lafan"])
def test_a_bvh_file_gives_back_the_motion_it_was_made_from(
    tmp_path: Path, made: tuple[Walker, Clip], name: str
) -> None:
    walker, clip = made
    file = tmp_path / "walk.bvh"
    file.write_text(bvh_text(walker, clip, STYLES[name]))
    result = imported(file, walker)
    assert max(errors_deg(result, clip).values()) < 1.0
    check_feet(result)
    assert result.clip.rate_hz == pytest.approx(RATE_HZ, rel=1e-4)
    units = {"mixamo": "cm", "cmu": "CMU's unit", "tall": "m"}
    assert result.person.findings["unit"].startswith(f"{units[name]}, ")
    assert result.person.findings["up axis"] == ("z" if name == "tall" else "y")
    assert result.person.stature_m == pytest.approx(1.75 * (1.3 if name == "tall" else 1.0), rel=1e-3)


def test_bones_that_lie_at_rest_are_made_upright(tmp_path: Path, made: tuple[Walker, Clip]) -> None:
    walker, clip = made
    file = tmp_path / "walk.bvh"
    file.write_text(bvh_text(walker, clip, STYLES["lafan"]))
    result = imported(file, walker)
    assert result.person.findings["rest pose"] == "none that stands"
    errors = errors_deg(result, clip)
    # Nothing in such a file says when a foot is flat; the normal gait's stands on its heel by about 2 degrees.
    ankles = [errors.pop(f"{side}_ankle") for side in ("right", "left")]
    assert max(ankles) < 2.5
    assert max(errors.values()) < 1.0
    check_feet(result)


@pytest.mark.parametrize("name", ["run-2.5", "march", "backward", "side-left", "turn-left"])
def test_every_kind_of_motion_comes_back(tmp_path: Path, name: str) -> None:
    """Also running, whose height in flight is the person's, and turning and stopping, which never repeat."""
    walker = make_walker(MimicConfig(walker="walker-13"))
    clip = library_clip(name, walker)
    file = tmp_path / "walk.bvh"
    file.write_text(bvh_text(walker, clip, STYLES["cmu"]))
    result = imported(file, walker)
    joints = [error for joint, error in errors_deg(result, clip).items() if joint != "yaw"]
    assert max(joints) < 1.0
    quality = result.quality
    assert max(quality.float_mm - 6.0, quality.sink_mm - 1.0, quality.slide_mm - 10.0) < 0.5
    assert quality.standing == pytest.approx(clip.contacts.sum(axis=1).mean(), abs=0.15)
    way, source = (np.linalg.norm(part.root[-1, :2] - part.root[0, :2]) for part in (result.clip, clip))
    assert way == pytest.approx(source, rel=0.04)


def test_noise_does_not_hide_when_feet_stand(tmp_path: Path) -> None:
    walker = make_walker(MimicConfig())
    clip = gait_clip(walker, 1.25, 120.0, 3.0)
    shaken = 0.3 * np.random.default_rng(0).standard_normal(clip.angles.shape)
    noisy = replace(clip, angles=clip.angles + np.deg2rad(shaken))
    file = tmp_path / "walk.bvh"
    file.write_text(bvh_text(walker, noisy, STYLES["mixamo"]))
    result = imported(file, walker)
    check_feet(result)
    assert max(errors_deg(result, clip).values()) < 8.0


CONVENTIONS = {
    "CMU": "Hips LHipJoint LeftUpLeg LeftLeg LeftFoot LeftToeBase RHipJoint RightUpLeg RightLeg RightFoot RightToeBase "
    "LowerBack Spine Spine1 Neck Head LeftShoulder LeftArm RightShoulder RightArm",
    "Biovision": "Hips LeftHip LeftKnee LeftAnkle LeftAnkle_end RightHip RightKnee RightAnkle RightAnkle_end Chest",
    "100STYLE": "Hips Chest Chest2 Chest3 Chest4 Neck Head RightHip RightKnee RightAnkle RightToe LeftHip LeftKnee "
    "LeftAnkle LeftToe",
    "Bandai Namco": "joint_Root Hips Spine Chest Neck Head UpperLeg_L LowerLeg_L Foot_L Toes_L UpperLeg_R LowerLeg_R "
    "Foot_R Toes_R",
    "3ds Max": "Bip01 Bip01_Pelvis Bip01_Spine Bip01_L_Thigh Bip01_L_Calf Bip01_L_Foot Bip01_L_Toe0 Bip01_R_Thigh "
    "Bip01_R_Calf Bip01_R_Foot Bip01_R_Toe0",
    "MotionBuilder": "Character1_Hips Character1_LeftUpLeg Character1_LeftLeg Character1_LeftFoot "
    "Character1_LeftToeBase Character1_RightUpLeg Character1_RightLeg Character1_RightFoot Character1_RightToeBase "
    "Character1_Spine",
    "Rokoko": "Hips Spine LeftThigh LeftShin LeftFoot LeftToe RightThigh RightShin RightFoot RightToe",
    "Neuron": "Hips RightUpLeg RightLeg RightFoot RightFoot_end LeftUpLeg LeftLeg LeftFoot LeftFoot_end Spine Spine1",
    "ASF": "root lhipjoint lfemur ltibia lfoot ltoes rhipjoint rfemur rtibia rfoot rtoes lowerback upperback thorax",
    "SMPL": " ".join(JOINTS),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_joints_are_found_by_the_names_of_many_conventions(convention: str) -> None:
    names = CONVENTIONS[convention].split()
    capture = Capture(
        Path("walk.bvh"), "BVH", tuple(names), (-1,) * len(names), np.zeros((len(names), 3)), None, {}, 60.0, (),
        "line", has_rest=True,
    )  # fmt: skip
    found = {role: names[index] for role, index in find_roles(capture, {}).items()}
    expected = {
        "CMU": ("LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToeBase", "Spine1"),
        "Biovision": ("LeftHip", "LeftKnee", "LeftAnkle", "LeftAnkle_end", "Chest"),
        "100STYLE": ("LeftHip", "LeftKnee", "LeftAnkle", "LeftToe", "Chest4"),
        "Bandai Namco": ("UpperLeg_L", "LowerLeg_L", "Foot_L", "Toes_L", "Chest"),
        "3ds Max": ("Bip01_L_Thigh", "Bip01_L_Calf", "Bip01_L_Foot", "Bip01_L_Toe0", "Bip01_Spine"),
        "MotionBuilder": (
            "Character1_LeftUpLeg", "Character1_LeftLeg", "Character1_LeftFoot", "Character1_LeftToeBase",
            "Character1_Spine",
        ),
        "Rokoko": ("LeftThigh", "LeftShin", "LeftFoot", "LeftToe", "Spine"),
        "Neuron": ("LeftUpLeg", "LeftLeg", "LeftFoot", "LeftFoot_end", "Spine1"),
        "ASF": ("lfemur", "ltibia", "lfoot", "ltoes", "thorax"),
        "SMPL": ("L_Hip", "L_Knee", "L_Ankle", "L_Foot", "Spine3"),
    }[convention]  # fmt: skip
    assert tuple(found[role] for role in ("left_hip", "left_knee", "left_ankle", "left_toe", "chest")) == expected
    assert found["right_hip"] != found["left_hip"]
    assert {"pelvis", *(f"right_{part}" for part in ("hip", "knee", "ankle", "toe"))} <= set(found)


@pytest.mark.parametrize("rate_hz", [30.0, 120.0, 240.0])
def test_the_rate_does_not_matter(tmp_path: Path, rate_hz: float) -> None:
    walker = make_walker(MimicConfig())
    clip = gait_clip(walker, 1.0, rate_hz, 3.0)
    file = tmp_path / "walk.bvh"
    file.write_text(bvh_text(walker, clip, STYLES["cmu"]))
    result = imported(file, walker)
    assert max(errors_deg(result, clip).values()) < 1.0
    check_feet(result)


def test_feet_are_where_mujoco_has_them(made: tuple[Walker, Clip]) -> None:
    walker, clip = made
    points, ankles = foot_points(walker, clip)
    places, turns = bodies(walker, clip)
    assert ankles[:, 0] == pytest.approx(places["right_foot"], abs=1e-9)
    assert ankles[:, 1] == pytest.approx(places["left_foot"], abs=1e-9)
    ball = walker.model.geom("left_ball_1")
    centre = places["left_foot"] + turns["left_foot"] @ ball.pos
    assert points[:, 1, 3] == pytest.approx(centre - (0.0, 0.0, ball.size[0]), abs=1e-6)


def test_other_proportions_stand_on_the_ground_too(tmp_path: Path) -> None:
    """A body of 1.5 m recorded, a walker of 1.9 m with shorter feet for its legs than those of the recording."""
    small, large = (make_walker(MimicConfig(height_m=height, mass_kg=60.0)) for height in (1.5, 1.9))
    clip = gait_clip(small, 1.0, RATE_HZ, 3.0)
    file = tmp_path / "walk.bvh"
    text = bvh_text(small, clip, Style(STYLES["mixamo"].names, STYLES["mixamo"].axes, 100.0))
    offset = next(line for line in text.splitlines() if line.endswith("OFFSET 0.000000 -36.750000 0.000000"))
    text = text.replace(offset, offset.replace("-36.750000", "-33.000000"))  # thighs of 33 cm instead of 36.75
    file.write_text(text)
    result = imported(file, large)
    check_feet(result)
    assert max(errors_deg(result, clip).values()) < 6.0  # of nearly straight knees
    way = result.clip.root[-1, 0] - result.clip.root[0, 0]
    assert way / (clip.root[-1, 0] - clip.root[0, 0]) == pytest.approx(1.9 / 1.5, rel=0.03)


def test_an_import_can_be_walked_with(tmp_path: Path, made: tuple[Walker, Clip]) -> None:
    walker, clip = made
    file = tmp_path / "walk.bvh"
    file.write_text(bvh_text(walker, clip, STYLES["mixamo"]))
    write_clip(imported(file, walker).clip, tmp_path / "walk.csv", "test")
    motion = load_motion(tmp_path / "walk.csv")
    assert motion.joints == clip.joints
    assert natural_speed_m_s(motion, checked_stride(motion, walker)) == pytest.approx(1.25, rel=0.02)


def test_axis_angle_vectors_of_smpl(tmp_path: Path, made: tuple[Walker, Clip]) -> None:
    walker, clip = made
    file = tmp_path / "walk.npz"
    arrays = amass_arrays(walker, clip, JOINTS)
    np.savez_compressed(file, allow_pickle=False, **arrays)
    result = imported(file, walker)
    assert result.person.findings["up axis"] == "z"
    errors = errors_deg(result, clip)
    assert max(errors.values()) < 1.0
    check_feet(result)
    # Without lengths of limbs, the model's rest pose adds 5 degrees of abduction and 6 of knee flexion.
    del arrays["rest_joints"]
    np.savez_compressed(file, allow_pickle=False, **arrays)
    other = imported(file, walker)
    assert "the file has no lengths of limbs: those of a person of 1.75 m are used" in other.person.notes
    apart = np.rad2deg(other.clip.angles - clip.angles).mean(axis=0)
    columns = dict(zip(other.clip.joints, apart.tolist(), strict=True))
    assert columns["right_hip_frontal"] == pytest.approx(-5.0, abs=0.7)
    assert columns["left_knee"] == pytest.approx(6.0, abs=2.0)  # feet are brought to the ground


@pytest.mark.parametrize(("processor", "scale"), [(84, -0.1), (85, -0.1), (86, -0.1), (84, 0.1), (85, 0.1)])
def test_markers_of_a_c3d_file(tmp_path: Path, processor: int, scale: float) -> None:
    walker = make_walker(MimicConfig(walker="walker-13"))
    clip = gait_clip(walker, 1.25, 100.0, 1.5)
    markers = gait_markers(walker, clip)
    markers["RKNE"] = markers["RKNE"].copy()
    markers["RKNE"][40:46] = np.nan  # 0.06 s that were not seen
    file = tmp_path / "walk.c3d"
    file.write_bytes(c3d_bytes(markers, 100.0, processor, scale))
    result = imported(file, walker)
    errors = errors_deg(result, clip)
    ankles = [errors.pop(f"{side}_ankle") for side in ("right", "left")]  # as with bones that lie at rest
    assert max(ankles) < 3.0
    assert max(errors.values()) < 1.6
    check_feet(result)


def test_other_markers_are_mapped_by_hand(tmp_path: Path) -> None:
    walker = make_walker(MimicConfig())
    clip = gait_clip(walker, 1.25, 100.0, 1.5)
    places, turns = bodies(walker, clip)
    body = walker.body
    assert body is not None
    toe = np.array((body.ball_m, 0.0, 0.03 - body.ankle_height_m))
    markers, joints = {}, {}
    for side in ("right", "left"):
        for number, part in enumerate(("hip", "knee", "ankle")):
            markers[f"{side[0]}{number}"] = 1000.0 * places[f"{side}_{('thigh', 'shank', 'foot')[number]}"]
            joints[f"{side}_{part}"] = f"{side[0]}{number}"
        markers[f"{side[0]}3"] = 1000.0 * (places[f"{side}_foot"] + turns[f"{side}_foot"] @ toe)
        joints[f"{side}_toe"] = f"{side[0]}3"
    file = tmp_path / "walk.c3d"
    file.write_bytes(c3d_bytes(markers, 100.0))
    result = imported(file, walker, joints=joints)
    errors = errors_deg(result, clip)
    assert max(errors[f"{side}_knee"] for side in ("right", "left")) < 1.5
    assert max(errors.values()) < 4.0  # no pelvis: it is upright at all times
