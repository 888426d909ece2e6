"""`ludus demo`: what an agent has learned, or a match of two players, in a window or as a video."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ludus.cli.completion import complete_agent, complete_agent_or_world
from ludus.cli.console import ProgressLine, print_ok, print_warning
from ludus.cli.options import ONE_BOT, Deterministic, Fps, Names, Plugin, View, find_latest, load_plugins
from ludus.cli.play import save_replay, show_match
from ludus.core.errors import ConfigError
from ludus.core.files import make_folder

if TYPE_CHECKING:
    from ludus.envs.base import BatchedEnv
    from ludus.envs.display import Pictures
    from ludus.evaluation.live_match import LiveMatch
    from ludus.evaluation.players import Player
    from ludus.evaluation.rendering import RenderOptions
    from ludus.policies.agent import Agent


def demo(
    player: Annotated[
        str | None,
        Argument(
            metavar="AGENT_OR_WORLD",
            help="Name, folder or file of an agent, or a world.",
            show_default="runs/latest, or bots if there is no run",
            autocompletion=complete_agent_or_world,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        Option(
            help="Agent that plays in the world, on the left: its name, folder or file.",
            show_default="none, so bots play",
            autocompletion=complete_agent,
        ),
    ] = None,
    left: Annotated[
        str | None,
        Option(help="Player that starts on the left, if not the agent: bot or agent.", show_default=ONE_BOT),
    ] = None,
    right: Annotated[
        str | None,
        Option("--against", "--right", help="Player that starts on the right: bot or agent.", show_default=ONE_BOT),
    ] = None,
    video: Annotated[Path | None, Option(help="Video to write, .mp4 or .gif.", show_default="demo.mp4")] = None,
    window: Annotated[bool, Option("--window", help="Show it in a window instead.")] = False,
    seed: Annotated[int, Option(min=0, help="Seed of the match.")] = 0,
    scenario: Annotated[str | None, Option("--scenario", help="Scenario of the world to show the agent in.")] = None,
    set_: Annotated[
        Names, Option("--set", help="World setting as key=value, such as speed=1.2; may be repeated.")
    ] = None,
    deterministic: Deterministic = False,
    frames: Annotated[int | None, Option(min=1, help="Stop after this many frames.")] = None,
    view: View = None,
    fps: Fps = 30.0,
    debug: Annotated[bool, Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, Option(help="Also write the match to this replay file.")] = None,
    plugin: Plugin = None,
) -> None:
    """Show an agent in its world: alone, or against a bot or another agent; or a world without any agent."""
    load_plugins(plugin, player or "")
    from ludus.envs.display import display_of
    from ludus.evaluation.display import display_settings, make_shown_env, shown_settings
    from ludus.evaluation.live_match import LiveMatch
    from ludus.evaluation.players import seat_by_team
    from ludus.evaluation.rendering import RenderOptions
    from ludus.policies.shipped import agent_names

    if window and video is not None:
        raise ConfigError(f"--window shows the match and writes no video; leave --video {video} out, or --window")
    player = player or agent or str(find_latest() or _first_world())
    world, loaded = _find_shown(player, agent)
    player = agent or player
    if loaded is not None and left is not None:
        raise ConfigError(f"the agent {player} starts on the left; leave --left {left} out, or name a world instead")
    settings = display_settings(world, shown_settings(world, loaded.stored if loaded else None), scenario, set_ or ())
    target = None if window else video or Path("demo.mp4")
    with make_shown_env(world, seed=seed, settings=settings, left_first=True) as env:
        pictures = display_of(world).pictures if loaded is None else None
        if pictures is not None:
            _refuse(env, {"--left": left, "--against": right, "--record": record, "--view": view})
            known = "".join(f", or --agent {name}" for name in agent_names(env.spec.id))
            print_ok(
                f"no agent is named, so {world} shows what it has without one; for an agent: ludus demo RUN{known}"
            )
            _show_pictures(pictures, env, target, frames=frames)
            return
        contenders = _contenders(env, player, loaded, left, right)
        match = LiveMatch(env, seat_by_team(env, contenders, seed=seed, deterministic=deterministic))
        render = RenderOptions(debug, view)
        if target is None:
            show_match(match, render, frames)
        else:
            _film(match, target, render, frames=frames, fps=fps)
        save_replay(match, record)


def _find_shown(player: str, agent: str | None) -> "tuple[str, Agent | None]":
    """Return the world to show, and the agent that plays in it, if one does.

    Raises:
        ConfigError: There is no such world or agent, or two agents are named.
        StateError: The agent is for another world.
    """
    from ludus.envs.registry import world_id
    from ludus.evaluation.players import find_world, load_playable_agent

    if agent is None:
        return find_world(player)
    loaded = load_playable_agent(agent)
    if player == agent:
        return loaded.spec.id, loaded
    world, other = find_world(player)
    if other is not None:
        raise ConfigError(
            f"{player} is an agent, and so is --agent {agent}; leave one of them out, or make it the opponent with "
            "--against"
        )
    loaded.check_world_id(world_id(world))
    return world, loaded


def _first_world() -> str:
    """Return the first world with bots to watch."""
    from ludus.envs.display import display_of
    from ludus.envs.world import registered_worlds

    return next(world.name for world in registered_worlds() if display_of(world.id).bots)


def _contenders(
    env: "BatchedEnv", player: str, agent: "Agent | None", left: str | None, right: str | None
) -> "list[Player]":
    """Find who plays: an agent or a bot alone where there is one seat, else one for each of two sides."""
    from ludus.envs.display import display_of
    from ludus.evaluation.players import Player, find_player

    if agent is not None:
        agent.check_world(env.spec)
    display, known = display_of(env.spec.id), env.spec.bots
    if len(set(env.spec.teams)) == 1:
        _refuse(env, {"--against": right})
        if agent is not None:
            return [Player(player, agent.policy)]
        if not known:
            raise ConfigError(
                f"{env.spec.id} is played alone and has no bots to watch: name the folder of an agent, such as "
                f"runs/latest, or train one with: ludus train {player}"
            )
        name = left or next((bot for bot in display.bots if bot in known), known[0])
        print_ok(f"{name} plays {env.spec.id} alone; its bots, for --left: {', '.join(known)}")
        return [find_player(name, env)]
    if len(set(env.spec.teams)) != 2:
        raise ConfigError(f"a demo is for one or two sides; {env.spec.id} has {len(set(env.spec.teams))}")
    bots = display.bots or (known[0], known[-1])
    first = find_player(left or bots[0], env) if agent is None else Player(player, agent.policy)
    return [first, find_player(right or bots[1], env)]


def _refuse(env: "BatchedEnv", options: dict[str, object]) -> None:
    """Raise ConfigError if an option was given that needs an opponent."""
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name} {value} means nothing here: {env.spec.id} is shown alone; leave it out")


def _show_pictures(pictures: "Pictures", env: "BatchedEnv", target: Path | None, *, frames: int | None) -> None:
    """Show or film what the world shows without a player."""
    from ludus.evaluation.frame_rates import MAX_FRAME_RATE_HZ, steps_per_frame
    from ludus.evaluation.playback import film_pictures, show_pictures
    from ludus.evaluation.window import Window

    rate_hz = env.spec.rate_hz / steps_per_frame(env.spec.rate_hz)
    if target is None:
        with Window(f"Ludus: {env.spec.id}") as window:
            show_pictures(pictures, env, window, rate_hz, frames=frames)
        return
    make_folder(target.parent)
    progress = ProgressLine("pictures", frames or _pictures(env, MAX_FRAME_RATE_HZ))
    written = film_pictures(pictures, env, target, rate_hz, frames=frames, progress=progress)
    progress.close()
    print_ok(f"{written} frames of {env.spec.id} written to {target}")


def _film(match: "LiveMatch", video: Path, render: "RenderOptions", *, frames: int | None, fps: float) -> None:
    from ludus.evaluation.playback import film_match

    make_folder(video.parent)
    progress = ProgressLine("pictures", min(frames or 2**31, _pictures(match.env, fps)))
    outcome, written = film_match(match, video, frames=frames, render=render, fps=fps, progress=progress)
    progress.close()
    if outcome is None:
        print_warning(f"stopped after {match.steps} steps, before the end")
    else:
        print_ok(outcome.describe(match.sides))
    print_ok(f"{written} frames written to {video}")


def _pictures(env: "BatchedEnv", fps: float) -> int:
    """Return how many pictures there are at most."""
    from ludus.evaluation.frame_rates import frame_schedule

    steps, parts = frame_schedule(env, fps)
    return -(-(env.spec.step_limit or 2**31) // steps) * parts
