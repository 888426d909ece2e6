"""Matches as trajectory logs that a report's page can draw; see `ludus.envs.display`."""

from collections.abc import Sequence
from pathlib import Path

from ludus.core.errors import ReplayError
from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.display import SCALE, ReplayView, TrajectoryLog
from ludus.envs.replay import Replay, replay_env, resimulate
from ludus.envs.world import known_world, registered_worlds, resolve
from ludus.evaluation.frame_rates import steps_per_frame
from ludus.evaluation.live_match import LiveMatch

MOST_STEPS = 20_000


def replay_view_of(world: str) -> ReplayView | None:
    """Return how a page draws the matches of a world; None if it cannot."""
    record = known_world(world)
    return None if record is None or record.replay_view is None else resolve(record.replay_view)


def drawn_worlds() -> tuple[str, ...]:
    """Return the names of the worlds whose matches a page can draw."""
    return tuple(world.name for world in registered_worlds() if world.replay_view is not None)


def match_trajectory(match: LiveMatch, title: str) -> dict[str, JSON] | None:
    """Play a match to its end and return its trajectory log; None for worlds without a replay view."""
    env = match.env
    log = _make_log(env)
    if log is None:
        return None
    every = steps_per_frame(env.spec.rate_hz)
    log.record()
    outcome = None
    while outcome is None and match.steps < MOST_STEPS:
        outcome = match.step()
        if outcome is None and match.steps % every == 0:  # a match that ended has restarted
            log.record()
    said = "it was not over" if outcome is None else outcome.describe(match.sides)
    return _described(log, env, match.names, title, said)


def replay_trajectory(file: Path) -> dict[str, JSON] | None:
    """Play a recorded game again and return its trajectory log; None for worlds without a replay view.

    Raises:
        ReplayError: The file cannot be used, is too long for a page, or the game does not go as recorded.
    """
    replay = Replay.load(file)
    if replay.steps > MOST_STEPS:
        raise ReplayError(
            f"replay {file} has {replay.steps:,} steps, a page shows at most {MOST_STEPS:,}; "
            f"watch it with: ludus replay {file}"
        )
    with replay_env(replay) as env:
        log = _make_log(env)
        if log is None:
            return None
        every = steps_per_frame(env.spec.rate_hz)
        log.record()
        for step, result in enumerate(resimulate(replay, env), 1):
            if step % every == 0 and not bool(result.ended[0]):
                log.record()
        return _described(log, env, replay.players, file.name, f"{replay.steps} steps")


def _described(log: TrajectoryLog, env: BatchedEnv, players: Sequence[str], title: str, said: str) -> dict[str, JSON]:
    return {
        "world": env.spec.name,
        "title": title,
        "result": said,
        "players": list(players),
        "rate_hz": env.spec.rate_hz / steps_per_frame(env.spec.rate_hz),
        "scale": SCALE,
        **log.content(),
    }


def _make_log(env: BatchedEnv) -> TrajectoryLog | None:
    view = replay_view_of(env.spec.id)
    return None if view is None else view.log(env)
