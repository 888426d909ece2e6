"""The state of a match as Warp structs; every field is 32 bits wide, see `ludus.envs.warp_tools`."""

from collections.abc import Mapping

import warp as wp
from torch import Tensor

from ludus.core.state import FINITE, WORD
from ludus.envs.warp_tools import check_state_range, check_struct
from ludus.worlds.roshambo.rules import THROWS

SOURCES = 6  # predictions that the meta bot keeps the score of
Scores = wp.types.vector(length=SOURCES * len(THROWS), dtype=wp.float32)
Sources = wp.types.vector(length=SOURCES, dtype=wp.int32)


@wp.struct
class Match:
    """What both seats share; the throws themselves are in a history beside it."""

    frame: wp.int32  # throws played
    episode: wp.int32
    lead: wp.int32  # throws that seat 0 won minus those that it lost


@wp.struct
class Memo:
    """What the meta bot remembers; all other bots read everything from the history."""

    match: wp.int32  # 1 + the episode that this memory is of
    decided: wp.int32  # 1 + the last frame in which it decided ...
    choice: wp.int32  # ... and its throw then ("throw" is a keyword of C++)
    sources: Sources  # its predictions in that frame
    scores: Scores  # decayed result of every prediction with every rotation


@wp.struct
class Rules:
    """Settings of the environment that kernels read."""

    throws: wp.int32
    per_throw: wp.float32  # 1 / throws
    last_throws: wp.int32  # that an observation shows
    clock_period: wp.int32  # modulo which it shows the number of the throw; 0 for not at all
    seed_hash: wp.uint32  # the two halves of the seed, mixed
    first_game: wp.int32


def check_state(snapshot: Mapping[str, Tensor], throws: int) -> None:
    """Raise SnapshotError unless a state is possible: kernels use some of its numbers as indices."""
    ranges = {"frame": (0, throws - 1), "episode": (0, 2**30), "lead": (-throws, throws)}
    check_struct(snapshot["matches"], Match, ranges, "roshambo: match")
    highest = len(THROWS) - 1
    for seat, throws_of in enumerate((snapshot["history"] >> 2, snapshot["history"] & 3)):
        check_state_range(throws_of, 0, highest, f"roshambo: throws of seat {seat}")
    memo = {"match": WORD, "decided": WORD, "choice": (0, highest), "sources": (0, highest), "scores": FINITE}
    check_struct(snapshot["bot_memory"], Memo, memo, "roshambo: bot memory")
