"""Bodies of users: what is read off an MJCF file, how it follows the reference, and what is wrong with bad ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvRequest
from ludus.envs.check import CheckOptions, check_env
from ludus.training import TrainConfig, Trainer
from ludus.worlds.mimic.display import REPLAY_VIEW
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.reference import PHASES

pytestmark = pytest.mark.train

ROBOT = Path(__file__).parents[3] / "examples" / "own_body.xml"
KINDS = {"hip": "hip", "hip_frontal": "swing", "knee": "knee", "ankle": "ankle"}
JOINTS = {f"{side}_{kind}": f"{name}_{side}" for side in ("right", "left") for kind, name in KINDS.items()}


def make(file: Path = ROBOT, games: int = 3, joints: dict[str, str] = JOINTS, **config: Any) -> MimicEnv:
    body = {"file": str(file), "joints": joints}
    return MimicEnv(EnvRequest(games, "cpu", 1, 0, {"body": body, **config}))


def edited(folder: Path, *edits: tuple[str, str]) -> Path:
    text = ROBOT.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file = folder / "robot.xml"
    file.write_text(text)
    return file


def test_sizes_torques_and_ranges_are_those_of_the_file() -> None:
    with make(strength=0.5) as env:
        walker = env.walker
        assert walker.name == "own_body"
        # Thigh, shank and foot: 0.26 + 0.26 + 0.06; the root is 0.16 above the hips, the head ends 0.32 above it.
        assert walker.hip_height_m == pytest.approx(0.58)
        assert walker.standing_m == pytest.approx(0.74)
        assert walker.height_m == pytest.approx(0.74 + 0.32)
        joints = {joint.name: (joint, limit) for joint, limit in zip(walker.joints, walker.limits_nm, strict=True)}
        assert list(joints)[:3] == ["shoulder_right", "shoulder_left", "right_hip_frontal"]
        assert joints["right_hip"][0].range_deg == pytest.approx((-35.0, 80.0))  # its axis is turned
        assert joints["right_knee"][0].range_deg == pytest.approx((-2.0, 120.0))
        assert joints["left_ankle"][1] == pytest.approx(15.0)  # half of 30 N m
        assert [joint.is_held for joint in walker.joints] == [True, True, *[False] * 8]


def test_it_follows_the_reference_without_going_through_the_ground() -> None:
    with make() as env:
        phases = torch.arange(PHASES) / PHASES
        frame = env.reference.at(torch.full_like(phases, 1.0), phases)
        assert frame.angles[:, :2].abs().max() == 0.0  # the arms
        assert frame.angles[:, 3].max() > 0.3  # the right hip swings forward
        height = frame.root[:, 0]
        turned = torch.from_numpy(rotations(frame.root[:, 1:].double().numpy())).float()
        lowest = (frame.points @ turned.transpose(1, 2))[:, :, 2].amin(1) + height
        assert lowest.min() > -0.005
        assert lowest.max() < 0.03
        assert frame.root_velocity[:, 0].mean() == pytest.approx(1.0, abs=0.03)


def rotations(angles: np.ndarray) -> np.ndarray:
    """Pitch alone, which a body without a trunk has."""
    cosine, sine = np.cos(angles[:, 1]), np.sin(angles[:, 1])
    one, zero = np.ones_like(cosine), np.zeros_like(cosine)
    rows = ((cosine, zero, sine), (zero, one, zero), (-sine, zero, cosine))
    return np.array(rows).transpose(2, 0, 1)


def test_which_way_axes_turn_in_the_file_does_not_matter(tmp_path: Path) -> None:
    turned = edited(
        tmp_path,
        ('"hip_right" axis="0 1 0" range="-80 35"', '"hip_right" axis="0 -1 0" range="-35 80"'),
        ('"knee_left" axis="0 1 0" range="-2 120"', '"knee_left" axis="0 -1 0" range="-120 2"'),
    )
    with make() as one, make(turned) as other:
        torch.manual_seed(0)
        for _ in range(20):
            actions = 2.0 * torch.rand(3, 1, 10) - 1.0
            seen = [env.step(actions).observations["vector"] for env in (one, other)]
            torch.testing.assert_close(seen[0], seen[1], rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("opengl")
def test_it_passes_the_conformance_kit() -> None:
    def maker(num_envs: int, seed: int, first_game: int) -> MimicEnv:
        config = {"body": {"file": str(ROBOT), "joints": JOINTS}, "action": "torque"}
        return MimicEnv(EnvRequest(num_envs, "cpu", seed, first_game, config))

    check_env(maker, CheckOptions(num_envs=2, steps=10, end_steps=150))


def test_it_trains_and_is_shown(tmp_path: Path) -> None:
    settings = {"body": {"file": str(ROBOT), "joints": JOINTS}, "episode_s": 0.5}
    config = TrainConfig.model_validate(
        {
            "world": {"name": "mimic-v1", "num_envs": 8, "settings": settings},
            "total_env_steps": 256,
            "ppo": {"n_steps": 16, "batch_size": 64, "n_epochs": 1},
            "evaluation": {"every_env_steps": 256, "matches": 2, "scenarios": ["walk"], "settings": {"episode_s": 0.5}},
        }
    )
    with Trainer(config, tmp_path) as trainer:
        assert trainer.run().env_steps == 256
    with make(games=1) as env:
        log = REPLAY_VIEW.log(env)
        env.step(torch.zeros(1, 1, 10))
        log.record()
        assert set(log.content()) == {"columns", "height"}


def test_short_legs_walk_slower(tmp_path: Path) -> None:
    small = edited(
        tmp_path,
        ("0 0 0 0 0 -0.26", "0 0 0 0 0 -0.14"),
        ("0 0 0 0 0 -0.25", "0 0 0 0 0 -0.14"),
        ('pos="0 0 -0.26"', 'pos="0 0 -0.15"'),
    )
    with make() as env, make(small) as short:
        # Hips at 0.58 m and at 0.36 m, those of a person at 0.9275 m: speeds go with the root of the length.
        assert env.reference.speeds == pytest.approx((0.7 * (0.58 / 0.9275) ** 0.5, 1.6 * (0.58 / 0.9275) ** 0.5))
        low, high = short.reference.speeds
        assert high == pytest.approx(1.6 * (0.36 / 0.9275) ** 0.5)
        assert low < short.config.speed_range[0] < short.config.speed_range[1] < high
        assert not short.warnings


def test_legs_that_cannot_walk_are_refused(tmp_path: Path) -> None:
    stilts = edited(tmp_path, ("0 0 0 0 0 -0.26", "0 0 0 0 0 -0.05"), ('pos="0 0 -0.26"', 'pos="0 0 -0.06"'))
    with pytest.raises(ConfigError, match="per stride"):
        make(stilts)


@pytest.mark.parametrize(
    ("edits", "joints", "words"),
    [
        ([("<freejoint/>", "")], {}, ["first body", "freejoint"]),
        ([('"knee_left" axis="0 1 0" range="-2 120"', '"knee_left" axis="0 1 0" limited="false"')], {},
         ["knee_left", "range"]),
        ([('<motor joint="knee_left" gear="40"/>', "")], {}, ["knee_left", "actuator"]),
        ([('ctrllimited="true" ctrlrange="-1 1"', 'ctrllimited="false"')], {}, ["hip_left", "forcerange"]),
        ([('name="hip_left" axis="0 1 0"', 'name="hip_left" axis="1 0 0"')], {},
         ["hip_left", "left_hip about (0 -1 0)"]),
        ([("shoulder_left", "wing")], {}, ["'wing'", "counterpart"]),
        ([('size="0.09 0.04 0.015" pos="0.035 0 -0.045" contype="1" conaffinity="1"', 'size="0.09 0.04 0.015"')], {},
         ["foot_right", "touches the ground"]),
        ([("<mujoco", "<mujocoo")], {}, ["MJCF"]),
        ([], {"right_hip": None}, ["needs right_hip"]),
        ([], {"right_elbow": "shoulder_right"}, ["right_elbow", "valid: trunk_flexion"]),
        ([], {"right_knee": "knee"}, ["no joint 'knee'", "knee_right"]),
        ([], {"right_hip_rotation": "shoulder_right"}, ["right_hip_rotation needs left_hip_rotation"]),
        ([], {"right_knee": "hip_right"}, ["'hip_right' stands for several"]),
        ([], {"right_hip": "hip_left", "left_hip": "hip_right"}, ["to the left of the right one"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told(
    tmp_path: Path, edits: list[tuple[str, str]], joints: dict[str, str | None], words: list[str]
) -> None:
    file = edited(tmp_path, *edits)
    asked = {reference: name for reference, name in (JOINTS | joints).items() if name is not None}
    with pytest.raises(ConfigError) as caught:
        make(file, joints=asked)
    for word in (*words, str(file)):
        assert word in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.xml.*is no file"):
        make(Path("nowhere.xml"))


def test_what_the_file_decides_cannot_be_set() -> None:
    with pytest.raises(ConfigError, match="mass_kg, walker cannot be set"):
        make(mass_kg=80.0, walker="walker-13")
