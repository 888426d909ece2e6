"""Tables of brawl's opponents that are read or not: from `benchmarks/clash.py`, and of populations measured before."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.tables.markdown import read_json, table
from benchmarks.tables.strategy import difference, spread

from ludus.analysis.ablation import CONDITIONS

_SHOWN = 8  # members of a long table
_KINDS = {
    "blind": "sees the opponent alone",
    "oracle": "is told the opponent's identity",
    "told": "is told the opponent's identity through FiLM",
    "blind_long": "sees the opponent alone, twice the env steps",
    "lstm": "remembers with an LSTM of 128",
    "chrono": "the same, with chrono initialization",
    "events": "remembers events with a strategy encoder",
    "encoder": "reads the opponent with a strategy encoder",
    "full": "has both",
    "contrast": "has both, and a contrastive loss",
    "slow": "has both, which learn at a tenth of the rate",
}
# Agents of the preset `competition` with events.
_COMPETITION = {
    "blind": "`competition`, without memory",
    "blind_long": "the same, three times the env steps",
    "late_blind": "the first, going on without memory",
    "late": "the first, going on with events",
    "events": "events from the start",
}
_GROUPS = {"known": "known bots", "sharp": "without delay and noise"}


def ceiling(file: str = "gauntlet.json") -> str:
    """Returns how much agents with and without the opponent's identity win, over seeds with Student's intervals."""
    data = read_json(file)
    lines = []
    for kind, words in _KINDS.items():
        runs = [run for name, run in data["results"].items() if name.startswith(f"ceiling-{kind}-")]
        if not runs:
            continue
        means = [_means(run["wins"], data["seen"]) for run in runs]
        shown = [spread([mean[place] for mean in means]) for place in (0, 1)]
        seeds = ", ".join(f"{100 * mean[0]:.1f}" for mean in means)
        lines.append([words, str(len(runs)), f"{runs[0]['env_steps'] / 1e6:.0f} M", *shown, seeds])
    return table(["agent", "seeds", "env steps", "seen members", "unseen members", "seen members, by seed"], lines)


def sets(file: str) -> str:
    """Returns win rates by match of a set, and with the latent zeroed or taken from another game; seen, then unseen."""
    data = read_json(file)
    lines = []
    for kind, words in _KINDS.items():
        for name, run in data["results"].items():
            if name.startswith(f"ceiling-{kind}-"):
                shown = [*run["by_match"], *(run.get(condition) for condition in CONDITIONS[1:])]
                lines.append([words, *("" if wins is None else _pair(wins, data["seen"]) for wins in shown)])
    return table(["agent", "match 1", "match 2", "match 3", "latent zeroed", "latent of another game"], lines)


def _pair(wins: dict[str, float], seen: dict[str, bool]) -> str:
    return ", ".join(f"{100 * mean:.1f}" for mean in _means(wins, seen))


def reading(file: str) -> str:
    """Returns against unseen members, over seeds: what is won in all and by match, and the share of the gap closed.

    The gap is between agents that see the opponent alone and those that are told who it is, by seed.
    """
    data = read_json(file)
    won, matches, lines = {}, {}, []
    for kind in _KINDS:
        runs = _runs(data, kind)
        if runs:
            won[kind] = [_means(run["wins"], data["seen"]) for run in runs]
            matches[kind] = [[_means(wins, data["seen"])[1] for wins in run["by_match"]] for run in runs]
    for kind, rates in won.items():
        closed = [
            (own[1] - blind[1]) / (told[1] - blind[1])
            for own, blind, told in zip(rates, won["blind"], won["told"], strict=True)
        ]
        runs = _runs(data, kind)
        lines.append(
            [
                _KINDS[kind],
                f"{_mean(run['training_seconds'] for run in runs):.0f}",
                spread([rate[0] for rate in rates]),
                spread([rate[1] for rate in rates]),
                "" if kind in ("blind", "told") else difference(closed),
                *(f"{100 * _mean(numbered):.1f}" for numbered in zip(*matches[kind], strict=True)),
            ]
        )
    titles = ["agent", "seconds", "seen members", "unseen members", "gap closed, unseen"]
    return table([*titles, "match 1", "match 2", "match 3"], lines)


def worth(file: str, kind: str) -> str:
    """Returns in points, over seeds, how much more a kind of agent wins than others, than in match 1, and than without.

    All are against unseen members; without: with its latent zeroed or taken from another game.
    """
    data = read_json(file)
    own = _runs(data, kind)

    def unseen(runs: list[Any], part: str = "wins") -> list[float]:
        return [_means(run[part], data["seen"])[1] for run in runs]

    compared = {f"than an agent that {_KINDS[other]}": unseen(_runs(data, other)) for other in ("blind_long", "lstm")}
    compared |= {
        "than with its latent zeroed": unseen(own, "zeroed"),
        "than with the latent of another game": unseen(own, "shuffled"),
    }
    gains = {
        words: [one - other for one, other in zip(unseen(own), others, strict=True)]
        for words, others in compared.items()
    }
    last, first = ([_means(run["by_match"][place], data["seen"])[1] for run in own] for place in (-1, 0))
    gains["in match 3 than in match 1"] = [one - other for one, other in zip(last, first, strict=True)]
    lines = [
        [words, difference(found), ", ".join(f"{100 * gain:+.1f}" for gain in found)] for words, found in gains.items()
    ]
    return table(["it wins more", "points", "by seed"], lines)


def _runs(data: dict[str, Any], kind: str) -> list[Any]:
    return [run for name, run in data["results"].items() if name.rpartition("-")[0] == f"ceiling-{kind}"]


def members() -> str:
    """Returns for each member how it fares, and how its best response and those to others fare against it."""
    data = read_json("gauntlet.json")
    results, seen = data["results"], data["seen"]
    lines = []
    for name in results["table-allround-0-0"]["wins"]:
        own = results[f"table-{name}-0"]["wins"]
        answers = {
            key.removeprefix("table-response-").removesuffix("-0"): run["wins"][name]
            for key, run in results.items()
            if key.startswith("table-response-")
        }
        others = [rate for key, rate in answers.items() if key != name]
        best = f"{100 * answers[name]:.0f}" if name in answers else ""
        family = name.rpartition("-")[0]
        against = _mean(rate for key, rate in own.items() if key != name)
        lines.append(
            [family, "yes" if seen[family] else "no", f"{100 * against:.0f}", best, f"{100 * _mean(others):.0f}"]
        )
    titles = ["family", "seen", "wins against the others", "its best response wins", "best responses to others win"]
    return table(titles, lines)


def room() -> str:
    """Returns the members that leave most room: what the blind agents win, and whoever of all contenders wins most."""
    results = read_json("gauntlet_triangle.json")["results"]
    played = {name: run["wins"] for name, run in results.items() if "wins" in run}
    blind = [wins for name, wins in played.items() if name.startswith("ceiling-blind-")]
    lines = []
    for member in blind[0]:
        others = {name: wins[member] for name, wins in played.items() if name != f"table-{member}-0"}
        best = max(others, key=lambda name: others[name])
        lines.append((member, _mean(wins[member] for wins in blind), others[best], best))
    lines.sort(key=lambda line: line[1] - line[2])
    gains = _mean(most - own for _, own, most, _ in lines)
    shown = [
        [member, *(f"{100 * rate:.0f}" for rate in (own, most)), _title(best)] for member, own, most, best in lines
    ]
    whole = [f"all {len(lines)}", f"{100 * _mean(line[1] for line in lines):.1f}", f"{100 * gains:+.1f}", ""]
    return table(["member", "blind agents win", "most that anyone wins", "who"], [*shown[:_SHOWN], whole])


def specialists(file: str, env_steps: str) -> str:
    """Returns what the blind agent wins against single members, and after it trained on against each alone.

    Beside it, where it was done, what as many more env steps against everyone give.
    """
    results = read_json(file)["results"]
    blind, everyone = results["ceiling-blind-0"], results.get("specialist-everyone-0")
    runs = [run for key, run in results.items() if key.startswith("specialist-") and run is not everyone]
    alone = {name: rate for run in runs for name, rate in run["wins"].items()}
    shown = [blind["wins"], *([] if everyone is None else [everyone["wins"]]), alone]
    lines = [[name, *(f"{100 * wins[name]:.0f}" for wins in shown)] for name in sorted(alone)]
    lines.append([f"all {len(alone)}", *(f"{100 * _mean(wins[name] for name in alone):.1f}" for wins in shown)])
    after = [] if everyone is None else [f"after {env_steps} env steps more against everyone"]
    return table(["member", "blind agent wins", *after, f"after {env_steps} env steps against it alone"], lines)


def answers(file: str) -> str:
    """Returns what copies of one agent win against members: one that draws evenly, and ones that know the answers."""
    results = read_json(file)["results"]
    evenly = results["answer-evenly-0"]["wins"]
    knowing = {name: results[f"answer-{name}-0"]["wins"][name] for name in evenly}
    lines = []
    for name in sorted(evenly):
        ahead, otherwise = name.rpartition("-")[0].split("_")
        lines.append([ahead, otherwise, *(f"{100 * wins[name]:.0f}" for wins in (evenly, knowing))])
    lines.append(["all", "", *(f"{100 * _mean(wins.values()):.1f}" for wins in (evenly, knowing))])
    return table(["favours while ahead", "otherwise", "an even copy wins", "a copy that knows the answers wins"], lines)


def _title(contender: str) -> str:
    """Returns a contender's name: of agents of the ceiling with the seed, of others as members are called."""
    if contender.startswith("table-"):
        return contender.removeprefix("table-").removesuffix("-0").replace("response-", "response to ")
    return contender.removeprefix("ceiling-")


