"""How many wheels of a car touch the arena: what packets do not say while a car jumps off."""

import torch
import warp as wp

from ludus.envs.rocket.kernels import footing as footing_kernels
from ludus.envs.rocket.view import Quaternion, Vector
from ludus.envs.warp_tools import load_kernels


class Footing:
    """Counts wheels in contact as the simulator does."""

    def __init__(self) -> None:
        self._position, self._rotation = torch.zeros((1, 3)), torch.zeros((1, 4))
        self._wheels = torch.zeros(1, dtype=torch.int32)
        self._inputs = [
            wp.from_torch(self._position, dtype=wp.vec3f),
            wp.from_torch(self._rotation, dtype=wp.quatf),
            wp.from_torch(self._wheels),
        ]
        load_kernels(footing_kernels, self._position.device)

    def wheels(self, position: Vector, rotation: Quaternion) -> int:
        """Returns the wheels that a tick finds in contact which begins with a car at this place of our world."""
        self._position[0], self._rotation[0] = torch.tensor(position), torch.tensor(rotation)
        wp.launch(footing_kernels.footing_kernel, 1, inputs=self._inputs, device="cpu")
        return int(self._wheels)
