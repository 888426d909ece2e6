"""What kernels look up: places on the field, weights of state setters and the action table; and rows of tensors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import warp as wp

from ludus.envs.rocket.actions import action_table
from ludus.envs.rocket.layout import BIG_PADS, KICKOFFS, PADS, RESPAWNS, pad_grid, pad_kind
from ludus.envs.rocket.rules import CONTROLS, EVENTS, MEASURES
from ludus.envs.rocket.setters import setter_bounds

ControlRow = wp.types.vector(length=CONTROLS, dtype=wp.float32)
BinRow = wp.types.vector(length=CONTROLS, dtype=wp.int64)
EventRow = wp.types.vector(length=len(EVENTS), dtype=wp.float32)
MeasureRow = wp.types.vector(length=len(MEASURES), dtype=wp.float32)


@wp.struct
class Tables:
    """Constant tables in the memory of the device."""

    pad_grid: wp.array2d[wp.int32]  # pad that a cell of the field meets, -1 none
    pads: wp.array[wp.vec4f]  # x, y, square of the radius, 1 if it is big
    kickoffs: wp.array[wp.vec4f]  # x, y of blue's slots, z and w of the rotation
    respawns: wp.array[wp.vec2f]  # x, y of blue's places
    setters: wp.array[wp.float32]  # ends of the setters' parts of [0, 1]
    actions: wp.array[ControlRow]


def make_tables(device: torch.device, setters: Mapping[str, float]) -> Any:  # noqa: ANN401 - structs have no static type
    """Returns the tables on a device.

    Args:
        device: Where the kernels run.
        setters: Weights of the state setters by name.
    """
    pads = [(x, y, pad_kind(pad).radius ** 2, float(pad in BIG_PADS)) for pad, (x, y) in enumerate(PADS)]
    kickoffs = [(x, y, np.sin(heading / 2), np.cos(heading / 2)) for x, y, heading in KICKOFFS]
    tables = Tables()
    tables.pad_grid = wp.array(pad_grid(), dtype=wp.int32, device=str(device))
    tables.pads = wp.array(np.array(pads, np.float32), dtype=wp.vec4f, device=str(device))
    tables.kickoffs = wp.array(np.array(kickoffs, np.float32), dtype=wp.vec4f, device=str(device))
    tables.respawns = wp.array(np.array(RESPAWNS, np.float32), dtype=wp.vec2f, device=str(device))
    tables.setters = wp.array(setter_bounds(setters), dtype=wp.float32, device=str(device))
    tables.actions = wp.array(action_table(), dtype=ControlRow, device=str(device))
    return tables
