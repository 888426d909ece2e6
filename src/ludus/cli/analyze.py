"""`ludus analyze`: what an agent knows of its opponent's strategy, how soon, and whether that wins matches."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from ludus.cli.console import ShareLine, echo, print_ok, print_warning, show_table
from ludus.cli.options import AgentName, AsJson, Device, Names, Plugin, Seed, load_agent_on, load_plugins
from ludus.core.files import make_folder, write_text_atomic

if TYPE_CHECKING:
    from ludus.analysis.ablation import Ablation
    from ludus.analysis.summary import Analysis
    from ludus.core.intervals import Interval

FILE = "analysis.json"
_FOLDER = "analysis"
_KINDS = {"trained": "agent's {features}", "untrained": "same, untrained", "observation": "current frame"}
_SECONDS_SHOWN = 7  # columns of the table over time


def analyze(
    agent: AgentName = None,
    matches: Annotated[int, Option(min=3, help="Matches against each style, and again for each ablation.")] = 40,
    out: Annotated[
        Path | None, Option(help="Folder for page, pictures and analysis.json; RUN/analysis, or ./analysis.")
    ] = None,
    features: Annotated[
        Literal["latent", "memory"],
        Option(help="What is analysed: the strategy encoder's latent, or the LSTM's memory."),
    ] = "latent",
    against: Annotated[
        Names,
        Option(help="Bot or agent whose style to distinguish; may be repeated. All bots by default."),
    ] = None,
    seconds: Annotated[float, Option(min=0.1, help="Seconds of every match to analyse.")] = 20.0,
    ablation: Annotated[
        bool, Option("--ablation/--no-ablation", help="Also play with the latent zeroed and shuffled.")
    ] = True,
    seed: Seed = 0,
    device: Device = "auto",
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Analyse what an agent knows about its opponent: who it thinks it is fighting, how sure, what it does with it."""
    load_plugins(plugin)
    from ludus.analysis.figures import draw_analysis
    from ludus.analysis.summary import analyse
    from ludus.reports.analysis_page import PAGE, write_analysis_page

    agent, loaded, place = load_agent_on(agent, device)
    line = ShareLine("analysis")
    analysis = analyse(
        loaded, against or None, matches=matches, seconds=seconds, features=features, ablation=ablation,
        seed=seed, progress=line.tell,
    )  # fmt: skip
    line.close()
    folder = _make_folder(out, agent)
    pictures = draw_analysis(analysis, folder)
    asked = {"agent": agent, "seed": seed, "device": place, "pictures": [str(picture) for picture in pictures]}
    text = json_format.dumps(asked | analysis.as_json(), indent=2)
    write_text_atomic(folder / FILE, text + "\n")
    page = write_analysis_page(folder / FILE, folder / PAGE)
    if json:
        echo(text)
        return
    _show(analysis, agent)
    for note in analysis.notes:
        print_warning(note)
    print_ok(f"{len(pictures)} pictures and {FILE} in {folder}, {analysis.seconds:.0f} s on {place}; open {page}")


def _show(analysis: "Analysis", agent: str) -> None:
    """Print the tables: probes, accuracy over time, drift in a line, ablation, verdict."""
    from ludus.analysis.verdict import judge

    names = {name: title.format(features=analysis.features) for name, title in _KINDS.items()}
    chance = f"{100 * analysis.probes['trained'].chance:.1f}"
    rows = []
    for kind, probe in analysis.probes.items():
        apart = analysis.separations[kind]
        ratio = "" if apart.between_within is None else f"{apart.between_within:.2f}"
        rows.append([names[kind], _percent(probe.frames), _percent(probe.matches), f"{apart.silhouette:.2f}", ratio])
    even = analysis.separations["trained"].between_within_by_chance
    rows.append(["chance", chance, chance, "0.00", f"{even:.2f}"])
    header = ("probe of", "frames named right, %", "matches, %", "silhouette", "between/within")
    styles = len(analysis.recording.styles)
    title = f"{agent}: {styles} styles, {analysis.matches} matches each, held out by match"
    show_table(header, rows, title=title)
    times_s = analysis.recording.times_s
    shown = sorted({round(i * (len(times_s) - 1) / (_SECONDS_SHOWN - 1)) for i in range(_SECONDS_SHOWN)})
    over_time = [
        [names[kind], *(f"{100 * probe.by_time[index].estimate:.1f}" for index in shown)]
        for kind, probe in analysis.probes.items()
    ]
    echo()
    show_table(("named right, %", *(f"{times_s[index]:.1f} s" for index in shown)), over_time)
    if analysis.drift is not None:
        drift = analysis.drift
        echo(
            f"\ndrift over {drift.switches} switches: {drift.settled.estimate:.3f} deviations beyond wandering "
            f"({drift.settled.low:.3f} to {drift.settled.high:.3f}), time constant {_seconds(drift.time_constant_s)}; "
            f"the probe follows with {_seconds(drift.probe_time_constant_s)}"
        )
    if analysis.ablation is not None:
        echo()
        _show_ablation(analysis.ablation)
    echo()
    show_table(("question", "answer"), [[finding.question, finding.answer] for finding in judge(analysis)])


def _show_ablation(ablation: "Ablation") -> None:
    from ludus.analysis.ablation import CONDITIONS

    form, unit = (_percent, "won %") if ablation.score == "win_rate" else (_plain_interval, "return")
    first, *others = CONDITIONS
    header = ("opponent", f"{unit} {first}", *others, *(f"if {name}" for name in others))
    rows = []
    for row in (*ablation.rows, ablation.mean):
        scores, verdicts = (form(row.scores[name]) for name in CONDITIONS), map(row.verdict, others)
        rows.append([row.opponent or "all games", *scores, *verdicts])
    show_table(header, rows)


def _percent(interval: "Interval") -> str:
    value, low, high = (100 * part for part in interval)
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def _plain_interval(interval: "Interval") -> str:
    return f"{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"


def _make_folder(out: Path | None, agent: str) -> Path:
    """Return the folder for everything; never one inside a checkpoint, whose files are all accounted for."""
    run = Path(agent)
    folder = out or (run / _FOLDER if (run / "checkpoints").is_dir() else Path(_FOLDER))
    make_folder(folder)
    return folder
