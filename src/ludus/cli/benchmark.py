"""`ludus benchmark`: an agent in a suite of matches, against readiness tiers, and beside another agent if wanted."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import ShareLine, echo, print_json, print_ok, print_table, print_verdict, show_table
from ludus.cli.options import (
    Address,
    AgentName,
    AsJson,
    Deterministic,
    Device,
    Games,
    OnRay,
    Plugin,
    Seed,
    check_address,
    load_agent_on,
    load_plugins,
    plugin_paths,
)
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.evaluation.benchmark import Benchmark, Comparison, Judgement, Population, Readiness, RowDifference
    from ludus.evaluation.results import Estimate

EXIT_NOT_READY = 1

# Title -> number, and whether its interval is shown; columns that the world does not have are left out.
_COLUMNS: Mapping[str, tuple[str, bool]] = {
    "won %": ("win_rate", True), "return": ("mean_return", True), "damage ratio": ("damage_ratio", False),
    "knock outs": ("knockouts", False), "stable": ("stable", False), "distance m": ("distance_m", False),
}  # fmt: skip
_SHARES = ("win_rate", "stable", "survived")  # shown in per cent


def benchmark(
    agent: AgentName = None,
    suite: Annotated[
        str, Option(help="Name of a suite of the agent's world, or the path of a YAML file.")
    ] = "standard",
    against: Annotated[
        str | None,
        Option(
            help="Name, folder or file of another agent to compare with in the same suite.",
            autocompletion=complete_agent,
        ),
    ] = None,
    matches: Annotated[int | None, Option(min=1, help="Matches per row; overrides the suite.")] = None,
    require: Annotated[str | None, Option(help="Tier; the exit code is 1 if the agent does not reach it.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    games: Games = 4096,
    deterministic: Deterministic = False,
    ray: OnRay = False,
    address: Address = None,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Play an agent in a suite and print a verdict for every target, and the readiness tier that is reached."""
    check_address(address, ray)
    load_plugins(plugin)
    from ludus.envs.registry import make_env
    from ludus.evaluation.benchmark import compare_benchmarks, run_benchmark
    from ludus.evaluation.players import load_playable_agent
    from ludus.evaluation.suite import find_suite, load_suite

    agent, loaded, place = load_agent_on(agent, device)
    file = find_suite(loaded.spec.id, suite)
    with make_env(loaded.spec.id, 1, place, config=loaded.settings or None) as env:
        chosen = load_suite(file, env)
        others = [] if against is None else [load_playable_agent(against, place)]
        for other in others:
            other.check_world(env.spec)
    if require is not None and require not in chosen.tiers:
        raise ConfigError(f"--require {require}: {file} has no such tier; valid: {', '.join(chosen.tiers) or 'none'}")
    played = []
    run = partial(run_benchmark, suite=chosen, matches=matches, seed=seed, deterministic=deterministic, max_envs=games)
    with ExitStack() as stack:
        if ray:
            from ludus.scale.spread import spread_benchmark, spreading

            stack.enter_context(spreading(address, "ludus benchmark --ray"))
            run = partial(run, play=spread_benchmark(plugin_paths(plugin)))
        for number, player in enumerate([loaded, *others]):
            line = ShareLine("benchmark" if number == 0 else "benchmark of the other")
            played.append(run(player, progress=line.tell))
            line.close()
    comparison = compare_benchmarks(played[0], played[1]) if against is not None else None
    if json:
        asked = {"agent": agent, "suite": suite, "file": str(file), "seed": seed, "device": place}
        document = asked | {"deterministic": deterministic or chosen.deterministic} | played[0].as_json()
        if comparison is not None:
            document["against"] = {"agent": against, **played[1].as_json(), "comparison": comparison.as_json()}
        print_json(document)
    else:
        _show(played[0], f"{agent} in {played[0].world}, suite {suite}")
        if comparison is not None and against is not None:
            _show_comparison(comparison, agent, against)
        count = sum(row.numbers[row.outcome].matches for one in played for row in one.rows)
        print_ok(f"{count} matches in {sum(one.seconds for one in played):.1f} s on {place}")
    readiness = played[0].readiness
    if require is not None and readiness is not None and not readiness.reaches(require):
        raise Exit(EXIT_NOT_READY)