def _means(wins: dict[str, float], seen: dict[str, bool]) -> tuple[float, float]:
    """Returns the mean win rates against seen and against unseen members."""
    known = {name: seen[name if name in seen else name.rpartition("-")[0]] for name in wins}
    rates = [[rate for name, rate in wins.items() if known[name] is kind] for kind in (True, False)]
    return _mean(rates[0]), _mean(rates[1])


def _mean(values: Iterable[Any]) -> float:
    return statistics.fmean(values)


def unknown() -> str:
    """Returns win rates of presets against bots they know and do not know: means over seeds, and the lowest of all."""
    runs = read_json("unknown_opponents.json")["results"]
    lines = []
    for preset in dict.fromkeys(name.split("-")[0] for name in runs):
        own = [run for name, run in runs.items() if name.startswith(f"{preset}-")]
        for group in own[0]["wins"]:
            rates = [run["wins"][group] for run in own]
            if rates[0]:
                lowest, name = min((rate, name) for each in rates for name, rate in each.items())
                means = [statistics.fmean(each.values()) for each in rates]
                lines.append([f"`{preset}`", _GROUPS.get(group, group), spread(means), f"{100 * lowest:.1f} ({name})"])
    return table(["preset", "opponents", "wins in %, over seeds", "lowest of any seed"], lines)


