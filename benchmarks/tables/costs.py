"""Tables about what runs cost beside learning: start, pictures, logging, checkpoints, past selves, taking turns."""

from benchmarks.speedrun import board_table
from benchmarks.tables.markdown import read_all, read_json, table

_POLICIES = {"mlp": "MLP 128x128", "lstm": "LSTM 256"}
_WAYS = {
    "one opponent": "one",
    "one, through the call for many": "one_stacked",
    "32, values too": "stacked",
    "32 as the league plays them": "stacked_without_values",
    "a loop over the 32": "loop",
}
_PARTS = {
    "reading episodes": "reading_episodes_share",
    "tables": "tables_share",
    "console and TensorBoard": "console_and_tensorboard_share",
}


def pictures(world: str) -> str:
    """Returns pictures a second of a world by view."""
    lines = [
        [
            row["world"],
            f"{row['frames_per_s']:.0f}",
            f"{row['frames_per_s_low']:.0f} - {row['frames_per_s_high']:.0f}",
            f"{row['yardstick_frames_per_s']:.0f}",
        ]
        for row in read_json("render.json")
        if row["world"].startswith(world)
    ]
    return table(["1280x720, one core", "pictures/s", "slowest to fastest of five", "copies of a picture/s"], lines)


def league() -> str:
    """Returns what a step against one and against many past selves takes, by kind of policy."""
    data = read_json("league.json")
    lines = []
    for name, policy in _POLICIES.items():
        measured = data[name]
        for way, key in _WAYS.items():
            milliseconds = measured[f"{key}_ms"]
            lines.append([policy, way, f"{milliseconds:.1f}", f"{milliseconds / measured['one_ms']:.2f}"])
    return table(["policy", f"{data['rows']:,} rows, {data['threads']} threads", "ms per step", "ratio"], lines)


def logging() -> str:
    """Returns which share of a run's time logging and guards take."""
    data = read_json("logging.json")

    def line(what: str, name: str) -> list[str]:
        low, high = data[f"{name}_quartiles"]
        return [what, f"{data[name]:.1%}", f"{low:.1%} to {high:.1%}"]

    lines = [
        line("logging, by the clock", "logging_share"),
        *([f"of it {what}", f"{data[name]:.1%}", ""] for what, name in _PARTS.items()),
        line("logging, by the process's own time", "logging_share_own_time"),
        line("guards and a copy of the state, by the process's own time", "guards_share_own_time"),
    ]
    return table(["what", "share of the time", "quartiles"], lines)


def startup() -> str:
    """Returns how long the command takes to its first update, by world, device and kind of start."""
    lines = []
    for row in read_json("startup.json"):
        parts = row.get("parts_s")
        shares = ("imports", "kernels", "checks", "rollout", "update")
        cells = [f"{parts[part]:.1f}" for part in shares] if parts else [""] * len(shares)
        own = f"{row['own_time_s']:.1f}" if parts else ""
        place = f"{row['cores']} {row['machine']} cores" if row["device"] == "cpu" else row["device"]
        digits = 1 if parts else 2
        lines.append([row["world"], place, row["start"], f"{row['total_s']:.{digits}f}", own, *cells])
    header = ["start of", "device", "caches", "seconds", "of the process's own time"]
    return table([*header, "imports", "kernels", "checks", "first rollout", "first update"], lines)


def checkpoints() -> str:
    """Returns how long a checkpoint stops a run that waits for it, and one that does not."""
    lines = []
    for data in read_all("checkpoint_cost_*.json"):
        place = f"{data['cores']} {data['machine']} cores" if data["device"] == "cpu" else data["device"]
        for row in data["rows"]:
            times = [f"{row[name]:.1f}" for name in ("waiting_ms", "background_ms")]
            lines.append([row["world"], place, f"{row['mib']:.1f}", f"{row['iteration_ms']:.0f}", *times])
    header = ["checkpoint of", "device", "MiB", "iteration, ms", "stopped while the run waits, ms"]
    return table([*header, "stopped while it trains on, ms"], lines)


