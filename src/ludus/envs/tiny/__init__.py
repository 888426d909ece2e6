"""Toy worlds with known best play: what a learner must be able to solve, in plain torch."""

from ludus.envs.world import World


def _toy(name: str, file: str, opponent: str | None = None, styles: str | None = None) -> World:
    place = f"ludus.envs.tiny.{file}:{name.capitalize()}"
    return World(
        id=f"{name}-v1", env=f"{place}Env", config=f"{place}Settings", default_opponent=opponent, styles=styles
    )


_MOVES = "ludus.envs.tiny.two_player:STYLES"


DIG = _toy("dig", "single_player")
DUEL = _toy("duel", "two_player", opponent="random", styles=_MOVES)
ENDLESS = _toy("endless", "single_player")
IDENTITY = _toy("identity", "single_player")
POINT = _toy("point", "single_player")
RECALL = _toy("recall", "single_player")
RPS = _toy("rps", "two_player", styles=_MOVES)
TUG = _toy("tug", "two_player", opponent="random")