def competition_memory(rules: str) -> str:
    """Returns over seeds whom agents of the preset `competition` with and without memory beat, by one set of rules."""
    lines = []
    for kind, words in _COMPETITION.items():
        runs = _competition(kind, rules)
        if runs:
            rates = [_by_group(run["wins"]) for run in runs]
            seconds = f"{_mean(run['seconds'] for run in runs):.0f}"
            numbers = [spread([rate[group] for rate in rates]) for group in rates[0]]
            lines.append([words, f"{runs[0]['env_steps'] / 1e6:.0f} M", seconds, *numbers])
    groups = [_GROUPS.get(group, group) for group in _competition("blind", rules)[0]["wins"]]
    return table(["agent", "env steps", "seconds", *groups], lines)


def competition_latent(rules: str) -> str:
    """Returns in points, over seeds, what the latent is worth to agents of the preset `competition` with memory."""
    lines = []
    for kind in ("late", "events"):
        runs = _competition(kind, rules)
        for condition in CONDITIONS[1:]:
            losses = [
                [
                    own - other
                    for own, other in zip(
                        _by_group(run["wins"]).values(), _by_group(run[condition]).values(), strict=True
                    )
                ]
                for run in runs
            ]
            lines.append([_COMPETITION[kind], condition, *(difference(found) for found in zip(*losses, strict=True))])
    groups = [_GROUPS.get(group, group) for group in _competition("blind", rules)[0]["wins"]]
    return table(["agent", "latent", *groups], lines)


def _competition(kind: str, rules: str) -> list[Any]:
    results = read_json("competition_memory.json")["results"]
    return [run for name, run in results.items() if name.rpartition("-")[0] == f"{kind}-{rules}"]


def _by_group(wins: dict[str, dict[str, list[float]]]) -> dict[str, float]:
    return {group: _mean(rates[0] for rates in members.values()) for group, members in wins.items()}
