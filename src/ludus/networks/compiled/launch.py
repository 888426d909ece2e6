"""Launches the compiled LSTM: its table, blocks of rows, threads."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_BLOCK_ROWS = (
    16  # their states stay in a core's first cache beside the weights in use; threads find work in small parts
)
_TILE_ROWS = 4  # rows that the compiled function works on together
_WORTH_A_THREAD = 1 << 21  # multiplications; with fewer, handing a part over costs more than it brings
_HEADER = 6  # places of the table before those of the networks: steps, rows, size, rows and number of blocks, keep
_PLACES = 8  # of a network
_COLUMNS = 16  # of the weights that are transposed together
_Table: TypeAlias = NDArray[np.int64]


def launch(kernel: str, shape: tuple[int, int, int], keep: Tensor, networks: Sequence[Sequence[Tensor]]) -> None:
    """Runs a kernel over all rows of all networks; one call at a time.

    Args:
        kernel: Its name in `kernels`.
        shape: Steps, rows and size.
        keep: `(steps, rows, 1)`.
        networks: Contiguous tensors of each, in the order in which the kernel reads their addresses.
    """
    steps, rows, size = shape
    work = len(networks) * steps * rows * 4 * size * size
    runner = _runner(torch.get_num_threads() if work >= _WORTH_A_THREAD else 1)
    if kernel == "backward_kernel":
        runner.run("transpose_kernel", (*shape, _COLUMNS, size // _COLUMNS, 0), networks)
    block_rows = rows_of_block(rows, len(networks), runner.threads)
    runner.run(kernel, (*shape, block_rows, -(-rows // block_rows), keep.data_ptr()), networks)


def rows_of_block(rows: int, networks: int, threads: int) -> int:
    """Returns how many rows a block has: few enough for the cache, and as many blocks as keep all threads busy."""
    turns = -(-rows * networks // (_BLOCK_ROWS * threads))  # of every thread
    share = -(-rows * networks // (turns * threads))
    return -(-share // _TILE_ROWS) * _TILE_ROWS


class _Runner:
    """Fills tables and runs blocks of rows on so many threads."""

    def __init__(self, threads: int) -> None:
        from ludus.envs.warp_tools import Launcher, load_kernels
        from ludus.networks.compiled import kernels

        class BlockLauncher(Launcher):
            """Hands over single blocks of rows."""

            MIN_SLICE = 1

        load_kernels(kernels, torch.device("cpu"))
        self.threads = threads
        self._kernels, self._launcher = kernels, BlockLauncher(torch.device("cpu"), threads)
        self._prepared: dict[tuple[str, int, int], tuple[_Table, Callable[[], None]]] = {}

    def run(self, kernel: str, header: tuple[int, ...], networks: Sequence[Sequence[Tensor]]) -> None:
        """Runs a kernel over all blocks, whose number a network is the last but one of the header."""
        key = (kernel, len(networks), header[-2])
        if key not in self._prepared:
            self._prepared[key] = self._prepare(*key)
        table, run = self._prepared[key]
        table[:] = (*header, *(tensor.data_ptr() for tensors in networks for tensor in tensors))
        run()

    def _prepare(self, kernel: str, networks: int, blocks: int) -> tuple[_Table, Callable[[], None]]:
        import warp as wp

        table = np.zeros(_HEADER + networks * _PLACES, dtype=np.int64)
        address = wp.uint64(table.ctypes.data)
        return table, self._launcher.prepare(networks * blocks, (getattr(self._kernels, kernel), [address]))


@cache
def _runner(threads: int) -> _Runner:
    """Makes the runner on first use, so that whoever has no use for it never loads Warp."""
    return _Runner(threads)
