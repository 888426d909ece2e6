"""Matches of an agent as trajectory logs, for the report and for the live page."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ludus.core.errors import UnsupportedError

if TYPE_CHECKING:
    from ludus.core.files import JSON
    from ludus.reports.page.runs import Group

HARDEST = 3  # opponents that are played if none is named


def drawn_note() -> str:
    """Say which worlds a page draws."""
    from ludus.evaluation.trajectory import drawn_worlds

    return f"a page draws matches of {', '.join(drawn_worlds())}"


def play_matches(name: str, agent: Path, opponents: Sequence[str], seeds: Sequence[int]) -> "Iterator[dict[str, JSON]]":
    """Play one match per opponent and seed, and yield its trajectory log.

    Args:
        name: Name of the agent in titles.
        agent: Run folder or checkpoint.
        opponents: Opponents, or scenarios of an agent that is alone; the world's first ones if empty.
        seeds: Seeds of the matches.

    Raises:
        UnsupportedError: A page does not draw matches of this world.
    """
    from ludus.evaluation.display import display_settings, make_shown_env, shown_settings
    from ludus.evaluation.live_match import LiveMatch
    from ludus.evaluation.players import Player, find_player, load_playable_agent, seat_by_team
    from ludus.evaluation.trajectory import match_trajectory

    loaded = load_playable_agent(str(agent))
    is_alone, shown = len(set(loaded.spec.teams)) == 1, shown_settings(loaded.spec.id, loaded.stored)
    if is_alone:
        opponents = opponents or [""]
    elif not opponents:  # it was never evaluated
        with make_shown_env(loaded.spec.id, settings=display_settings(loaded.spec.id, shown)) as env:
            opponents = env.spec.bots[:HARDEST]
    for opponent in opponents:
        for seed in seeds:
            settings = display_settings(loaded.spec.id, shown, (opponent or None) if is_alone else None)
            with make_shown_env(loaded.spec.id, seed=seed, settings=settings, left_first=True) as env:
                contenders = [Player(str(agent), loaded.policy)]
                if not is_alone:
                    contenders.append(find_player(opponent, env))
                players = seat_by_team(env, contenders, seed=seed)
                what = (f": {opponent}" if opponent else "") if is_alone else f" against {opponent}"
                strip = match_trajectory(LiveMatch(env, players), f"{name}{what}, match {seed + 1}")
            if strip is None:
                raise UnsupportedError(
                    f"{drawn_note()}, not {loaded.spec.id}; film it with: ludus demo {agent} --video match.mp4"
                )
            yield strip


def hardest_opponents(group: "Group") -> list[str]:
    """Return the opponents that won most in the last evaluation, or the first scenarios; empty if there was none."""
    from ludus.reports.page.evaluations import WIN_RATE, read_evaluations

    found = read_evaluations(group)
    if found is None:
        return []
    if WIN_RATE not in found.lines or found.kind == "trial":
        return [label for label in found.labels[:HARDEST] if label]
    last = {label: float(line.value[-1]) for label, line in found.lines[WIN_RATE].items() if len(line.value)}
    hardest = sorted((label for label in last if label), key=lambda label: last[label])
    return list(dict.fromkeys(found.opponents[label] for label in hardest))[:HARDEST]
