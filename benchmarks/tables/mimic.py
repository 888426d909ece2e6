"""Tables about mimic: how the walkers of a preset walk, integrators, speed of learning, algorithms."""

import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks.tables.markdown import over_seeds, read_json, table


def walk() -> str:
    """Returns the numbers of the preset `walk` by seed."""
    return preset_results(read_json("mimic_walk.json"))


def walk_3d() -> str:
    """Returns the same of the preset `walk-3d`."""
    return preset_results(read_json("mimic_walk_3d.json"))


def walk_gpu() -> str:
    """Returns the same of the preset `walk-gpu`, trained on a GPU and evaluated with MuJoCo on a CPU."""
    return preset_results(read_json("mimic_walk_gpu.json"))


def gait_numbers() -> str:
    """Returns the numbers of steps and strides of the shipped walker; of `ludus mimic gait`."""
    lines = [
        [f"`{name}`", "n/a" if row["value"] is None else f"{row['value']:.3g}", row["unit"], row["usual"] or ""]
        for name, row in read_json("mimic_gait.json")["numbers"].items()
    ]
    return table(["number", "mean", "unit", "usual in people"], lines)


def gait_joints() -> str:
    """Returns how far its joints, and those of the reference, are from those of people; of `ludus mimic gait`."""
    document = read_json("mimic_gait.json")
    reference = {f"reference_{kind}": row for kind, row in document["reference"]["distances"].items()}
    lines = [
        [
            f"`{joint}`",
            f"{row['rms_deg']:.1f}",
            f"{100 * row['share_within']:.0f}",
            f"{100 * row['share_within_two']:.0f}",
            f"{0.0 - row['lag_percent']:.0f}",
            f"{row['rms_without_lag_deg']:.1f}",
        ]
        for joint, row in (document["distances"] | reference).items()
    ]
    header = ["joint", "off the mean of people, degrees", "within 1 SD, %", "within 2 SD, %"]
    return table([*header, "earlier, % of the stride", "off without that, degrees"], lines)


def gait_pushes() -> str:
    """Returns who survives pushes; of `ludus mimic gait`."""
    rows = read_json("mimic_gait.json")["recovery"]
    lines = [
        [
            row["direction"],
            *(f"{100 * share['estimate']:.0f} %" for share in row["survived"]),
            "n/a" if row["half_ns"] is None else f"{row['half_ns']:.0f} N s",
        ]
        for row in rows
    ]
    return table(["pushed", *(f"{impulse:g} N s" for impulse in rows[0]["impulses_ns"]), "half survive"], lines)


def gpu() -> str:
    """Returns control steps a second on a GPU; of `mimic_gpu.py`."""
    lines = [
        [
            row["device"],
            f"{row['walkers']:,}",
            f"{row['steps_per_s'] / 1e6:.2f}",
            f"{row['physics_steps_per_s'] / 1e6:.2f}",
        ]
        for row in read_json("mimic_gpu.json")
    ]
    return table(["device", "walkers", "control steps/s, millions", "physics alone, millions"], lines)


def slow() -> str:
    """Returns scores over env steps of slow walking and of the default range; of `mimic_slow.py`."""
    moments = (400_000, 800_000, 1_200_000, 1_600_000, 2_000_000)
    lines = []
    for run in read_json("mimic_slow.json"):
        # Evaluations come with the first iteration that reaches their step.
        found = [
            next((point for point in run["points"] if moment <= point["env_steps"] < moment + 50_000), None)
            for moment in moments
        ]
        scores = [f"{point['mean_return']:,.0f}" if point is not None else "" for point in found]
        stable = run["points"][-1]["stable_walks"]
        lines.append([run["motion"], f"{run['schedule_env_steps'] / 1e6:g} M", *scores, f"{stable:.0f} of 20"])
    header = ["motion", "schedules over", *(f"{moment / 1e6:g} M" for moment in moments), "stable walks at last"]
    return table(header, lines)


