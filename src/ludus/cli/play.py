"""`ludus play`: a person plays a world in a window, against a scripted player or an agent."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from ludus.cli.console import print_ok
from ludus.core.errors import ConfigError


def play(
    world: Annotated[str, typer.Argument(help="World to play; brawl can be played with a keyboard.")],
    against: Annotated[str, typer.Option(help="Bot to play against, or folder or file of an agent.")] = "aggressive",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the match; drawn if left out.")] = None,
    delay: Annotated[int | None, typer.Option(min=0, help="Reaction delay of the bot in frames.")] = None,
    noise: Annotated[float | None, typer.Option(min=0, max=1, help="Share of random keys of the bot.")] = None,
    mirrored: Annotated[bool, typer.Option("--mirrored", help="Show the stage in a mirror.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, typer.Option(help="Write the last match to this replay file.")] = None,
    frames: Annotated[int | None, typer.Option(min=1, help="End after this many pictures.")] = None,
) -> None:
    """Play a world in real time: WASD and Space move, J K L H G act, P pauses, R restarts, Esc quits."""
    from ludus.envs.brawl.controls import CONTROLS, KEY_LINES
    from ludus.envs.brawl.env import BrawlEnv
    from ludus.envs.registry import make_env
    from ludus.evaluation.contenders import find_contender, is_bot
    from ludus.evaluation.exhibition import Exhibition
    from ludus.evaluation.playback import play_in_window
    from ludus.evaluation.players import KeyboardPlayer
    from ludus.evaluation.window import Window

    chosen = secrets.randbelow(2**31) if seed is None else seed
    with make_env(world, seed=chosen, config={"mirrored": True} if mirrored else None) as env:
        if not isinstance(env, BrawlEnv):
            raise ConfigError(f"{env.spec.id} cannot be played with a keyboard; valid: brawl")
        person = KeyboardPlayer(env, 0)
        if Path(against).exists() and not is_bot(against, env) and (delay, noise) != (None, None):
            raise ConfigError(f"--delay and --noise are for bots; leave them out to play against the agent {against}")
        opponent = find_contender(bot_with(against, delay, noise), env)
        exhibition = Exhibition(env, (person, opponent.sit(env, 1, seed=chosen)))
        for control in CONTROLS:
            typer.echo(f"  {control.name.upper():5}  {control.meaning}")
        typer.echo(f"  P pause, R new match, Esc quit; seed {chosen}")
        with Window(f"Ludus: {' against '.join(exhibition.names)}") as window:
            play_in_window(
                exhibition,
                person,
                window,
                key_lines=KEY_LINES,
                frames=frames,
                debug=debug,
                on_outcome=lambda outcome: print_ok(outcome.describe(exhibition.names)),
            )
        recorded = exhibition.replay()
        if record is not None and recorded is not None:
            recorded.save(record)
            print_ok(f"replay of {recorded.steps} frames written to {record}")


def bot_with(name: str, delay: int | None, noise: float | None) -> str:
    """Returns a bot's name with settings added to it: `aggressive` and a delay give `aggressive:delay=8`."""
    settings = [f"{key}={value}" for key, value in (("delay", delay), ("noise", noise)) if value is not None]
    if not settings:
        return name
    return f"{name}{',' if ':' in name else ':'}{','.join(settings)}"
