"""Angles and rotations that are the same on every device: accuracy, unit length, symmetry."""

import math

import pytest
import torch
import warp as wp
from torch import Tensor

from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket.kernels.maths import axes, clamp_length, line, sin_cos, to_local, to_world, turn

wp.set_module_options(EXACT)


@wp.kernel
def angle_kernel(angles: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.vec2f)) -> None:  # type: ignore[valid-type]
    i = wp.tid()
    out[i] = sin_cos(angles[i])


@wp.kernel
def turn_kernel(
    rotations: wp.array(dtype=wp.quatf),  # type: ignore[valid-type]
    spins: wp.array(dtype=wp.vec3f),  # type: ignore[valid-type]
    out: wp.array(dtype=wp.quatf),  # type: ignore[valid-type]
    matrices: wp.array(dtype=wp.mat33f),  # type: ignore[valid-type]
    there_and_back: wp.array(dtype=wp.vec3f),  # type: ignore[valid-type]
) -> None:
    i = wp.tid()
    out[i] = turn(rotations[i], spins[i], 1.0 / 120.0)
    m = axes(rotations[i])
    matrices[i] = m
    there_and_back[i] = to_local(m, to_world(m, spins[i]))


@wp.kernel
def curve_kernel(
    values: wp.array(dtype=wp.float32),  # type: ignore[valid-type]
    heights: wp.array(dtype=wp.float32),  # type: ignore[valid-type]
    shortened: wp.array(dtype=wp.vec3f),  # type: ignore[valid-type]
) -> None:
    i = wp.tid()
    heights[i] = line(values[i], 1.0, 10.0, 3.0, 20.0)
    shortened[i] = clamp_length(wp.vec3f(3.0 * values[i], 0.0, -4.0 * values[i]), 10.0)


def turned(rotations: Tensor, spins: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rotations after a tick, their matrices before it, and the spins to the car's axes and back."""
    rotations, spins = rotations.contiguous(), spins.contiguous()
    out, matrices, back = torch.zeros_like(rotations), torch.zeros((len(spins), 3, 3)), torch.zeros_like(spins)
    inputs = [
        wp.from_torch(rotations, dtype=wp.quatf),
        wp.from_torch(spins, dtype=wp.vec3f),
        wp.from_torch(out, dtype=wp.quatf),
        wp.from_torch(matrices, dtype=wp.mat33f),
        wp.from_torch(back, dtype=wp.vec3f),
    ]
    wp.launch(turn_kernel, len(spins), inputs=inputs, device="cpu")
    return out, matrices, back


def random_turns(count: int) -> tuple[Tensor, Tensor]:
    """Unit quaternions and spins."""
    generator = torch.Generator().manual_seed(0)
    rotations = torch.randn((count, 4), generator=generator)
    return rotations / rotations.norm(dim=1, keepdim=True), 3.0 * torch.randn((count, 3), generator=generator)


def test_sine_and_cosine_are_accurate_over_some_turns() -> None:
    angles = torch.linspace(-60.0, 60.0, 200_001)
    out = torch.zeros((len(angles), 2))
    inputs = [wp.from_torch(angles), wp.from_torch(out, dtype=wp.vec2f)]
    wp.launch(angle_kernel, len(angles), inputs=inputs, device="cpu")
    exact = torch.stack((angles.double().sin(), angles.double().cos()), dim=1)
    assert (out - exact).abs().max().item() < 3e-7


def test_turning_keeps_the_quaternion_at_unit_length_and_turns_by_the_angle() -> None:
    rotations, spins = random_turns(2000)
    rotations[0], spins[0] = torch.tensor([0.0, 0.0, 0.0, 1.0]), torch.tensor([0.0, 0.0, 6.0])
    first, _, _ = turned(rotations, spins)
    assert first[0].tolist() == pytest.approx([0.0, 0.0, math.sin(3.0 / 120.0), math.cos(3.0 / 120.0)], abs=1e-7)
    for _ in range(200):
        rotations, _, _ = turned(rotations, spins)
    assert (rotations.norm(dim=1) - 1.0).abs().max().item() < 3e-7
    angle = 0.5 * 6.0 * 200.0 / 120.0
    assert rotations[0].tolist() == pytest.approx([0.0, 0.0, math.sin(angle), math.cos(angle)], abs=1e-5)


def test_axes_are_a_rotation_and_there_and_back_changes_nothing() -> None:
    rotations, spins = random_turns(2000)
    _, matrices, back = turned(rotations, spins)
    square = matrices @ matrices.transpose(1, 2)
    assert (square - torch.eye(3)).abs().max().item() < 1e-6
    assert (torch.linalg.det(matrices) - 1.0).abs().max().item() < 1e-6
    assert (back - spins).abs().max().item() < 1e-5


@pytest.mark.parametrize("way", ["mirrored in x", "turned by half a turn"])
def test_images_of_rotations_are_the_same_bit_for_bit(way: str) -> None:
    rotations, spins = random_turns(2000)
    x, y, z, w = rotations.unbind(1)
    signs, image = torch.tensor([-1.0, -1.0, 1.0]), torch.stack((-y, x, w, -z), dim=1)
    columns = torch.ones(3)
    vectors = signs
    if way == "mirrored in x":
        signs, image = torch.tensor([1.0, -1.0, -1.0]), torch.stack((-y, -x, w, z), dim=1)
        columns, vectors = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([-1.0, 1.0, 1.0])
    after, matrices, _ = turned(rotations, spins)
    image_after, image_matrices, _ = turned(image, spins * signs)
    x, y, z, w = after.unbind(1)
    expected = torch.stack((-y, -x, w, z) if way == "mirrored in x" else (-y, x, w, -z), dim=1)
    assert torch.equal(image_after, expected)
    assert torch.equal(image_matrices, matrices * vectors[:, None] * columns)


def test_lines_are_held_level_at_their_ends_and_vectors_are_shortened() -> None:
    values, heights, shortened = torch.tensor([0.0, 1.0, 2.0, 3.0, 9.0]), torch.zeros(5), torch.zeros((5, 3))
    inputs = [wp.from_torch(values), wp.from_torch(heights), wp.from_torch(shortened, dtype=wp.vec3f)]
    wp.launch(curve_kernel, 5, inputs=inputs, device="cpu")
    assert heights.tolist() == [10.0, 10.0, 15.0, 20.0, 20.0]
    assert shortened[1].tolist() == [3.0, 0.0, -4.0]
    assert shortened[4].tolist() == pytest.approx([6.0, 0.0, -8.0])
