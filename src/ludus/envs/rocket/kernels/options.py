"""How the kernels that contain the whole physics are compiled."""

from typing import Any

from ludus.envs.warp_tools import EXACT

# Warp writes loops of up to 16 rounds out, round by round. For contacts with rounds within rounds that took two minutes
# to compile instead of twelve seconds, and ran no faster; loops over three axes stay written out.
PHYSICS: dict[str, Any] = EXACT | {"max_unroll": 3}
