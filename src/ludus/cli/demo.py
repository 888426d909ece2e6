"""`ludus demo`: two scripted players fight, and the match becomes a video."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ludus.cli.console import ProgressLine, print_ok, print_warning
from ludus.core.errors import ConfigError


def demo(
    world: Annotated[str, typer.Argument(help="World to show, such as brawl.")] = "brawl",
    left: Annotated[str, typer.Option(help="Bot that starts on the left.")] = "aggressive",
    right: Annotated[str, typer.Option(help="Bot that starts on the right.")] = "edge-guarder",
    video: Annotated[Path, typer.Option(help="Video to write, .mp4 or .gif.")] = Path("demo.mp4"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the match.")] = 0,
    frames: Annotated[int | None, typer.Option(min=1, help="Stop after this many frames.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, typer.Option(help="Also write the match to this replay file.")] = None,
) -> None:
    """Let two bots play a match and write it as a video."""
    from ludus.envs.registry import make_env
    from ludus.evaluation.exhibition import Exhibition
    from ludus.evaluation.playback import film_match
    from ludus.evaluation.players import BotPlayer

    with make_env(world, seed=seed, config=_left_first(world, seed)) as env:
        if env.spec.seats != 2:
            raise ConfigError(f"a demo is for two players; {env.spec.id} has {env.spec.seats} seats")
        players = [BotPlayer(env, seat, bot) for seat, bot in enumerate((left, right))]
        exhibition = Exhibition(env, players)
        video.parent.mkdir(parents=True, exist_ok=True)
        limit = min(frames or 2**31, env.spec.step_limit or 2**31)
        progress = ProgressLine("frames", limit)
        outcome = film_match(exhibition, video, frames=frames, debug=debug, progress=progress)
        progress.close()
        if outcome is None:
            print_warning(f"stopped after {exhibition.steps} frames, before the match was decided")
        else:
            print_ok(outcome.describe(exhibition.names))
        print_ok(f"video written to {video}")
        recorded = exhibition.replay()
        if record is not None and recorded is not None:
            record.parent.mkdir(parents=True, exist_ok=True)
            recorded.save(record)
            print_ok(f"replay of {recorded.steps} frames written to {record}")


def _left_first(world: str, seed: int) -> dict[str, Any]:
    """Settings with which seat 0 starts on the left; which side it draws depends on the seed."""
    from ludus.envs.brawl.env import BrawlEnv
    from ludus.envs.registry import make_env

    with make_env(world, seed=seed) as env:
        starts_right = isinstance(env, BrawlEnv) and env.view(0).players[0].x > 0.0
    return {"swap_sides": True} if starts_right else {}