def _show(played: "Benchmark", title: str) -> None:
    names = played.rows[0].numbers
    columns = {title: part for title, part in _COLUMNS.items() if part[0] in names}
    if "won %" in columns or "stable" in columns:
        columns.pop("return", None)
    cells = []
    for row in played.rows:
        values = (_value(name, row.numbers[name], with_interval=ends, unit="") for name, ends in columns.values())
        cells.append([row.row.name, str(row.numbers[row.outcome].matches), *values])
    show_table(("row", "matches", *columns), cells, title=title)
    outcome = played.rows[0].outcome
    echo(f"mean over all rows: {_plain_name(outcome)} {_value(outcome, played.overall, with_interval=True)}")
    if played.population is not None:
        _show_population(played.population)
    if played.readiness is not None:
        _show_readiness(played.readiness)


def _show_population(population: "Population") -> None:
    for name, estimate, note in (
        ("population return", population.mean_return, ""),
        ("within-population exploitability", population.exploitability, f", by {population.exploiter}"),
        ("aggregate", population.aggregate, ": return minus exploitability"),
    ):
        echo(f"{name} {_value('mean_return', estimate, with_interval=True)}{note}")


def _show_readiness(readiness: "Readiness") -> None:
    width = max((len(judgement.row) for judgement in readiness.judgements), default=0)
    echo()
    for judgement in readiness.judgements:
        print_verdict(judgement.word, f"{judgement.row.ljust(width)}  {_sentence(judgement)}")
    echo()
    tier = readiness.next_tier
    if tier is None:
        print_verdict(readiness.word, f"readiness: {readiness.reached}, the highest tier")
        return
    missing = readiness.missing(tier)
    close = sum(tier in each.targets and each.within_reach(tier) for each in missing)
    asked = sum(tier in each.targets for each in readiness.judgements)
    more = f", {close} of them within the interval: more matches may show them met" if close else ""
    said = f"{readiness.reached or 'no tier'}; {tier} misses {len(missing)} of {asked} targets{more}"
    print_verdict(readiness.word, f"readiness: {said}")


def _sentence(judgement: "Judgement") -> str:
    name, missed = judgement.number, judgement.missed
    measured = f"{_plain_name(name)} {_value(name, judgement.estimate, with_interval=True)}"
    reached = f"{judgement.reached} reached" if judgement.reached else "no tier reached"
    if missed is None:
        return f"{measured}: {reached}"
    asks = "asks for" if judgement.more_is_better else "allows"
    target = _number(name, judgement.targets[missed], "%")
    close = ", within the interval" if judgement.within_reach(missed) else ""
    return f"{measured}: {reached}; {missed} {asks} {target}{close}"


def _show_comparison(comparison: "Comparison", first: str, second: str) -> None:
    echo(f"\nfirst: {first}; second: {second}; differences with intervals that hold together with 95 %\n")
    header = ("row", "first", "second", "difference", "verdict on the first", "matches needed")
    # Plain columns on every terminal: a narrow one breaks long lines, and nothing of them is lost.
    print_table(header, [_difference_cells(row) for row in (*comparison.rows, comparison.overall)])
    verdicts = [row.difference.verdict for row in comparison.rows]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    found, now = comparison.overall.difference, comparison.overall.first.matches
    needed = found.matches_needed
    more = f"; to see one of this size takes about {needed:,} matches of each instead of {now:,}" if needed else ""
    unseen = len(verdicts) - better - worse
    echo(f"\nrow by row: better in {better}, worse in {worse}, no difference seen in {unseen}")
    print_ok(f"{first} against {second} over all rows: {found.verdict}{more}")


def _difference_cells(row: "RowDifference") -> Sequence[str]:
    found = row.difference
    low, high = (_number(row.number, end, "", signed=True) for end in (found.low, found.high))
    return (
        row.row if row.number == "win_rate" else f"{row.row}: {_plain_name(row.number)}",
        _number(row.number, row.first.value, ""),
        _number(row.number, row.second.value, ""),
        f"{_number(row.number, found.value, '', signed=True)} ({low} to {high})",
        found.verdict,
        f"{found.matches_needed:,}" if found.matches_needed else "-",
    )


def _value(name: str, estimate: "Estimate", *, with_interval: bool, unit: str = "%") -> str:
    low, high = estimate.interval()
    middle = _number(name, estimate.value, "" if with_interval else unit)
    if not with_interval or estimate.kind == "extreme":
        return _number(name, estimate.value, unit)
    return f"{middle} ({_number(name, low, '')} to {_number(name, high, '')}){_unit(name, unit)}"


def _number(name: str, value: float, unit: str, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{value:{sign}.1%}".removesuffix("%") + _unit(name, unit) if name in _SHARES else f"{value:{sign}.2f}"


def _unit(name: str, unit: str) -> str:
    return f" {unit}" if unit and name in _SHARES else ""


def _plain_name(name: str) -> str:
    return {"win_rate": "won"}.get(name, name.replace("_", " "))
