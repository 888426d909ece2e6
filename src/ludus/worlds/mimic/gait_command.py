"""Mimic's own command `ludus mimic gait`: how an agent walks, compared with people."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import ShareLine, echo, print_ok, show_table
from ludus.cli.options import AsJson, Seed, find_latest
from ludus.core.files import make_folder, write_text_atomic

if TYPE_CHECKING:
    from ludus.worlds.mimic.gait_report import GaitReport

_FOLDER = "gait"


def gait(
    agent: Annotated[
        str | None,
        Argument(
            help="Name, folder or file of an agent of Mimic.",
            show_default="the newest run, or the shipped walker",
            autocompletion=complete_agent,
        ),
    ] = None,
    walks: Annotated[int, Option(min=1, max=1000, help="Walks, and pushed walks per direction and impulse.")] = 20,
    seconds: Annotated[float, Option(min=3.0, max=3600.0, help="Length of a walk; its first 2 s are left out.")] = 15.0,
    speed: Annotated[
        float | None, Option(min=0.1, max=1.8, help="Desired speed, m/s.", show_default="all speeds of its training")
    ] = None,
    pushes: Annotated[bool, Option("--pushes/--no-pushes", help="Also push walks, harder and harder.")] = True,
    out: Annotated[
        Path | None, Option(help="Folder for the page and gait.json.", show_default="RUN/gait, or ./gait")
    ] = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Measure how a walker walks: symmetry, clearance, joint angles against those of people, recovery from pushes."""
    from ludus.evaluation.players import load_agent, short_name
    from ludus.worlds.mimic.gait_report import analyse_gait, write_page
    from ludus.worlds.mimic.play import default_agent

    latest = find_latest() if agent is None else None
    name = agent or (str(latest) if latest is not None else default_agent())
    loaded = load_agent(name)
    line = ShareLine("gait")
    report = analyse_gait(
        loaded, short_name(name), walks=walks, seconds=seconds, speed_m_s=speed, pushes=pushes, seed=seed,
        progress=line.tell,
    )  # fmt: skip
    line.close()
    run = Path(name)
    folder = out or (run / _FOLDER if (run / "checkpoints").is_dir() else Path(_FOLDER))
    make_folder(folder)
    text = json_format.dumps({"seed": seed} | report.as_json(), indent=1)
    write_text_atomic(folder / "gait.json", text + "\n")
    write_page(report, folder / "gait.html")
    if json:
        echo(text)
        return
    _show(report)
    print_ok(f"gait.json and gait.html in {folder}, {report.seconds:.0f} s; open {folder / 'gait.html'}")


def _show(report: "GaitReport") -> None:
    """Print the tables."""
    found = report.as_json()
    rows = [[name, _text(each["value"]), each["unit"], each["usual"] or ""] for name, each in found["numbers"].items()]
    title = f"{report.agent}: {report.walks} walks, {report.fallen} ended in a fall"
    show_table(("number", "mean", "unit", "usual in people"), rows, title=title)
    echo()
    reference = {f"reference_{kind}": each for kind, each in found["reference"]["distances"].items()}
    joints = [
        [joint, _text(each["rms_deg"]), f"{100 * each['share_within']:.0f}", f"{100 * each['share_within_two']:.0f}",
         _text(each["lag_percent"]), _text(each["rms_without_lag_deg"])]
        for joint, each in (found["distances"] | reference).items()
    ]  # fmt: skip
    header = ("joint", "off people's mean, degrees", "within 1 SD, %", "within 2 SD, %", "later, %", "without that")
    show_table(header, joints)
    echo()
    sides = [
        [kind, _text(each and each["difference_deg"]), _text(each and each["correlation"])]
        for kind, each in found["symmetry"].items()
    ]
    show_table(("joint", "left and right differ, degrees", "correlation"), sides)
    if not report.recovery:
        return
    echo()
    columns = ("pushed", *(f"{impulse:g} N s" for impulse in report.recovery[0].impulses_ns), "half survive, N s")
    pushed = [
        [each.direction, *(_percent(share.estimate) for share in each.survived), _text(each.half_ns)]
        for each in report.recovery
    ]
    show_table(columns, pushed, title="walks that survive a push, %")


def _text(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3g}"


def _percent(share: float) -> str:
    return "n/a" if share != share else f"{100.0 * share:.0f}"
