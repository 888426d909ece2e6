"""The reference is consistent with the model: feet on the ground, no sliding, the speed that it says."""

import mujoco
import numpy as np
import pytest
import torch

from ludus.worlds.mimic.body import WALKERS
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import NormalGait, period_s
from ludus.worlds.mimic.model import CONTACT_RADIUS_M, Walker, make_walker
from ludus.worlds.mimic.reference import Frame, Reference, normal_reference, quaternions

SPEEDS = (0.7, 1.0, 1.25, 1.6)


@pytest.fixture(scope="module", params=list(WALKERS))
def made(request: pytest.FixtureRequest) -> tuple[Walker, Reference]:
    walker = make_walker(MimicConfig(walker=request.param))
    return walker, normal_reference(walker)


def frames(reference: Reference, speed: float, count: int = 100) -> Frame:
    phases = torch.arange(count) / count
    return reference.at(torch.full((count,), speed), phases)


def lowest_points(walker: Walker, frame: Frame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns the height of the lowest point of the feet in each frame."""
    model, data = walker.model, mujoco.MjData(walker.model)
    spheres = [index for index in range(model.ngeom) if model.geom(index).name.endswith(("_0", "_1"))]
    lowest = []
    for root, angles in zip(frame.root.double().numpy(), frame.angles.double().numpy(), strict=True):
        data.qpos[:3] = (0.0, 0.0, root[0])
        data.qpos[3:7] = quaternions(root[1:])
        data.qpos[7:] = angles
        mujoco.mj_kinematics(model, data)
        lowest.append(data.geom_xpos[spheres, 2].min() - CONTACT_RADIUS_M)
    return np.array(lowest)


@pytest.mark.parametrize("speed", SPEEDS)
def test_feet_touch_the_ground_and_never_go_through_it(made: tuple[Walker, Reference], speed: float) -> None:
    walker, reference = made
    heights = lowest_points(walker, frames(reference, speed))
    assert heights.min() > -0.002
    assert heights.max() < 0.02


@pytest.mark.parametrize("speed", SPEEDS)
def test_mean_forward_speed_is_the_speed(made: tuple[Walker, Reference], speed: float) -> None:
    _, reference = made
    velocity = frames(reference, speed, 128).root_velocity
    assert float(velocity[:, 0].mean()) == pytest.approx(speed, rel=0.01)
    assert float(velocity[:, 1].mean()) == pytest.approx(0.0, abs=1e-3)
    assert float(velocity[:, 0].min()) > 0.0


def test_velocities_are_the_slopes_of_angles(made: tuple[Walker, Reference]) -> None:
    _, reference = made
    speed, step = torch.tensor([1.2]), 1e-3
    for phase in (0.1, 0.37, 0.8):
        now, later = (reference.at(speed, torch.tensor([at])) for at in (phase - step, phase + step))
        slope = (later.angles - now.angles) / (2 * step * now.period_s)
        given = reference.at(speed, torch.tensor([phase])).velocities
        assert torch.allclose(slope, given, atol=0.15)


def test_the_left_leg_does_the_same_half_a_stride_later(made: tuple[Walker, Reference]) -> None:
    walker, reference = made
    names = [joint.name for joint in walker.joints]
    frame = frames(reference, 1.1, 128)
    for kind in ("hip", "hip_frontal", "knee", "ankle"):
        right, left = (frame.angles[:, names.index(f"{side}_{kind}")] for side in ("right", "left"))
        assert torch.allclose(left, right.roll(-64), atol=1e-5)


def test_the_reference_is_periodic_and_goes_smoothly_between_its_rows(made: tuple[Walker, Reference]) -> None:
    _, reference = made
    ends = reference.at(torch.tensor([1.1, 1.1]), torch.tensor([0.0, 0.999999]))
    assert torch.allclose(ends.angles[0], ends.angles[1], atol=1e-3)
    near = reference.at(torch.tensor([1.1, 1.1001]), torch.tensor([0.3, 0.3]))
    assert torch.allclose(near.angles[0], near.angles[1], atol=1e-3)
    beyond = reference.at(torch.tensor([9.0, 1.6]), torch.tensor([0.3, 0.3]))
    assert torch.equal(beyond.angles[0], beyond.angles[1])


def test_normal_walking_has_the_published_figures() -> None:
    gait = NormalGait(has_trunk=False)
    phases = np.arange(1000) / 1000
    knee = np.rad2deg(gait.joint("knee", "right", phases, 1.0))
    assert knee.max() == pytest.approx(63.9, abs=1.5)  # in swing, at 72 % of the stride
    assert phases[knee.argmax()] == pytest.approx(0.72, abs=0.02)
    ankle = np.rad2deg(gait.joint("ankle", "right", phases, 1.0))
    assert ankle.min() == pytest.approx(-19.2 + 3.0, abs=1.5)  # push-off, with the 3 degrees that are added
    assert period_s(1.25, 1.75) == pytest.approx(1.10)
    assert period_s(1.25 / 4, 1.75) == pytest.approx(2.20)


def test_quaternions_turn_as_their_angles_say() -> None:
    assert quaternions(np.array([0.0, 0.0, np.pi])) == pytest.approx(np.array([0.0, 0.0, 0.0, 1.0]), abs=1e-12)
    half = np.sqrt(0.5)
    assert quaternions(np.array([np.pi / 2, 0.0, 0.0])) == pytest.approx(np.array([half, half, 0.0, 0.0]))
