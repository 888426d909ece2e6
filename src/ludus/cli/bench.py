"""`ludus bench`: measure how fast things are on this machine."""

from collections.abc import Mapping
from typing import Annotated, Any

from typer import Argument, Option, Typer

from ludus.cli.console import print_json, print_table
from ludus.cli.options import AsJson

bench = Typer(help="Measure speed on this machine.", no_args_is_help=True)


@bench.callback()
def _group() -> None:
    pass


@bench.command()
def sim(
    world: Annotated[str, Argument(help="World to measure, such as brawl.")],
    games: Annotated[int, Option(min=1, help="Games in the batch.")] = 4096,
    device: Annotated[str, Option(help="Device: cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int | None, Option(min=1, help="Host threads on a CPU; all cores by default.")] = None,
    seconds: Annotated[float, Option(min=0.1, help="Seconds to measure.")] = 5.0,
    json: AsJson = False,
) -> None:
    """Measure the steps per second of a world, and of a reference simulator in the same run."""
    from ludus.evaluation.bench_sim import run_sim_bench

    print_measured(run_sim_bench(world, games, device, threads, seconds), json=json)


@bench.command()
def learn(
    world: Annotated[
        str | None, Argument(help="World to learn.", show_default="the first that declares learners to measure")
    ] = None,
    device: Annotated[str, Option(help="Device of the learners that a world declares: cpu, cuda or cuda:N.")] = "cpu",
    repeats: Annotated[int, Option(min=1, help="Iterations of each kind that are timed.")] = 3,
    no_peers: Annotated[bool, Option("--no-peers", help="Skip Stable-Baselines3 and sb3-contrib.")] = False,
    json: AsJson = False,
) -> None:
    """Measure env steps per second of training, beside Stable-Baselines3 and the machine's limit."""
    from ludus.envs.world import find_world, registered_envs
    from ludus.envs.world_parts import bench_of
    from ludus.training.bench_learn import run_learn_bench, run_world_learn_bench

    name = find_world(world or next(env_id for env_id in registered_envs() if bench_of(env_id).learn)).name
    if bench_of(name).learn:
        measured = run_learn_bench(name, device, repeats, peers=not no_peers)
    else:
        measured = run_world_learn_bench(name, repeats, peers=not no_peers)
    print_measured(measured, json=json)


def print_measured(measured: Mapping[str, Any], *, json: bool) -> None:
    """Print what was measured as a table, or as JSON."""
    if json:
        print_json(dict(measured))
    else:
        print_table(("measure", "value"), [(name, _readable(value)) for name, value in measured.items()])


def _readable(value: Any) -> str:  # noqa: ANN401 - whatever was measured
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "all" if value is None else str(value)