def balance() -> str:
    """Returns how accurately steps must be placed in motions; of `mimic_balance.py`."""
    lines = [
        [
            row["motion"],
            f"{row['period_s']:.2f}",
            f"{100 * row['double_support_share']:.0f}",
            f"{row['single_support_s']:.2f}",
            f"{row['growth']:.1f}",
            f"{row['half_width_mm']:.0f}",
            f"{row['sway_mm']:.0f}",
            f"{row['outside_mm']:.0f}",
            f"{row['held_mm']:.0f}",
        ]
        for row in read_json("mimic_balance.json")
    ]
    header = ["motion", "stride, s", "double support, %", "single support, s", "errors grow by", "half width, mm"]
    return table([*header, "sway, mm", "weight outside the feet, mm", "error that is held, mm"], lines)


def motions() -> str:
    """Returns how well every motion is imitated by a walker that learned it alone; of `mimic_motions.py`."""
    return _imitated([row for row in read_json("mimic_motions.json") if row["policy"] == row["motion"]])


def one_policy() -> str:
    """Returns the same of the walker that learned all, by command, and where they change; of `mimic_motions.py`."""
    return _imitated([row for row in read_json("mimic_motions.json") if row["policy"] != row["motion"]])


def _imitated(rows: list[dict[str, Any]]) -> str:
    """Returns one line per motion: stable walks of every seed, and means over the seeds of everything else."""
    motions = defaultdict[str, list[dict[str, Any]]](list)
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        motions[row["motion"]].append(row)
    lines = []
    for motion, seeds in motions.items():
        names = ("env_steps", "training_s", "duration_s", "rmse_deg", "speed_m_s", "imitation")
        mean = {name: statistics.mean(row[name] for row in seeds) for name in names}
        stable = [f"{row['stable_walks']:.0f}" for row in seeds]
        lines.append(
            [
                f"`{motion}`",
                seeds[0]["walker"],
                f"{mean['env_steps'] / 1e6:.1f} M",
                f"{mean['training_s']:.0f}",
                f"{', '.join(stable)} of 20",
                f"{mean['duration_s']:.1f}",
                f"{mean['rmse_deg']:.1f}",
                f"{mean['speed_m_s']:.2f}",
                f"{mean['imitation']:.2f}",
            ]
        )
    header = ["motion", "walker", "env steps", "training in s", "stable walks", "mean length, s"]
    return table([*header, "joint error, degrees", "speed, m/s", "imitation"], lines)


def driven() -> str:
    """Returns how far walkers that get the same actions are apart in the two physics; of `mimic_parity.py`."""
    lines = []
    for pair, moments in read_json("mimic_parity.json")["driven"].items():
        for moment, row in moments.items():
            numbers = [row[f"{name}{part}"] for name in ("joints_deg", "hips_mm") for part in ("_median", "")]
            lines.append([" and ".join(pair.split(", ")), f"{moment} s", *(f"{number:.2g}" for number in numbers)])
    header = ["physics", "after", "joints, median", "largest, degrees", "hips, median", "largest, mm"]
    return table(header, lines)


def crossed() -> str:
    """Returns how agents walk in either physics; of `mimic_parity.py`."""
    names = {"mujoco": "MuJoCo", "warp": "MuJoCo Warp"}
    lines = [
        [
            f"`{row['agent']}`",
            names[row["physics"]],
            f"`{row['scenario']}`",
            f"{row['stable_walks']:.0f}",
            f"{row['rmse_deg']:.2f}",
            f"{row['speed_m_s']:.3f}",
            f"{row['imitation']:.3f}",
        ]
        for row in read_json("mimic_parity.json")["walking"]
    ]
    header = ["agent", "walks in", "scenario", "stable walks", "joint error, degrees", "speed, m/s", "imitation"]
    return table(header, lines)


