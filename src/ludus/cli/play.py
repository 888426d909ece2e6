"""`ludus play`: a person plays a world in a window, against a scripted player or an agent."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.console import print_ok
from ludus.cli.options import View
from ludus.cli.play_city import CITY, play_city
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.evaluation.contenders import Contender


def play(
    world: Annotated[str, typer.Argument(help="World to play: brawl or rocket with a keyboard, city with a mouse.")],
    against: Annotated[
        str | None,
        typer.Option(help="Bot to play against, or folder or file of an agent. [brawl: aggressive, rocket: chaser]"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the match; drawn if left out.")] = None,
    delay: Annotated[int | None, typer.Option(min=0, help="Reaction delay of the bot in frames.")] = None,
    noise: Annotated[float | None, typer.Option(min=0, max=1, help="Share of random keys of the bot.")] = None,
    mirrored: Annotated[bool, typer.Option("--mirrored", help="Show the stage in a mirror.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the world as key=value, such as mode=2v2; repeat it.")
    ] = None,
    view: View = None,
    debug: Annotated[bool, typer.Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, typer.Option(help="Write the last match to this replay file.")] = None,
    frames: Annotated[int | None, typer.Option(min=1, help="End after this many pictures.")] = None,
) -> None:
    """Play a world in real time with WASD and Space; P pauses, R restarts, C turns the camera, Esc quits."""
    chosen = secrets.randbelow(2**31) if seed is None else seed
    if world.partition("-v")[0] == CITY:
        unfit = {"--against": against, "--delay": delay, "--noise": noise, "--mirrored": mirrored, "--view": view}
        play_city(chosen, set_ or (), frames, unfit | {"--debug": debug, "--record": record})
        return
    from ludus.envs.registry import make_env
    from ludus.evaluation.contenders import sit_by_team
    from ludus.evaluation.exhibition import Exhibition
    from ludus.evaluation.painting import Look
    from ludus.evaluation.playback import play_in_window
    from ludus.evaluation.players import KeyboardPlayer
    from ludus.evaluation.stage import stage_of
    from ludus.evaluation.window import Window

    stage = stage_of(world)
    words = [*(["mirrored=true"] if mirrored else []), *(set_ or ())]
    opponent, settings = _opponent(world, against, words, delay, noise)
    with make_env(world, seed=chosen, config=settings) as env:
        person = KeyboardPlayer(env, 0)
        others = sit_by_team(env, [opponent] * len(set(env.spec.teams)), seed=chosen)
        exhibition = Exhibition(env, (person, *others[1:]))
        width = max(len(key.name) for key in stage.keys)
        for key in stage.keys:
            typer.echo(f"  {key.name.upper():{width}}  {key.meaning}")
        typer.echo(f"  P pause, R new match, Esc quit; seed {chosen}")
        with Window(f"Ludus: {' against '.join(exhibition.sides)}") as window:
            play_in_window(
                exhibition,
                person,
                window,
                key_lines=stage.key_lines,
                frames=frames,
                look=Look(debug, view or stage.view or None),
                on_outcome=lambda outcome: print_ok(outcome.describe(exhibition.sides)),
            )
        recorded = exhibition.replay()
        if record is not None and recorded is not None:
            recorded.save(record)
            print_ok(f"replay of {recorded.steps} steps written to {record}")


def _opponent(
    world: str, against: str | None, words: list[str], delay: int | None, noise: float | None
) -> "tuple[Contender, dict[str, Any]]":
    """Finds who is played against, and the settings to play with: against an agent, those that it knows."""
    from ludus.envs.registry import make_env
    from ludus.evaluation.contenders import Contender, find_contender, is_bot, load_agent
    from ludus.evaluation.players import KeyboardPlayer
    from ludus.evaluation.stage import shown_settings, stage_of, stage_settings

    stage = stage_of(world)
    settings = stage_settings(world, {**shown_settings(world), **stage.played}, words=words)
    with make_env(world, config=settings) as env:
        KeyboardPlayer(env, 0)  # says so if nobody can play here
        name = against or (stage.bots or env.spec.bots)[0]
        if is_bot(name, env) or not Path(name).exists():
            return find_contender(bot_with(name, delay, noise), env), settings
    if (delay, noise) != (None, None):
        raise ConfigError(f"--delay and --noise are for bots; leave them out to play against the agent {name}")
    agent = load_agent(name)
    settings = stage_settings(world, shown_settings(world, agent.settings), words=words)
    with make_env(world, config=settings) as env:
        agent.check_world(env.spec)
    return Contender(name, agent.policy), settings


def bot_with(name: str, delay: int | None, noise: float | None) -> str:
    """Returns a bot's name with settings added to it: `aggressive` and a delay give `aggressive:delay=8`."""
    settings = [f"{key}={value}" for key, value in (("delay", delay), ("noise", noise)) if value is not None]
    if not settings:
        return name
    return f"{name}{',' if ':' in name else ':'}{','.join(settings)}"
