"""The tables about an hour of Micropolis: who builds what, what was learnt, and what was recovered from."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.tables.markdown import percent, read_json, rounded, table

from ludus.core.intervals import mean_interval

_FILE = "city_micropolis.json"
_STRETCH_S = 600.0  # of the run that a row of the learning table is about


def players(file: str = _FILE) -> str:
    """Returns how the cities of the agent and of random players end, means with 95 % intervals."""
    rows = []
    for name, played in read_json(file)["players"].items():
        cities = played["cities"]
        zones = sum(city["zones"] for city in cities)
        shares = [percent(sum(city[key] for city in cities) / max(zones, 1)) for key in ("powered", "at_road")]
        columns = [_mean([city[key] for city in cities]) for key in ("population", "funds", "zones")]
        rows.append([name, str(len(cities)), *columns, *shares])
    return table(["player", "cities", "population", "funds", "zones", "with power", "at a road"], rows)


def learning(file: str = _FILE) -> str:
    """Returns how the cities ended that the agent learned from, by the time of the run."""
    cities = [city for city in _longest(read_json(file)["run"]["cities"]) if not city["lost"]]
    rows = []
    for stretch in range(int(max(city["at_s"] for city in cities) // _STRETCH_S) + 1):
        mine = [city for city in cities if int(city["at_s"] // _STRETCH_S) == stretch]
        if mine:
            people = [city["population"] for city in mine if city["population"] is not None]
            first = round(stretch * _STRETCH_S / 60.0)
            when = f"{first} to {round(first + _STRETCH_S / 60.0)}"
            rows.append([when, str(len(mine)), f"{mine[-1]['played']:,}", _mean(people), f"{max(people):,.0f}"])
    return table(["minutes", "cities", "decisions so far", "population", "largest"], rows)


def faults(file: str = _FILE) -> str:
    """Returns what was done to the games and how long it took to recover, a row a kind of fault."""
    done = [fault for fault in _longest(read_json(file)["run"]["faults"]) if "failed" not in fault]
    rows = []
    for name in dict.fromkeys(fault["fault"] for fault in done):
        mine = [fault for fault in done if fault["fault"] == name]
        seconds = sorted(fault["recovery_s"] for fault in mine)
        recovered = sum(fault["noticed"] and fault["recovered"] for fault in mine)
        goes_on = sum(fault["city_went_on"] for fault in mine)
        middle = rounded(seconds[len(seconds) // 2], 1)
        rows.append([name, str(len(mine)), str(recovered), str(goes_on), f"{middle}", f"{rounded(seconds[-1], 1)}"])
    return table(["fault", "done", "recovered", "same city went on", "median s", "longest s"], rows)


def seeds(files: Sequence[str]) -> str:
    """Returns how the cities of agents of several seeds end, means with 95 % intervals over cities, then over seeds."""
    rows, means = [], dict[str, list[float]]()
    for seed, file in enumerate(files):
        document = read_json(file)
        people = {
            name: [city["population"] for city in document["players"][name]["cities"]]
            for name in ("agent", "agent, most likely actions")
        }
        for name, values in people.items():
            means.setdefault(name, []).append(sum(values) / len(values))
        done = [fault for fault in _longest(document["run"]["faults"]) if "failed" not in fault]
        recovered = sum(fault["noticed"] and fault["recovered"] for fault in done)
        minutes = f"{document['run']['wall_s'] / 60.0:.0f}"
        rows.append([str(seed), *map(_mean, people.values()), minutes, f"{recovered} of {len(done)}"])
    rows.append(["over seeds", *map(_mean, means.values()), "", ""])
    return table(["seed", "actions drawn", "most likely actions", "minutes", "faults recovered from"], rows)


def _longest(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the records of the table that was learned from: the one that played most."""
    most = max(records, key=lambda record: record["played"])["table"]
    return [record for record in records if record["table"] == most]


def _mean(values: Sequence[float]) -> str:
    interval = mean_interval(list(values))
    half = interval.high - interval.estimate
    return f"{rounded(interval.estimate, 0):,}" + (f" ± {rounded(half, 0):,}" if half >= 0.5 else "")
