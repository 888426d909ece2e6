"""`ludus analyze`: what an agent knows of its opponent's strategy, how soon, and whether that wins matches."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ludus.cli.console import ShareLine, print_ok, print_warning, show_table
from ludus.cli.options import AsJson, Device, Seed
from ludus.cli.plugins import Plugin, load_plugins
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.core.intervals import Interval
    from ludus.evaluation.strategy_ablation import Ablation
    from ludus.evaluation.strategy_analysis import Analysis

FILE = "analysis.json"
_FOLDER = "analysis"
_KINDS = {"trained": "agent's {features}", "untrained": "same, untrained", "observation": "current frame"}
_SECONDS_SHOWN = 7  # columns of the table over time


def analyze(
    agent: Annotated[str, typer.Argument(help="Folder of a run, whose best agent is meant, or of a checkpoint.")],
    matches: Annotated[int, typer.Option(min=3, help="Matches against each style, and again for each ablation.")] = 40,
    out: Annotated[
        Path | None, typer.Option(help="Folder for pictures and analysis.json; RUN/analysis, or ./analysis.")
    ] = None,
    features: Annotated[
        Literal["latent", "memory"],
        typer.Option(help="What is analysed: the strategy encoder's latent, or the LSTM's or GRU's memory."),
    ] = "latent",
    against: Annotated[
        list[str] | None,
        typer.Option(help="Bot whose style shall be told apart; repeat it for several. All if left out."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of every match that are looked at.")] = 20.0,
    ablation: Annotated[
        bool, typer.Option("--ablation/--no-ablation", help="Play with the latent zeroed and shuffled, too.")
    ] = True,
    seed: Seed = 0,
    device: Device = "auto",
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Find out what an agent knows of its opponent's strategy: probes, maps, attention, drift, ablation."""
    load_plugins(plugin)
    from ludus.envs.registry import place_for
    from ludus.evaluation.contenders import load_agent
    from ludus.evaluation.strategy_analysis import analyse
    from ludus.evaluation.strategy_pictures import draw_analysis

    loaded = load_agent(agent)
    place = place_for(device, loaded.spec.id)
    if place != "cpu":
        loaded = load_agent(agent, place)
    line = ShareLine("analysis")
    analysis = analyse(
        loaded,
        against or None,
        matches=matches,
        seconds=seconds,
        features=features,
        ablation=ablation,
        seed=seed,
        progress=line.tell,
    )
    line.close()
    folder = _make_folder(out, agent)
    pictures = draw_analysis(analysis, folder)
    asked = {"agent": agent, "seed": seed, "device": place, "pictures": [str(picture) for picture in pictures]}
    text = json_format.dumps(asked | analysis.as_json(), indent=2)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    if json:
        typer.echo(text)
        return
    _show(analysis, agent)
    for note in analysis.notes:
        print_warning(note)
    print_ok(f"{len(pictures)} pictures and {FILE} in {folder}, {analysis.seconds:.0f} s on {place}")


def _show(analysis: "Analysis", agent: str) -> None:
    """Prints the tables: probes, accuracy over time, drift in a line, ablation."""
    names = {name: title.format(features=analysis.features) for name, title in _KINDS.items()}
    chance = analysis.probes["trained"].chance
    rows = [
        [
            names[kind],
            _percent(probe.frames),
            _percent(probe.matches),
            f"{analysis.separations[kind].silhouette:.2f}",
            _number(analysis.separations[kind].between_within),
        ]
        for kind, probe in analysis.probes.items()
    ]
    even = analysis.separations["trained"].between_within_by_chance
    rows.append(["chance", f"{100 * chance:.1f}", f"{100 * chance:.1f}", "0.00", f"{even:.2f}"])
    header = ("probe of", "frames named right, %", "matches, %", "silhouette", "between/within")
    styles = analysis.recording.styles
    title = f"{agent}: {len(styles)} styles, {analysis.matches} matches each, held out by match"
    show_table(header, rows, title=title)
    times_s = analysis.recording.times_s
    shown = sorted({round(i * (len(times_s) - 1) / (_SECONDS_SHOWN - 1)) for i in range(_SECONDS_SHOWN)})
    over_time = [
        [names[kind], *(f"{100 * probe.by_time[index].estimate:.1f}" for index in shown)]
        for kind, probe in analysis.probes.items()
    ]
    typer.echo("")
    show_table(("named right, %", *(f"{times_s[index]:.1f} s" for index in shown)), over_time)
    if analysis.drift is not None:
        drift = analysis.drift
        typer.echo(
            f"\ndrift over {drift.switches} switches: {drift.settled.estimate:.3f} deviations beyond wandering "
            f"({drift.settled.low:.3f} to {drift.settled.high:.3f}), time constant {_seconds(drift.time_constant_s)}; "
            f"the probe follows with {_seconds(drift.probe_time_constant_s)}"
        )
    if analysis.ablation is not None:
        typer.echo("")
        _show_ablation(analysis.ablation)


def _show_ablation(ablation: "Ablation") -> None:
    from ludus.evaluation.strategy_ablation import CONDITIONS

    form = _percent if ablation.score == "win_rate" else _plain_interval
    unit = "won %" if ablation.score == "win_rate" else "return"
    first, *others = CONDITIONS
    header = ("opponent", f"{unit} {first}", *others, *(f"if {name}" for name in others))
    rows = [
        [
            row.opponent or "all games",
            *(form(row.scores[name]) for name in CONDITIONS),
            *(row.verdict(name) for name in others),
        ]
        for row in (*ablation.rows, ablation.mean)
    ]
    show_table(header, rows)


def _percent(interval: "Interval") -> str:
    value, low, high = (100 * part for part in interval)
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def _plain_interval(interval: "Interval") -> str:
    return f"{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"


def _make_folder(out: Path | None, agent: str) -> Path:
    """Returns the folder for everything; never one inside a checkpoint, whose files are all accounted for."""
    run = Path(agent)
    folder = out or (run / _FOLDER if (run / "checkpoints").is_dir() else Path(_FOLDER))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {folder} cannot be made: {error.strerror}; name another folder") from error
    return folder