def together_cost() -> str:
    """Returns the CPU seconds of several learners in turns, one after the other, and as commands."""
    data = read_json("together_cpu.json")
    lines = []
    for row in data["rows"]:
        seconds = [f"{row[f'{way}_cpu_s']:.1f}" for way in ("together", "sequence", "commands")]
        others = [f"{row['together_cpu_s'] / row[f'{way}_cpu_s']:.2f}" for way in ("sequence", "commands")]
        lines.append([row["case"].replace(":", ", "), f"{row['env_steps']:,}", *seconds, *others])
    header = [f"{data['learners']} learners, {data['cores']} {data['machine']} cores", "env steps each"]
    ways = ["CPU seconds in turns", "one after the other", "as commands"]
    return table([*header, *ways, "ratio to one after the other", "ratio to commands"], lines)


def together_rate() -> str:
    """Returns env steps per second of one learner and of several in turns on a GPU."""
    data = read_json("together_h200.json")
    lines = []
    for row in data["rows"]:
        case = " ".join([row["case"].replace(":", ", "), *row["overrides"]])
        rates = [f"{row[f'{way}_steps_per_s'] / 1e3:,.0f}k" for way in ("alone", "together")]
        lines.append([case, *rates, f"{row['ratio']:.2f}"])
    return table([data["device"], "env steps/s of one learner", f"of {data['learners']} in turns", "ratio"], lines)


def speedruns() -> str:
    """Returns the board of speedruns."""
    return board_table(read_json("speedrun.json"))


_SCALED = {"mlp": "MLP 128x128", "strategy": "strategy encoder and LSTM"}


def league_costs() -> str:
    """Returns what a snapshot, a report and a match of a league cost on the machine that measured them."""
    data = read_json("league_scaling.json")
    lines = []
    for name, policy in _SCALED.items():
        costs = data["rows"][name]["costs"]
        times = [f"{1e3 * costs[key]:.1f}" for key in ("write_s", "load_s")]
        growing = [f"{1e3 * costs[key][0]:.2f} + {1e6 * costs[key][1]:.1f}" for key in ("report_s", "assign_s")]
        moved = [f"{costs['transfer_bytes_per_s'] / 1e6:.0f}"]
        lines.append(
            [policy, f"{costs['snapshot_bytes'] / 1e6:.2f}", *times, *moved, *growing, f"{costs['matches_per_s']:.2f}"]
        )
    where = f"{data['cores']} {data['machine']} cores"
    header = [f"policy, on {where}", "snapshot, MB", "written in ms", "loaded in ms", "through Ray, MB/s"]
    return table([*header, "report, ms", "opponents, ms", "matches/s per core"], lines)


def league_loads() -> str:
    """Returns what an hour of leagues of several sizes asks of their parts."""
    lines = []
    for name, policy in _SCALED.items():
        for load in read_json("league_scaling.json")["rows"][name]["loads"]:
            delay = load["delay_p95_s"]
            lines.append(
                [
                    policy,
                    str(load["learners"]),
                    f"{load['snapshots_per_s']:.2f}",
                    f"{load['in_bytes_per_s'] / 1e6:.2f}",
                    f"{load['out_bytes_per_s'] / 1e6:.1f}",
                    f"{load['link_share']:.1%}",
                    f"{load['head_share']:.1%}",
                    f"{load['evaluator_cores']:.0f}",
                    f"{delay:.1f}" if load["head_share"] < 1.0 and load["link_share"] < 1.0 else "falls behind",
                    f"{load['disk_bytes'] / 1e9:.1f}",
                ]
            )
    header = ["policy", "GPUs", "snapshots/s", "into the head, MB/s", "out of it, MB/s", "link", "head"]
    return table([*header, "evaluator cores", "delay, s", "snapshots of the hour, GB"], lines)


def league_limits() -> str:
    """Returns up to how many learners the head and the link keep up."""
    rows = read_json("league_scaling.json")["rows"]
    lines = []
    for name, policy in _SCALED.items():
        row = rows[name]
        steps = f"{row['env_steps_per_s'] / 1e6:.2f}"
        most = row["most_learners"]
        lines.append([policy, steps, f"{row['snapshot_every_s']:.0f}", str(most["head"]), str(most["link"])])
    header = [
        "policy",
        "million env steps/s of an H200",
        "seconds between snapshots",
        "GPUs until the head falls behind",
    ]
    return table([*header, "GPUs until 10 Gbit/s are full"], lines)
