"""`ludus bench`: measures how fast things are on this machine."""

import json as json_format
from typing import Annotated, Any

import typer

from ludus.cli.console import print_table
from ludus.cli.options import AsJson

bench = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True, rich_markup_mode=None)


@bench.callback()
def _group() -> None:
    pass


@bench.command()
def sim(
    world: Annotated[str, typer.Argument(help="World to measure, such as brawl.")],
    games: Annotated[int, typer.Option(min=1, help="Games in the batch.")] = 4096,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="Host threads on a CPU; all cores if left out.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time to measure for.")] = 5.0,
    json: AsJson = False,
) -> None:
    """Measure steps a second of a world, beside a simulator of others in the same run."""
    from ludus.evaluation.bench_sim import run_sim_bench

    measured = run_sim_bench(world, games, device, threads, seconds)
    if json:
        typer.echo(json_format.dumps(measured, indent=2))
    else:
        print_table(("measure", "value"), [(name, _readable(value)) for name, value in measured.items()])


@bench.command()
def learn(
    world: Annotated[str, typer.Argument(help="brawl, or a world of one seat such as mimic.")] = "brawl",
    device: Annotated[str, typer.Option(help="Device to learn brawl on: cpu, cuda or cuda:N.")] = "cpu",
    repeats: Annotated[int, typer.Option(min=1, help="Iterations of each kind that are timed.")] = 3,
    no_peers: Annotated[bool, typer.Option("--no-peers", help="Leave Stable-Baselines3 and sb3-contrib out.")] = False,
    json: AsJson = False,
) -> None:
    """Measure env steps a second of learning, beside Stable-Baselines3 and the machine's limit."""
    from ludus.training.bench_learn import run_learn_bench, run_world_learn_bench

    if world.partition("-v")[0] == "brawl":
        measured = run_learn_bench(device, repeats, peers=not no_peers)
    else:
        measured = run_world_learn_bench(world, repeats, peers=not no_peers)
    if json:
        typer.echo(json_format.dumps(measured, indent=2))
    else:
        print_table(("measure", "value"), [(name, _readable(value)) for name, value in measured.items()])


@bench.command()
def vision(
    game: Annotated[str, typer.Option(help="Game to measure: embedded or micropolis.")] = "embedded",
    seconds: Annotated[float, typer.Option(min=0.1, help="Time to measure for.")] = 6.0,
    json: AsJson = False,
) -> None:
    """Measure City's perception: pictures a second, milliseconds a stage, steps a second of one game."""
    from ludus.envs.city.bench_vision import run_vision_bench

    measured = run_vision_bench(game, seconds)
    if json:
        typer.echo(json_format.dumps(measured, indent=2))
    else:
        print_table(("measure", "value"), [(name, _readable(value)) for name, value in measured.items()])


def _readable(value: Any) -> str:  # noqa: ANN401 - whatever was measured
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "all" if value is None else str(value)
