"""`ludus demo`: what an agent has learned, or a match of two players, in a window or as a video."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import ProgressLine, print_ok, print_warning
from ludus.cli.options import Deterministic, Fps, View
from ludus.cli.plugins import Plugin, load_plugins
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.envs.base import BatchedEnv
    from ludus.evaluation.contenders import Contender
    from ludus.evaluation.exhibition import Exhibition
    from ludus.evaluation.painting import Look
    from ludus.evaluation.showcase import Showcase
    from ludus.policies.agent import Agent


def demo(
    player: Annotated[
        str, typer.Argument(metavar="AGENT_OR_WORLD", help="Folder or file of an agent, or a world to show bots in.")
    ] = "brawl",
    left: Annotated[
        str | None,
        typer.Option(
            help="Who starts on the left, if not the agent: bot or folder. [brawl: aggressive, rocket: chaser]"
        ),
    ] = None,
    right: Annotated[
        str | None,
        typer.Option(
            "--against",
            "--right",
            help="Who starts on the right: bot, or folder. [brawl: edge-guarder, rocket: shooter]",
        ),
    ] = None,
    video: Annotated[Path | None, typer.Option(help="Video to write, .mp4 or .gif. [demo.mp4]")] = None,
    window: Annotated[bool, typer.Option("--window", help="Show it in a window instead.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the match.")] = 0,
    trial: Annotated[str | None, typer.Option(help="Trial of the world to show the agent in.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the world as key=value, such as speed=1.2; repeat it.")
    ] = None,
    deterministic: Deterministic = False,
    frames: Annotated[int | None, typer.Option(min=1, help="Stop after this many pictures.")] = None,
    view: View = None,
    fps: Fps = 30.0,
    debug: Annotated[bool, typer.Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, typer.Option(help="Also write the match to this replay file.")] = None,
    plugin: Plugin = None,
) -> None:
    """Show an agent in its world: alone, or against a bot or another agent; or a world without any agent."""
    load_plugins(plugin)
    from ludus.evaluation.contenders import find_world, sit_by_team
    from ludus.evaluation.exhibition import Exhibition
    from ludus.evaluation.painting import Look
    from ludus.evaluation.showcase import find_showcase
    from ludus.evaluation.stage import make_stage, shown_settings, stage_settings

    if window and video is not None:
        raise ConfigError(f"--window shows the match and writes no video; leave --video {video} out, or --window")
    world, agent = find_world(player)
    if agent is not None and left is not None:
        raise ConfigError(f"the agent {player} starts on the left; leave --left {left} out, or name a world instead")
    settings = stage_settings(world, shown_settings(world, agent.settings if agent else None), trial, set_ or ())
    target = None if window else video or Path("demo.mp4")
    with make_stage(world, seed=seed, settings=settings, left_first=True) as env:
        showcase = find_showcase(world) if agent is None and env.spec.seats == 1 else None
        if showcase is not None:
            _refuse(env, {"--left": left, "--against": right, "--record": record, "--view": view})
            _run_showcase(showcase, env, target, frames=frames)
            return
        contenders = _contenders(env, player, agent, left, right)
        exhibition = Exhibition(env, sit_by_team(env, contenders, seed=seed, deterministic=deterministic))
        look = Look(debug, view)
        if target is None:
            _show(exhibition, look, frames=frames)
        else:
            _film(exhibition, target, look, frames=frames, wish_hz=fps)
        recorded = None if record is None else exhibition.replay()
        if record is not None and recorded is not None:
            record.parent.mkdir(parents=True, exist_ok=True)
            recorded.save(record)
            print_ok(f"replay of {recorded.steps} steps written to {record}")


def _contenders(
    env: "BatchedEnv", player: str, agent: "Agent | None", left: str | None, right: str | None
) -> "list[Contender]":
    """Finds who plays: an agent alone where there is one seat, else one for each of two sides."""
    from ludus.evaluation.contenders import Contender, find_contender
    from ludus.evaluation.stage import stage_of

    if agent is not None:
        agent.check_world(env.spec)
    if env.spec.seats == 1:
        _refuse(env, {"--left": left, "--against": right})
        if agent is None:
            raise ConfigError(f"{env.spec.id} is played alone: name an agent instead of the world")
        return [Contender(player, agent.policy)]
    if len(set(env.spec.teams)) != 2:
        raise ConfigError(f"a demo is for one or two sides; {env.spec.id} has {len(set(env.spec.teams))}")
    bots = stage_of(env.spec.id).bots or (env.spec.bots[0], env.spec.bots[-1])
    first = find_contender(left or bots[0], env) if agent is None else Contender(player, agent.policy)
    return [first, find_contender(right or bots[1], env)]


def _refuse(env: "BatchedEnv", options: dict[str, object]) -> None:
    """Raises ConfigError if an option was given that means nothing where nobody else plays."""
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name} {value} means nothing here: {env.spec.id} is shown alone; leave it out")


def _run_showcase(showcase: "Showcase", env: "BatchedEnv", target: Path | None, *, frames: int | None) -> None:
    """Shows or films what the world shows without a player."""
    from ludus.evaluation.pace import MOST_PICTURES_HZ, steps_a_picture
    from ludus.evaluation.showcase import film_showcase, show_showcase
    from ludus.evaluation.window import Window

    rate_hz = env.spec.rate_hz / steps_a_picture(env.spec.rate_hz)
    if target is None:
        with Window(f"Ludus: {env.spec.id}") as window:
            show_showcase(showcase, env, window, rate_hz, frames=frames)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    progress = ProgressLine("frames", frames or _pictures(env, MOST_PICTURES_HZ))
    written = film_showcase(showcase, env, target, rate_hz, frames=frames, progress=progress)
    progress.close()
    print_ok(f"{written} frames of {env.spec.id} written to {target}")


def _show(exhibition: "Exhibition", look: "Look", *, frames: int | None) -> None:
    from ludus.evaluation.playback import play_in_window
    from ludus.evaluation.window import Window

    with Window(f"Ludus: {' against '.join(exhibition.sides)}") as window:
        play_in_window(
            exhibition,
            None,
            window,
            frames=frames,
            look=look,
            on_outcome=lambda outcome: print_ok(outcome.describe(exhibition.sides)),
        )


def _film(exhibition: "Exhibition", video: Path, look: "Look", *, frames: int | None, wish_hz: float) -> None:
    from ludus.evaluation.playback import film_match

    video.parent.mkdir(parents=True, exist_ok=True)
    progress = ProgressLine("frames", min(frames or 2**31, _pictures(exhibition.env, wish_hz)))
    outcome = film_match(exhibition, video, frames=frames, look=look, wish_hz=wish_hz, progress=progress)
    progress.close()
    if outcome is None:
        print_warning(f"stopped after {exhibition.steps} steps, before the end")
    else:
        print_ok(outcome.describe(exhibition.sides))
    print_ok(f"video written to {video}")


def _pictures(env: "BatchedEnv", wish_hz: float) -> int:
    """Returns how many pictures there are at most."""
    from ludus.evaluation.pace import picture_steps

    steps, parts = picture_steps(env, wish_hz)
    return -(-(env.spec.step_limit or 2**31) // steps) * parts
