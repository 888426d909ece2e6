"""Mimic's own command `ludus mimic motion`: import recordings, show motion files, and write built-in ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.console import echo, print_json, print_ok, print_table, print_warning
from ludus.cli.options import AsJson

if TYPE_CHECKING:
    from ludus.worlds.mimic.capture.importing import Imported
    from ludus.worlds.mimic.model import Walker

motion = typer.Typer(help="Motion files for the walkers of Mimic.", no_args_is_help=True)

_FILM_S = 5.0  # of a motion of the package
Kind = Annotated[str, typer.Option("--walker", help="walker-8 or walker-13.")]
Height = Annotated[float, typer.Option(help="Height of the body, m.")]


@motion.callback()
def _group() -> None:
    pass


@motion.command("list")
def list_(json: AsJson = False) -> None:
    """List the motions of the package."""
    from ludus.worlds.mimic.motion.library import ENTRIES

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": entry.summary,
            "speed_m_s": entry.speed_m_s,
            "walkers": ["walker-13"] if entry.needs_rotation else ["walker-8", "walker-13"],
        }
        for name, entry in ENTRIES.items()
    ]
    if json:
        print_json(rows)
        return
    print_table(
        ("motion", "m/s", "what", "walkers", "to imitate"),
        [
            (
                str(row["name"]),
                f"{row['speed_m_s']:g}",
                str(row["summary"]),
                "walker-13" if len(row["walkers"]) == 1 else "all",
                f"world.settings.motion={row['name']}",
            )
            for row in rows
        ],
    )


@motion.command()
def show(
    file: Annotated[str, typer.Argument(help="Motion file (.csv), or a motion of `ludus mimic motion list`.")],
    out: Annotated[Path | None, typer.Option(help="Draw angles and stick figures into this PNG file.")] = None,
    video: Annotated[Path | None, typer.Option(help="Film it, .mp4 or .gif; of a file, its mean stride.")] = None,
    walker: Kind = "walker-8",
    height: Height = 1.75,
    json: AsJson = False,
) -> None:
    """Check a motion and tell its strides, speed and angles; with --out draw it."""
    from ludus.worlds.mimic.motion.library import ENTRIES
    from ludus.worlds.mimic.motion.motion import load_motion
    from ludus.worlds.mimic.motion.reference import summarise

    _check_video(video)
    body = _walker(walker, height)
    if file in ENTRIES:
        _show_library(file, body, out, video, json=json)
        return
    loaded = load_motion(Path(file))
    summary = summarise(loaded, body)
    if out is not None:
        from ludus.worlds.mimic.motion.plot import draw_motion

        draw_motion(loaded, body, out)
        summary["picture"] = str(out)
    if video is not None:
        from ludus.worlds.mimic.capture.film import film_clip
        from ludus.worlds.mimic.motion.reference import clip_of_motion

        film_clip(clip_of_motion(loaded, body), body, video)
        summary["video"] = str(video)
    if json:
        print_json(summary)
        return
    _tell(summary)
    _tell_written(summary)


def _show_library(name: str, body: "Walker", out: Path | None, video: Path | None, *, json: bool) -> None:
    """Show a motion of the package: how it fits the ground and the body, its angles, and pictures."""
    from ludus.worlds.mimic.motion.clip import check_clip, summarise_clip
    from ludus.worlds.mimic.motion.library import library_clip

    clip = library_clip(name, body)
    summary = summarise_clip(clip, check_clip(body, clip))
    if out is not None:
        from ludus.worlds.mimic.motion.plot import draw_clip

        draw_clip(clip, body, out)
        summary["picture"] = str(out)
    if video is not None:
        from ludus.worlds.mimic.capture.film import film_clip

        film_clip(library_clip(name, body, _FILM_S), body, video)
        summary["video"] = str(video)
    if json:
        print_json(summary)
        return
    length = f"{summary['frames']} at {summary['rate_hz']:g} Hz, {summary['duration_s']:.2f} s"
    rows = [("motion", name), ("frames", length), ("speed", f"{summary['speed_m_s']:.2f} m/s")]
    print_table(("motion", ""), rows)
    echo()
    _tell_quality(summary["quality"])
    echo()
    keys = ("lowest_deg", "highest_deg", "range_deg")
    print_table(
        ("joint", *keys),
        [(joint, *(f"{angles[key]:{len(key)}.1f}" for key in keys)) for joint, angles in summary["joints"].items()],
    )
    _tell_written(summary)


def _tell_written(summary: dict[str, Any]) -> None:
    for what in ("picture", "video"):
        if what in summary:
            print_ok(f"{what} written to {summary[what]}")


def _check_video(video: Path | None) -> None:
    """Raise ConfigError before any work is done if a video cannot be written there."""
    if video is not None:
        from ludus.evaluation.video import check_video_path

        check_video_path(video)


@motion.command()
def export(
    file: Annotated[Path, typer.Argument(help="CSV file to write.")],
    name: Annotated[str, typer.Option("--motion", help="A motion of `ludus mimic motion list`.")] = "walk",
    speed: Annotated[
        float | None, typer.Option(help="Another speed than its own, m/s; of walk and walk-fast alone.")
    ] = None,
    walker: Kind = "walker-8",
    height: Height = 1.75,
) -> None:
    """Write a motion of the package as a motion file: an example of the format."""
    from ludus.worlds.mimic.capture.importing import write_clip
    from ludus.worlds.mimic.motion.library import library_clip

    clip = library_clip(name, _walker(walker, height), speed_m_s=speed)
    write_clip(clip, file, f"{name} on {walker} of {height:g} m; flexion is positive")
    print_ok(f"{clip.frames} frames of {name} written to {file}")


@motion.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="Recording: .bvh, .c3d or .npz (AMASS).")],
    out: Annotated[Path | None, typer.Option(help="CSV file to write; NAME.csv here if not given.")] = None,
    map_file: Annotated[Path | None, typer.Option("--map", help="YAML file with joints or units corrected.")] = None,
    write_map: Annotated[
        Path | None, typer.Option("--write-map", help="Write what was found as such a YAML file, and end.")
    ] = None,
    start: Annotated[float, typer.Option(help="Where to begin, seconds.")] = 0.0,
    stop: Annotated[float | None, typer.Option(help="Where to end, seconds.")] = None,
    video: Annotated[Path | None, typer.Option(help="Film the walker beside the recording: .mp4 or .gif.")] = None,
    walker: Kind = "walker-8",
    height: Height = 1.75,
    json: AsJson = False,
) -> None:
    """Turn a recorded motion into a motion file for the walkers."""
    from ludus.core.files import write_text_atomic
    from ludus.worlds.mimic.capture.importing import import_capture, prepare, write_clip
    from ludus.worlds.mimic.capture.roles import MapConfig, find_roles, load_map, map_text

    _check_video(video)
    target = Path(f"{file.stem}.csv") if out is None else out
    settings = MapConfig() if map_file is None else load_map(map_file)
    capture = prepare(file, settings, start, stop)
    if write_map is not None:
        write_text_atomic(write_map, map_text(capture, find_roles(capture, settings.joints)))
        print_ok(f"map of joints written to {write_map}; correct it and pass it with --map")
        return
    body = _walker(walker, height)
    imported = import_capture(capture, body, settings)
    write_clip(imported.clip, target, f"made of {file.name} for {walker} of {height:g} m by ludus mimic motion import")
    report = _import_report(imported, target, body)
    if video is not None:
        from ludus.worlds.mimic.capture.film import film_import

        film_import(imported, body, video)
        report["video"] = str(video)
    if json:
        print_json(report)
        return
    _tell_import(report)


def _import_report(imported: "Imported", target: Path, body: "Walker") -> dict[str, Any]:
    """Return what was found and made, ready for JSON, with why the motion cannot be imitated, if it cannot."""
    from dataclasses import asdict

    from ludus.core.errors import FormatError
    from ludus.worlds.mimic.motion.motion import load_motion
    from ludus.worlds.mimic.motion.reference import summarise

    names, quality = imported.capture.names, asdict(imported.quality)
    report: dict[str, Any] = {
        "source": str(imported.capture.source),
        "found": dict(imported.person.findings),
        "joints": {role: names[joint] for role, joint in imported.roles.items()},
        "quality": {name: round(value, 2) for name, value in quality.items()},
        "written": str(target),
        "frames": imported.clip.frames,
        "notes": list(imported.person.notes),
        "summary": None,
        "fault": None,
    }
    try:
        report["summary"] = summarise(load_motion(target), body)
    except FormatError as error:
        report["fault"] = str(error)
    return report


def _tell_import(report: dict[str, Any]) -> None:
    print_table(("found", ""), list(report["found"].items()))
    echo()
    print_table(("part of the body", "joint of the file"), list(report["joints"].items()))
    echo()
    _tell_quality(report["quality"])
    for note in report["notes"]:
        echo(f"note: {note}")
    print_ok(f"{report['frames']} frames written to {report['written']}")
    _tell_written(report)
    if report["fault"] is not None:
        print_warning(f"a walker cannot imitate all of it: {report['fault']}; cut it with --start and --stop")
    else:
        summary = report["summary"]
        strides, speed = summary["strides"], summary["natural_speed_m_s"]
        print_ok(
            f"{strides} strides at {speed:.2f} m/s; look at them with `ludus mimic motion show {report['written']}`"
        )


def _tell_quality(quality: dict[str, float]) -> None:
    rows = [
        ("standing feet float", f"{quality['float_mm']:.1f} mm at most"),
        ("feet sink", f"{quality['sink_mm']:.1f} mm at most"),
        ("standing feet slide", f"{quality['slide_mm']:.1f} mm at most, from coming down to leaving"),
        ("fastest joint", f"{quality['fastest_rad_s']:.1f} rad/s"),
    ]
    print_table(("on the walker", ""), rows)


def _walker(kind: str, height_m: float) -> "Walker":
    """Make the body that walks, as heavy for its height as the default one."""
    from ludus.envs.settings import read_settings
    from ludus.worlds.mimic.config import MimicConfig
    from ludus.worlds.mimic.model import make_walker

    usual = MimicConfig()
    share = height_m / usual.height_m
    mass_kg = usual.mass_kg * share * share  # a power of a large number is an OverflowError, a product infinity
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
