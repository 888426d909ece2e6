"""The table of `benchmarks/browser_parity.py`: the same game on every machine."""

from benchmarks.tables.markdown import read_json, table

_NAMES = {"cpu": "CPU", "cuda": "CUDA", "node": "node", "chromium": "Chromium"}


def parity() -> str:
    """Returns one line per world and variant, with what all machines agree on."""
    data = read_json("browser_parity.json")
    lines = []
    for name, row in data.items():
        hashes = {each["hash"] for each in row["machines"].values()}
        found = f"`{hashes.pop()}`" if len(hashes) == 1 else "different"
        where = ", ".join(_NAMES[machine] for machine in _NAMES if machine in row["machines"])
        lines.append([name, f"{row['frames']:,}", f"{row['episodes']:,}", found, where])
    return table(["world, last seat", "frames", "matches", "hash of all frames", "same on"], lines)
