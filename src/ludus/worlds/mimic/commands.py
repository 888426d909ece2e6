"""Mimic's own command `ludus motion`: show motion files for the walkers, and write the built-in gait as one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.console import echo, print_json, print_ok, print_table
from ludus.cli.options import AsJson

if TYPE_CHECKING:
    from ludus.worlds.mimic.model import Walker

motion = typer.Typer(help="Motion files for the walkers of Mimic.", no_args_is_help=True)

_NORMAL = "normal"
Kind = Annotated[str, typer.Option("--walker", help="walker-8 or walker-13.")]
Height = Annotated[float, typer.Option(help="Height of the body, m.")]


@motion.callback()
def _group() -> None:
    pass


@motion.command()
def show(
    file: Annotated[str, typer.Argument(help=f"Motion file (.csv or .npz), or {_NORMAL} for the built-in gait.")],
    out: Annotated[Path | None, typer.Option(help="Draw angles and stick figures into this PNG file.")] = None,
    walker: Kind = "walker-8",
    height: Height = 1.75,
    json: AsJson = False,
) -> None:
    """Check a motion and tell its strides, speed and angles; with --out draw it."""
    from ludus.worlds.mimic.motion.export import normal_motion
    from ludus.worlds.mimic.motion.motion import load_motion
    from ludus.worlds.mimic.motion.reference import summarise

    body = _walker(walker, height)
    loaded = normal_motion(body, 1.25, 100.0) if file == _NORMAL else load_motion(Path(file))
    summary = summarise(loaded, body)
    if out is not None:
        from ludus.worlds.mimic.motion.plot import draw_motion

        draw_motion(loaded, body, out)
        summary["picture"] = str(out)
    if json:
        print_json(summary)
        return
    _tell(summary)
    if out is not None:
        print_ok(f"picture written to {out}")


@motion.command()
def export(
    file: Annotated[Path, typer.Argument(help="File to write, .csv or .npz.")],
    speed: Annotated[float, typer.Option(help="Speed of walking, m/s.")] = 1.25,
    rate: Annotated[float, typer.Option(help="Frames a second.")] = 100.0,
    walker: Kind = "walker-8",
    height: Height = 1.75,
    velocities: Annotated[bool, typer.Option("--velocities", help="Write velocities too.")] = False,
) -> None:
    """Write the built-in gait as a motion file: an example of the format."""
    from ludus.worlds.mimic.motion.export import export_gait

    frames = export_gait(file, _walker(walker, height), speed, rate, velocities=velocities)
    print_ok(f"{frames} frames of the normal gait at {speed:g} m/s written to {file}")


def _walker(kind: str, height_m: float) -> "Walker":
    """Make the body that walks, as heavy for its height as the default one."""
    from ludus.envs.settings import read_settings
    from ludus.worlds.mimic.config import MimicConfig
    from ludus.worlds.mimic.model import make_walker

    usual = MimicConfig()
    mass_kg = usual.mass_kg * (height_m / usual.height_m) ** 2
    settings = {"walker": kind, "height_m": height_m, "mass_kg": mass_kg}
    return make_walker(read_settings(MimicConfig, settings, "mimic-v1"))


def _tell(summary: dict[str, Any]) -> None:
    low, high = summary["speed_range_m_s"]
    rows = [
        ("source", summary["source"]),
        ("frames", f"{summary['frames']} at {summary['rate_hz']:g} Hz, {summary['duration_s']:.2f} s"),
        ("strides", str(summary["strides"])),
        ("period", f"{summary['period_s']:.3f} s, deviation {summary['period_spread_s']:.3f} s"),
        ("cadence", f"{summary['cadence_steps_min']:.1f} steps a minute"),
        ("stride length", f"{summary['stride_length_m']:.2f} m on a body of {summary['body_height_m']:g} m"),
        ("natural speed", f"{summary['natural_speed_m_s']:.2f} m/s, can be followed at {low:.2f} to {high:.2f}"),
    ]
    print_table(("motion", ""), rows)
    echo()
    keys = ("lowest_deg", "highest_deg", "range_deg", "spread_deg")
    print_table(
        ("joint", *keys),
        [(name, *(f"{angles[key]:{len(key)}.1f}" for key in keys)) for name, angles in summary["joints"].items()],
    )
    for note in summary["notes"]:
        echo(f"note: {note}")
