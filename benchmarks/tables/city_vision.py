"""The tables about City's perception: what is read right, and how fast."""

from benchmarks.tables.markdown import read_json, rounded, table

_FILE = "city_vision.json"
_SPEEDS = {
    "world_steps_per_s": "steps/s of the world, pictures read",
    "world_truth_steps_per_s": "steps/s of the world, the truth instead",
    "steps_per_s": "steps/s of one game, pictures read",
    "truth_steps_per_s": "steps/s of one game, the truth instead",
    "verified": "steps in which every field was read twice alike",
    "frames_per_s": "pictures/s",
    "ms_act": "ms to click and draw",
    "ms_capture": "ms to capture",
    "ms_read": "ms to read",
}


def accuracy() -> str:
    """Returns how often fields are read right, with the lower end of the interval; those that are alike share a row."""
    rows = []
    for audit in read_json(_FILE)["audit"]:
        alike: dict[tuple[str, ...], list[str]] = {}
        for field in audit["fields"]:
            shares = (_percent(field[key]) for key in ("accuracy", "low", "unreadable", "wrong"))
            alike.setdefault((str(field["states"]), *shares), []).append(field["field"].replace("_", " "))
        rows += [[audit["game"], ", ".join(names), *numbers] for numbers, names in alike.items()]
    return table(["game", "fields", "states", "right in %", "from", "unreadable", "wrong"], rows)


def speed() -> str:
    """Returns the steps and pictures a second of both games."""
    games = read_json(_FILE)["speed"]
    rows = [[words, *(_shown(key, game.get(key)) for game in games)] for key, words in _SPEEDS.items()]
    return table(["", *(game["game"] for game in games)], rows)


def _percent(share: float) -> str:
    return f"{rounded(100.0 * share, 1).normalize():f}"


def _shown(key: str, value: float | None) -> str:
    if value is None:
        return ""
    if key == "verified":
        return f"{_percent(value)} %"
    return f"{rounded(value, 0):,}" if value >= 100.0 else f"{value:.2g}"
