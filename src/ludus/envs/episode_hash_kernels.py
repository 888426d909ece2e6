"""The kernel of `ludus.envs.episode_hashes`."""

import warp as wp

from ludus.envs.warp_functions import mix


@wp.kernel
def episode_hash_kernel(
    start: wp.uint32,
    first_game: wp.int64,
    episodes: wp.array(dtype=wp.int64),
    streams: wp.array(dtype=wp.int64),
    hashes: wp.array2d(dtype=wp.int64),
    first: wp.int32,
) -> None:
    """Hash the episode of each game on every stream."""
    game = wp.tid() + first
    h = mix(start, wp.uint32(first_game + wp.int64(game)))
    h = mix(h, wp.uint32(episodes[game]))
    h = mix(h, wp.uint32(0))
    for place in range(streams.shape[0]):
        hashes[place, game] = wp.int64(mix(h, wp.uint32(streams[place])))
