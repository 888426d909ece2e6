"""Puts the constraint rows of MuJoCo Warp into one order, so that its sums have the same bits in every run.

Threads of a GPU append contacts and constraint rows in the order in which they come. MuJoCo Warp 4.0 has a setting for
determinism, which makes sums that follow from the order of threads reproducible; but where it is to sort contacts and
rows, nothing is done yet. Rows are put into the order of their type, then of what they belong to: a joint, or the two
geoms of a contact. The constraint solver adds over rows alone, so that it does not matter that contacts stay where they
are.
"""

from typing import Any

import warp as wp

from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

_CONTACT = wp.constant(5)  # the first type of rows that are contacts: without friction, pyramidal, elliptic
_FLOATS = ("pos", "margin", "D", "vel", "aref", "frictionloss")


@wp.func
def comes_before(
    world: int,
    row: int,
    other: int,
    types: wp.array2d[wp.int32],
    ids: wp.array2d[wp.int32],
    geoms: wp.array[wp.vec2i],
    numbers: wp.array[wp.int32],
) -> bool:
    """Return whether a row must come before another one; rows of the same contact or joint must not."""
    if types[world, row] != types[world, other]:
        return types[world, row] < types[world, other]
    first = ids[world, row]
    second = ids[world, other]
    if types[world, row] < _CONTACT or first == second:
        return first < second
    one = geoms[first]
    two = geoms[second]
    if one[0] != two[0]:
        return one[0] < two[0]
    if one[1] != two[1]:
        return one[1] < two[1]
    return numbers[first] < numbers[second]


@wp.kernel
def order_kernel(
    counts: wp.array[wp.int32],
    types: wp.array2d[wp.int32],
    ids: wp.array2d[wp.int32],
    geoms: wp.array[wp.vec2i],
    numbers: wp.array[wp.int32],
    order: wp.array2d[wp.int32],
):
    """Write which row of each world comes to which place: an insertion sort, as there are a few dozen at most."""
    world = wp.tid()
    count = wp.min(counts[world], order.shape[1])
    for row in range(count):
        place = int(row)
        while place > 0 and comes_before(world, row, order[world, place - 1], types, ids, geoms, numbers):
            order[world, place] = order[world, place - 1]
            place = place - 1
        order[world, place] = row


@wp.func
def row_at(world: int, place: int, counts: wp.array[wp.int32], order: wp.array2d[wp.int32]) -> int:
    """Return the row that comes to a place; places behind the last row keep what they have."""
    if place < wp.min(counts[world], order.shape[1]):
        return order[world, place]
    return place


@wp.kernel
def gather_floats_kernel(
    counts: wp.array[wp.int32], order: wp.array2d[wp.int32], values: wp.array2d[wp.float32], out: wp.array2d[wp.float32]
):
    """Copy numbers of rows in their order."""
    world, place = wp.tid()
    out[world, place] = values[world, row_at(world, place, counts, order)]


@wp.kernel
def gather_jacobian_kernel(
    counts: wp.array[wp.int32], order: wp.array2d[wp.int32], values: wp.array3d[wp.float32], out: wp.array3d[wp.float32]
):
    """Copy the Jacobian of rows in their order."""
    world, place, dof = wp.tid()
    out[world, place, dof] = values[world, row_at(world, place, counts, order), dof]


@wp.kernel
def gather_names_kernel(
    counts: wp.array[wp.int32],
    order: wp.array2d[wp.int32],
    types: wp.array2d[wp.int32],
    ids: wp.array2d[wp.int32],
    addresses: wp.array2d[wp.int32],
    out_types: wp.array2d[wp.int32],
    out_ids: wp.array2d[wp.int32],
):
    """Copy types and ids of rows in their order, and tell contacts where their rows are now."""
    world, place = wp.tid()
    row = row_at(world, place, counts, order)
    out_types[world, place] = types[world, row]
    out_ids[world, place] = ids[world, row]
    if place < counts[world] and types[world, row] >= _CONTACT:
        contact = ids[world, row]
        for edge in range(addresses.shape[1]):
            if addresses[contact, edge] == row:
                # This place may be the number of another row of the contact: what is done is marked as negative.
                addresses[contact, edge] = -2 - place


@wp.kernel
def unmark_kernel(addresses: wp.array2d[wp.int32]):
    """Turn marked addresses into places."""
    contact, edge = wp.tid()
    if addresses[contact, edge] < -1:
        addresses[contact, edge] = -2 - addresses[contact, edge]


class RowOrder:
    """Orders the constraint rows of a batch; a `control` callback of MuJoCo Warp, behind them and before the solver."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - MuJoCo Warp's data has no static type
        """Allocate room for copies of the rows, on the current device."""
        rows = data.efc
        self._order = wp.zeros_like(rows.type)
        self._names = wp.zeros_like(rows.type), wp.zeros_like(rows.id)
        self._floats = {name: wp.zeros_like(getattr(rows, name)) for name in _FLOATS}
        self._jacobian = wp.zeros_like(rows.J)

    def __call__(self, _: Any, data: Any) -> None:  # noqa: ANN401 - as above
        """Order all rows; see `mujoco_warp.Callback`."""
        rows, contact, order = data.efc, data.contact, self._order
        worlds, places = order.shape
        named = [rows.type, rows.id, contact.geom, contact.geomcollisionid]
        wp.launch(order_kernel, worlds, inputs=[data.nefc, *named, order])
        for name, copy in self._floats.items():
            values = getattr(rows, name)
            wp.launch(gather_floats_kernel, values.shape, inputs=[data.nefc, order, values, copy])
            wp.copy(values, copy)
        inputs = [data.nefc, order, rows.J, self._jacobian]
        wp.launch(gather_jacobian_kernel, rows.J.shape, inputs=inputs)
        wp.copy(rows.J, self._jacobian)
        inputs = [data.nefc, order, rows.type, rows.id, contact.efc_address, *self._names]
        wp.launch(gather_names_kernel, (worlds, places), inputs=inputs)
        wp.launch(unmark_kernel, contact.efc_address.shape, inputs=[contact.efc_address])
        for values, copy in zip((rows.type, rows.id), self._names, strict=True):
            wp.copy(values, copy)
