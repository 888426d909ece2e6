"""`ludus replay`: shows a recorded game in a window, writes it as a video, or only checks it."""

from pathlib import Path
from typing import Annotated

import typer

from ludus.cli.console import ProgressLine, print_ok
from ludus.cli.options import Fps, View
from ludus.core.errors import ConfigError


def replay(
    file: Annotated[Path, typer.Argument(help="Replay file.")],
    video: Annotated[
        Path | None, typer.Option(help="Write a video (.mp4 or .gif) instead of opening a window.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    view: View = None,
    fps: Fps = 30.0,
    verify: Annotated[bool, typer.Option("--verify", help="Only check that the game goes as recorded.")] = False,
    move_table: Annotated[
        Path | None, typer.Option(help="The move table, if the game was recorded with one of your own.")
    ] = None,
) -> None:
    """Play a recorded game again, in a window or into a video; it is checked on the way."""
    from ludus.envs.replay import Replay, verify_replay

    if verify and video is not None:
        raise ConfigError("--verify shows nothing; leave --video or --verify out")
    recorded = Replay.load(file)
    files = {} if move_table is None else {"move_table": move_table}
    players = (" against " if len(recorded.players) == 2 else ", ").join(recorded.players)
    said = f"{recorded.world_id}, {players or 'unnamed players'}, {recorded.steps} steps"
    if verify:
        verify_replay(recorded, files)
        print_ok(f"{file} goes as recorded: {said}")
    elif video is not None:
        from ludus.evaluation.painting import Look
        from ludus.evaluation.playback import film_replay

        video.parent.mkdir(parents=True, exist_ok=True)
        progress = ProgressLine("frames", recorded.steps)
        frames = film_replay(recorded, video, look=Look(debug, view), wish_hz=fps, files=files, progress=progress)
        progress.close()
        print_ok(f"{frames} frames written to {video}: {said}")
    else:
        from ludus.evaluation.painting import Look
        from ludus.evaluation.playback import show_replay
        from ludus.evaluation.window import Window

        with Window(f"Ludus: {file.name}") as window:
            whole = show_replay(recorded, window, look=Look(debug, view), files=files)
        print_ok(f"{file} {'goes as recorded' if whole else 'was closed before its end'}: {said}")
