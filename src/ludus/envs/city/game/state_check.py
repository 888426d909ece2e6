"""Checks a state before a kernel sees it: kernels use some of its numbers as places in arrays, and look at none twice.

A snapshot may come from a stranger's checkpoint, or from games with other settings. A wrong number in it must be an
error here: a kernel would read or write beyond its arrays.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import SnapshotError
from ludus.envs.city.game.kernels.structs import City
from ludus.envs.city.game.rules import (
    CAPACITIES,
    FUNDS_LIMIT,
    MAX_TAX,
    MILESTONES,
    Flag,
    Kind,
    Notice,
    Over,
    Terrain,
)
from ludus.envs.warp_tools import struct_views

_SHARES = ("happiness", "traffic", "pollution", "value")
_DEMANDS = ("demand_residential", "demand_commercial", "demand_industrial")


def check_state(snapshot: Mapping[str, Tensor], cells: int) -> None:
    """Raises SnapshotError unless a state can be one of cities with so many cells."""
    city = struct_views(snapshot["cities"].contiguous(), City)
    _within("terrain", snapshot["terrain"], 0, max(Terrain))
    _within("kind", snapshot["kind"], 0, max(Kind))
    _within("amount", snapshot["amount"], 0, CAPACITIES[-1])
    _within("flags", snapshot["flags"], 0, sum(Flag))
    _within("shore", snapshot["shore"], 0, 1)
    _within("road", snapshot["road"], -1, cells - 1)
    _within("network", snapshot["network"], -1, cells - 1)
    _within("circuit", torch.maximum(snapshot["circuit"], -1 - snapshot["circuit"]), 0, cells - 1)
    _within("connected", city["connected"], 0, cells)
    served = snapshot["network"].gather(1, snapshot["road"].clamp(min=0).long())
    _within("network of a road that serves", served[snapshot["road"] >= 0], 0, cells - 1)
    for name in ("air", "value"):
        _within(name, snapshot[name], 0, 100)
    for name in ("load", "scenery"):
        _within(name, snapshot[name], 0, 1_000_000)
    _within("funds", city["funds"], -FUNDS_LIMIT, FUNDS_LIMIT)
    _within("tax", city["tax"], 0, MAX_TAX)
    _within("felt tax", city["felt_tax"], 0, MAX_TAX)
    for name in ("funding_transport", "funding_safety", "funding_welfare", *_SHARES):
        _within(name, city[name], 0, 100)
    for name in (*_DEMANDS, "market"):
        _within(name, city[name], -100, 100)
    _within("milestones", city["milestones"], 0, len(MILESTONES))
    _within("notice", city["notice"], 0, sum(Notice))
    _within("notice cell", city["notice_cell"], -1, cells - 1)
    _within("over", city["over"], 0, max(Over))
    for name in ("day", "population", "commercial", "industrial", "filled", "tax_due"):
        _within(name, city[name], 0, 2**31 - 1)


def _within(name: str, values: Tensor, low: int, high: int) -> None:
    wrong = values[~((values >= low) & (values <= high))]  # which finds numbers that are not finite, too
    if wrong.numel():
        raise SnapshotError(
            f"snapshot of the city simulation: {name} is {wrong[0].item():g}, valid: {low} to {high}; "
            "restore it in games with the settings that it was taken with"
        )
