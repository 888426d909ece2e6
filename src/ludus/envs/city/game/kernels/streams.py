"""Random streams of a city, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.structs import City
from ludus.envs.warp_functions import mix


@wp.func
def stream(city: City, name: wp.int32, index: wp.int32) -> wp.uint32:
    """Hash of the named random stream of this city and day; `index` tells apart what happens more than once a day."""
    return mix(mix(mix(city.key, wp.uint32(city.day)), wp.uint32(name)), wp.uint32(index))
