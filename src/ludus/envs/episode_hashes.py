"""The random numbers of the episodes that are being played in all games, as one kernel.

With tensors, a hash of four keys takes fifty operations: in a step of a large batch on a GPU that is most of the work
of a league, although it only matters in games that have ended.
"""

import torch
import warp as wp
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs import episode_hash_kernels
from ludus.envs.warp_tools import Launcher, load_kernels


class EpisodeHashes:
    """`stream_hash_tensor(seed, first_game + game, episode, 0, stream)` of all games on some streams.

    Attributes:
        hashes: `(streams, games)` int64, of the last call.
    """

    def __init__(self, seed: int, first_game: int, episodes: Tensor, streams: tuple[int, ...]) -> None:
        """Prepare the launch.

        Args:
            seed: Of the hashes.
            first_game: Index of the first game.
            episodes: `(games,)` int64, read in every call.
            streams: The streams.
        """
        device, games = episodes.device, len(episodes)
        self._streams = torch.tensor(streams, dtype=torch.int64, device=device)
        self.hashes = torch.zeros((len(streams), games), dtype=torch.int64, device=device)
        load_kernels(episode_hash_kernels, device)
        inputs = [
            wp.uint32(stream_hash(seed)), wp.int64(first_game),
            wp.from_torch(episodes), wp.from_torch(self._streams), wp.from_torch(self.hashes),
        ]  # fmt: skip
        self._launcher = Launcher(device, 1)
        self._run = self._launcher.prepare(games, (episode_hash_kernels.episode_hash_kernel, inputs))

    def __call__(self) -> Tensor:
        """Hash the present episodes, and return `hashes`."""
        self._run()
        return self.hashes
