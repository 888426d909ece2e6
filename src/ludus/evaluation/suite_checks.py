"""What a suite's model cannot know: whether opponents, trials, numbers and tiers exist, and tiers ask for ever more."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ludus.config import KeyPath, Node, short, show_path, suggest
from ludus.core.errors import LudusError
from ludus.core.faults import ConfigFault
from ludus.envs.base import BatchedEnv
from ludus.envs.behaviour import behaviour_of
from ludus.envs.trials import trials_of
from ludus.evaluation.contenders import find_contender
from ludus.evaluation.tally import row_numbers

TARGET_KEYS = ("at_least", "at_most")


def check_targets(root: Node) -> Sequence[ConfigFault]:
    """Finds tiers that are named twice or nowhere, and targets that a higher tier makes easier."""
    names = [str(node.content) for node in _listed(root.child("tiers"))]
    faults = []
    for place, node in enumerate(_listed(root.child("tiers"))):
        if names.index(str(node.content)) < place:
            faults.append(_fault(node, ("tiers", place), "is named twice; name every tier once"))
    for path, _, targets in _targets(root):
        asked: dict[str, float] = {}
        for tier, target in _entries(targets):
            if tier not in names:
                expectation, hint = "should be one of the tiers", suggest(tier, names) if names else "name it in tiers"
                faults.append(ConfigFault(str(target.key_origin), show_path((*path, tier)), expectation, tier, hint))
            elif isinstance(target.content, int | float):
                asked[tier] = float(target.content)
        faults += _easier(path, targets, [(tier, asked[tier]) for tier in names if tier in asked])
    return faults


def check_rows(env: BatchedEnv, root: Node) -> Sequence[ConfigFault]:
    """Finds opponents, trials and numbers that the world does not have, and rows that come twice."""
    faults = []
    alone = len(set(env.spec.teams)) == 1
    seen: dict[str, Node] = {}
    for place, row in enumerate(_listed(root.child("rows"))):
        faults += _check_player(env, ("rows", place), row, alone=alone)
        parts = {key: row.child(key) for key in ("opponent", "trial", "delay_frames", "noise")}
        what = str({key: node.content for key, node in parts.items() if node is not None})
        if what in seen:
            faults.append(_fault(row, ("rows", place), f"is the same as the row at {seen[what].origin}"))
        seen.setdefault(what, row)
    numbers = row_numbers(env.spec, behaviour_of(env.spec.id))
    for path, number, targets in _targets(root):
        if number not in numbers:
            expectation = f"should be a number of {env.spec.id}"
            place_of_key = str(targets.key_origin)
            faults.append(ConfigFault(place_of_key, show_path(path), expectation, number, suggest(number, numbers)))
    return faults


def _check_player(env: BatchedEnv, path: KeyPath, row: Node, *, alone: bool) -> list[ConfigFault]:
    opponent, trial = row.child("opponent"), row.child("trial")
    if alone and opponent is not None:
        return [_fault(opponent, (*path, "opponent"), f"cannot be: nobody plays against an agent of {env.spec.id}")]
    if alone:
        trials = trials_of(env.spec.id)
        if trial is None or not isinstance(trial.content, str) or trial.content in trials:
            return []
        hint = suggest(trial.content, trials) if trials else "it has none, leave it out"
        return [_fault(trial, (*path, "trial"), f"should be a trial of {env.spec.id}", hint)]
    if trial is not None:
        return [_fault(trial, (*path, "trial"), f"cannot be: {env.spec.id} is played against opponents")]
    if opponent is None:
        return [_fault(row, path, f"should name an opponent, such as one of {', '.join(env.spec.bots) or 'no bots'}")]
    try:
        find_contender(str(opponent.content), env)
    except LudusError as error:
        return [_fault(opponent, (*path, "opponent"), str(error))]
    return []


def _easier(path: KeyPath, targets: Node, asked: Sequence[tuple[str, float]]) -> list[ConfigFault]:
    """Returns a fault for each tier that asks for less than the one below it."""
    sign = 1.0 if path[-2] == "at_least" else -1.0
    faults = []
    for (lower, below), (tier, value) in pairwise(asked):
        node = targets.child(tier)
        if sign * (value - below) < 0.0 and node is not None:
            faults.append(_fault(node, (*path, tier), f"is easier than {lower}, which asks for {below:g}"))
    return faults


def _targets(root: Node) -> Iterator[tuple[KeyPath, str, Node]]:
    """Gives the path of each number that has targets, its name, and the targets by tier."""
    for place, row in enumerate(_listed(root.child("rows"))):
        for key in TARGET_KEYS:
            for number, targets in _entries(row.child(key)):
                yield ("rows", place, key, number), number, targets


def _listed(node: Node | None) -> list[Node]:
    return node.content if node is not None and isinstance(node.content, list) else []


def _entries(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.content.items()) if node is not None and isinstance(node.content, dict) else []


def _fault(node: Node, path: KeyPath, expectation: str, hint: str = "") -> ConfigFault:
    got = "" if isinstance(node.content, dict) else short(node.plain())
    return ConfigFault(str(node.origin), show_path(path), expectation, got, hint)
