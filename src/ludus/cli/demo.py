"""`ludus demo`: an agent or a scripted player fights another, in a window or as a video."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import ProgressLine, print_ok, print_warning
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.evaluation.exhibition import Exhibition

_LEFT_BOT = "aggressive"


def demo(
    player: Annotated[
        str, typer.Argument(metavar="AGENT_OR_WORLD", help="Folder of an agent, or a world to show bots in.")
    ] = "brawl",
    left: Annotated[
        str | None, typer.Option(help=f"Who starts on the left, if not the agent: bot or folder. [{_LEFT_BOT}]")
    ] = None,
    right: Annotated[
        str, typer.Option("--against", "--right", help="Who starts on the right: bot, or folder of an agent.")
    ] = "edge-guarder",
    video: Annotated[Path | None, typer.Option(help="Video to write, .mp4 or .gif. [demo.mp4]")] = None,
    window: Annotated[bool, typer.Option("--window", help="Show it in a window instead.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the match.")] = 0,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Agents take their most likely action instead of drawing one.")
    ] = False,
    frames: Annotated[int | None, typer.Option(min=1, help="Stop after this many frames.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, typer.Option(help="Also write the match to this replay file.")] = None,
) -> None:
    """Show a match of an agent against a bot or another agent, or of two bots."""
    from ludus.evaluation.contenders import Contender, find_contender, find_world
    from ludus.evaluation.exhibition import Exhibition, make_stage

    if window and video is not None:
        raise ConfigError(f"--window shows the match and writes no video; leave --video {video} out, or --window")
    world, agent = find_world(player)
    if agent is not None and left is not None:
        raise ConfigError(f"the agent {player} starts on the left; leave --left {left} out, or name a world instead")
    with make_stage(world, seed=seed, left_first=True) as env:
        if env.spec.seats != 2:
            raise ConfigError(f"a demo is for two players; {env.spec.id} has {env.spec.seats} seats")
        if agent is not None:
            agent.check_world(env.spec)
        first = find_contender(left or _LEFT_BOT, env) if agent is None else Contender(player, agent.policy)
        contenders = (first, find_contender(right, env))
        players = [
            contender.sit(env, seat, seed=seed + seat, deterministic=deterministic)
            for seat, contender in enumerate(contenders)
        ]
        exhibition = Exhibition(env, players)
        if window:
            _show(exhibition, frames=frames, debug=debug)
        else:
            _film(exhibition, video or Path("demo.mp4"), frames=frames, debug=debug)
        recorded = exhibition.replay()
        if record is not None and recorded is not None:
            record.parent.mkdir(parents=True, exist_ok=True)
            recorded.save(record)
            print_ok(f"replay of {recorded.steps} frames written to {record}")


def _show(exhibition: "Exhibition", *, frames: int | None, debug: bool) -> None:
    from ludus.evaluation.playback import play_in_window
    from ludus.evaluation.window import Window

    with Window(f"Ludus: {' against '.join(exhibition.names)}") as window:
        play_in_window(
            exhibition,
            None,
            window,
            frames=frames,
            debug=debug,
            on_outcome=lambda outcome: print_ok(outcome.describe(exhibition.names)),
        )


def _film(exhibition: "Exhibition", video: Path, *, frames: int | None, debug: bool) -> None:
    from ludus.evaluation.playback import film_match

    video.parent.mkdir(parents=True, exist_ok=True)
    progress = ProgressLine("frames", min(frames or 2**31, exhibition.env.spec.step_limit or 2**31))
    outcome = film_match(exhibition, video, frames=frames, debug=debug, progress=progress)
    progress.close()
    if outcome is None:
        print_warning(f"stopped after {exhibition.steps} frames, before the match was decided")
    else:
        print_ok(outcome.describe(exhibition.names))
    print_ok(f"video written to {video}")
