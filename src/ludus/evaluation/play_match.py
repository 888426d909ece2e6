"""`ludus.play_match`: one match between any two players, with its result and statistics, as a video if wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.core.errors import ConfigError
from ludus.core.files import make_folder
from ludus.envs.bots import is_bot
from ludus.envs.registry import make_env, world_id
from ludus.envs.replay import Replay
from ludus.envs.world import registered_envs
from ludus.evaluation.display import display_settings, make_shown_env, shown_settings
from ludus.evaluation.live_match import LiveMatch, Outcome
from ludus.evaluation.playback import film_match
from ludus.evaluation.players import Contender, Player, as_player, find_player, load_playable_agent, seat_by_team
from ludus.policies.agent import Agent
from ludus.policies.shipped import find_agent_path


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The result of one match.

    Attributes:
        players: Names of the two sides.
        winner: Name of the side that won, or None for a draw.
        winner_index: Its index in `players`, which tells sides of one name apart; None for a draw.
        steps: Length in steps.
        seconds: Length in game time.
        statistics: Last value of each state metric, such as damage and stocks, and goals; for both sides.
        replay: The recording, for `Replay.save`; None in a world that cannot be replayed.
        reason: Why it ended other than by the rules: an agent was too slow, or decided NaN; else empty.
    """

    players: tuple[str, ...]
    winner: str | None
    winner_index: int | None
    steps: int
    seconds: float
    statistics: Mapping[str, tuple[float, ...]]
    replay: Replay | None
    reason: str = ""


def play_match(
    first: Contender,
    second: Contender,
    world: str | None = None,
    *,
    video: str | Path | None = None,
    seed: int = 0,
    deterministic: bool = False,
    config: Mapping[str, Any] | None = None,
) -> MatchResult:
    """Play one match between two players.

    Args:
        first: An agent or its path, a bot's name, the name of a shipped agent such as `champion`, or a function or
            class that is a bot. It starts on the left. A bot takes precedence over a path of the same name (`./based`
            is the path), and both take precedence over a shipped agent.
        second: Likewise.
        world: The world; that of an agent among the players if None.
        video: Write the match to this file, such as `match.mp4` or `match.gif`.
        seed: Seed of the match and of the agents' sampled actions.
        deterministic: Whether agents take their most likely action.
        config: Settings of the world; those of an agent among the players if None.

    Raises:
        ConfigError: Nothing says which world, it does not have two sides, or there is no such player.
        StateError: An agent is for another world.
    """
    contenders = _loaded((first, second), world)
    agents = [each for each in contenders if isinstance(each, Agent)]
    chosen = world or next((agent.spec.id for agent in agents), None)
    if chosen is None:
        raise ConfigError(
            f"nothing says which world {first!r} and {second!r} play; pass world=, one of "
            f"{', '.join(registered_envs())}"
        )
    for agent in agents:  # before its settings are used
        agent.check_world_id(world_id(chosen))
    settings = dict(config) if config is not None else next((agent.settings for agent in agents), {})
    shown = display_settings(chosen, shown_settings(chosen, settings))
    with make_shown_env(chosen, seed=seed, settings=shown, left_first=True) as env:
        if len(set(env.spec.teams)) != 2:
            raise ConfigError(f"a match has two sides; {env.spec.id} has {len(set(env.spec.teams))}")
        players: list[Player] = []
        for given, contender in zip((first, second), contenders, strict=True):
            if isinstance(contender, Agent):
                contender.check_world(env.spec)
                players.append(Player(str(given) if isinstance(given, str | Path) else "agent", contender.policy))
            else:
                player = as_player(contender)
                players.append(player if isinstance(player, Player) else find_player(player, env))
        match = LiveMatch(env, seat_by_team(env, players, seed=seed, deterministic=deterministic))
        outcome = _play(match, None if video is None else Path(video))
        index = outcome.winner
        winner = None if index is None else match.sides[index]
        replay = match.replay() if match.is_recorded else None
        return MatchResult(
            match.sides, winner, index, outcome.steps, outcome.seconds, outcome.state_metrics, replay, outcome.reason
        )


def _loaded(given: tuple[Contender, Contender], world: str | None) -> list[Contender]:
    """Load agents that are given by path or name; the name of a bot of the world is the bot, as in `find_player`."""
    found: dict[int, Contender] = {}
    for place in sorted((0, 1), key=lambda place: _may_be_a_bot(given[place])):  # paths first: they tell the world
        each = given[place]
        if isinstance(each, Path) or (isinstance(each, str) and find_agent_path(each) and not _is_bot(each, world)):
            each = load_playable_agent(each)
        found[place] = each
        world = world or (each.spec.id if isinstance(each, Agent) else None)
    return [found[0], found[1]]


def _may_be_a_bot(given: Contender) -> bool:
    return isinstance(given, str) and not {"/", "\\", "."} & set(given.partition(":")[0])


def _is_bot(name: str, world: str | None) -> bool:
    if world is None or not _may_be_a_bot(name):
        return False
    with make_env(world) as env:
        return is_bot(name, env.spec)


def _play(match: LiveMatch, video: Path | None) -> Outcome:
    outcome = None
    if video is not None:
        make_folder(video.parent)
        outcome, _ = film_match(match, video)
    while outcome is None:
        outcome = match.step()
    return outcome
