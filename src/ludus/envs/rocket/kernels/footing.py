"""How many wheels of a car touch the arena, by its place alone (Warp kernel)."""

import warp as wp

from ludus.envs.rocket.car_rules import WHEEL_REACH
from ludus.envs.rocket.kernels.car import clearance
from ludus.envs.rocket.kernels.maths import axes, column
from ludus.envs.rocket.kernels.options import PHYSICS
from ludus.envs.rocket.kernels.wheels import Frame, Push, Tyres, wheel_push

wp.set_module_options(PHYSICS)


@wp.kernel
def footing_kernel(positions: wp.array[wp.vec3f], rotations: wp.array[wp.quatf], wheels: wp.array[wp.int32]):
    """Counts the wheels that a tick would find in contact which begins with a car at this place."""
    index = wp.tid()
    m = axes(rotations[index])
    frame = Frame()
    frame.position = positions[index]
    frame.forward = column(m, 0)
    frame.left = column(m, 1)
    frame.up = column(m, 2)
    push = Push()
    if clearance(frame.position) < WHEEL_REACH:
        push = wheel_push(frame, Tyres(), 0.0, 1.0)
    wheels[index] = push.wheels
