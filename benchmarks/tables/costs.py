"""Tables about what a run pays for beside learning: its start, pictures, logging, checkpoints, many past selves."""

from benchmarks.tables.markdown import read_all, read_json, table

from ludus.training.speedrun import board_table

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


def speedruns() -> str:
    """Returns the board of speedruns."""
    return board_table(read_json("speedrun.json"))