def preset_results(results: list[dict[str, Any]]) -> str:
    """Returns all numbers of the first trial by seed, then how each trial was walked; of `mimic_results.py`."""
    lines = [["training in s", *_seeds([result["training_s"] for result in results], "{:,.0f}".format)]]
    reached = [result["steps_to_convergence"] for result in results]
    if None in reached:
        lines.append(["env steps to convergence", *map(_whole, reached), *([""] if len(results) > 1 else [])])
    else:
        lines.append(["env steps to convergence", *_seeds(reached, _whole)])
    first = [result["trials"][0] for result in results]
    numbers = [name for name, value in first[0].items() if isinstance(value, float) and not _is_left_out(name)]
    lines += [[f"`{name}`", *_seeds([row[name] for row in first], "{:.3g}".format)] for name in numbers]
    for index, name in enumerate(row["trial"] for row in results[0]["trials"]):
        rows = [result["trials"][index] for result in results]
        walked = [f"{row['speed_m_s']:.3f} m/s, {row['survived']:.0%} to the end" for row in rows]
        speeds = [f"{over_seeds([row['speed_m_s'] for row in rows], '{:.3f}'.format)} m/s"] if len(rows) > 1 else []
        lines.append([f"scenario `{name}`", *walked, *speeds])
    header = ["", *(f"seed {result['seed']}" for result in results)]
    return table([*header, *(["mean (95 % over seeds)"] if len(results) > 1 else [])], lines)


def _seeds(values: list[float], show: Callable[[float], str]) -> list[str]:
    """Returns the cells of all seeds, and of their mean where there are several."""
    return [*map(show, values), *([over_seeds(values, show)] if len(values) > 1 else [])]


def _is_left_out(name: str) -> bool:
    """Says whether a number repeats another: returns are `imitation` times steps, and legs walk alike when mirrored."""
    return name.startswith("mean_") or "_left_" in name or name == "pushes"


def _whole(number: float | None) -> str:
    return "not reached" if number is None else f"{number:,.0f}"


def physics() -> str:
    """Returns speed and accuracy of integrators and step lengths."""
    lines = [
        [row["setting"], f"{row['steps_per_s']:,.0f}", f"{row['ratio']:.2f}", f"{row['stray_deg']:.2f}"]
        for row in read_json("mimic_physics.json")
    ]
    return table(["setting", "control steps/s per core", "ratio", "deviation after 0.1 s, degrees"], lines)


def simulation() -> str:
    """Returns control steps a second on one and two threads beside Walker2d-v5."""
    lines = [
        [
            str(row["threads"]),
            f"{row['games']:,}",
            f"{row['steps_per_s']:,.0f}",
            f"{row['yardstick_steps_per_s']:,.0f}",
            f"{row['ratio']:.1f}",
        ]
        for row in read_json("mimic_sim_cpu.json")
    ]
    return table(["threads", "walkers", "control steps/s", "Walker2d-v5 steps/s", "ratio"], lines)


def learn() -> str:
    """Returns env steps a second of learning beside Stable-Baselines3, and where the time goes."""
    data = read_json("mimic_learn.json")
    shares = {name.removesuffix("_share"): value for name, value in data.items() if name.endswith("_share")}
    header = ["games", "env steps/s", "Stable-Baselines3", "ratio", *shares]
    numbers = [f"{data['games']:,}", f"{data['steps_per_s']:,.0f}", f"{data['peer_steps_per_s']:,.0f}"]
    return table(header, [[*numbers, f"{data['ratio']:.1f}", *(f"{share:.0%}" for share in shares.values())]])


def algorithms() -> str:
    """Returns how far each algorithm was at its first, second, fourth, ... evaluation: mean and range of the seeds."""
    data = read_json("mimic_algorithms.json")
    found: dict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
    for run in data["runs"]:
        for count, point in enumerate(run["points"], start=1):
            if count.bit_count() == 1:
                found[run["algorithm"], count].append(point)
    lines = []
    for (name, _), points in found.items():
        counts = (sum(point[count] for point in points) / len(points) for count in ("env_steps", "updates", "seconds"))
        numbers = (_range([point[number] for point in points]) for number in data["numbers"])
        lines.append([name.upper(), str(len(points)), *(f"{count:,.0f}" for count in counts), *numbers])
    return table(["algorithm", "seeds", "env steps", "updates", "training in s", *data["numbers"]], lines)


def _range(values: list[float]) -> str:
    """Returns mean, lowest and highest."""
    return f"{sum(values) / len(values):.3g} ({min(values):.3g} to {max(values):.3g})"
