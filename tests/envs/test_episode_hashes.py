"""Hashes of episodes as a kernel: the numbers of `stream_hash_tensor`, bit for bit."""

import pytest
import torch

from ludus.core.random import stream_hash_tensor
from ludus.envs.episode_hashes import EpisodeHashes


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_they_are_those_of_tensors(seed: int, device: str) -> None:
    games, first, streams = 1000, 37, (0x5EA7, 1, 2**32 - 1)
    generator = torch.Generator().manual_seed(3)
    episodes = torch.randint(0, 2**40, (games,), generator=generator).to(device)
    hashes = EpisodeHashes(seed, first, episodes, streams)
    numbers = first + torch.arange(games, device=device)
    for _ in range(2):
        found = hashes()
        for place, stream in enumerate(streams):
            assert torch.equal(found[place], stream_hash_tensor(seed, numbers, episodes, 0, stream))
        episodes += torch.arange(games, device=device) % 2
