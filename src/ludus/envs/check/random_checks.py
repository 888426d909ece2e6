"""Checks of randomness: games depend on their seed and index, and on nothing else."""

from collections.abc import Iterator

import torch

from ludus.core.errors import ConformanceError
from ludus.envs.check.probe import Frame, Probe, frame_difference, observation_frame, record_difference
from ludus.envs.check.report import NotApplicableError

_TRIES = 8  # in a world of few possibilities, two seeds may give the same game by chance


def _whole_record(probe: Probe, seed: int | None = None) -> list[Frame]:
    """Returns first observations and steps of a new batch."""
    with probe.open(seed=seed) as env:
        first = observation_frame(env.reset())
        return [first, *probe.record(env, 0, probe.options.steps)]


def check_equal_seeds(probe: Probe) -> Iterator[str]:
    """Equal seeds and actions give equal games, from the start or through `reset(seed=...)`."""
    probe.need_repeatable()
    record = _whole_record(probe)
    difference = record_difference(record, _whole_record(probe))
    if difference is not None:
        yield f"two batches of the same seed: {difference}"
    new, used = _seeded_record(probe, used=False), _seeded_record(probe, used=True)
    difference = record_difference(new, used)
    if difference is not None:
        yield f"reset(seed=...) after some play is not the same as in a new batch: {difference}"


def _seeded_record(probe: Probe, *, used: bool) -> list[Frame]:
    """Returns what comes after `reset(seed=...)` of a batch of another seed, new or with some episodes behind it."""
    with probe.open(seed=probe.options.seed + 1) as env:
        if used:
            for _ in range(2):
                env.reset()
                probe.record(env, 0, 7)
        first = observation_frame(env.reset(seed=probe.options.seed))
        if env.seed != probe.options.seed:
            raise ConformanceError(f"env.seed is {env.seed} after reset(seed={probe.options.seed})")
        return [first, *probe.record(env, 0, probe.options.steps)]


def check_different_seeds(probe: Probe) -> Iterator[str]:
    """Different seeds give different games, and so do different game indices."""
    probe.need_repeatable()
    if not probe.options.random:
        raise NotApplicableError("the world was declared to have no randomness (CheckOptions.random)")
    record = _whole_record(probe)
    others = range(probe.options.seed + 1, probe.options.seed + 1 + _TRIES)
    if all(record_difference(record, _whole_record(probe, seed)) is None for seed in others):
        yield f"seeds {probe.options.seed} ... {others[-1]} all give the same games"
    if probe.num_games > 1 and all(_games_alike(probe, seed) for seed in others):
        yield "all games of a batch are alike: randomness must depend on the game index (first_game + i)"


def _games_alike(probe: Probe, seed: int) -> bool:
    """Says whether all games of a batch look the same when they are given the same actions."""
    games = range(1, probe.num_games)
    with probe.open(seed=seed) as env:
        frame = observation_frame(env.reset())
        for step in range(probe.options.steps):
            if any(frame_difference(frame, frame, [game], shift=game) is not None for game in games):
                return False
            actions = probe.actions(env, step)
            frame = observation_frame(env.step(actions[:1].expand_as(actions).clone()).observations)
    return True


def check_batch(probe: Probe) -> Iterator[str]:
    """A batch of N games equals N batches of one, bit for bit, with random keys and with bots."""
    probe.need_repeatable()
    if probe.num_games < 2:
        raise NotApplicableError("the world has only one game")
    for bots in (False, True) if probe.spec.bots else (False,):
        players = "bots" if bots else "random actions"
        with probe.open() as env:
            together = [observation_frame(env.reset()), *probe.record(env, 0, probe.options.steps, bots=bots)]
        for game in range(probe.num_games):
            with probe.open(games=1, first_game=game) as env:
                first = observation_frame(env.reset())
                alone = [first, *probe.record(env, 0, probe.options.steps, row=game, bots=bots)]
            difference = record_difference(together, alone, [game], shift=game)
            if difference is not None:
                yield f"with {players}, a game alone is not the game in a batch of {probe.num_games}: {difference}"
                break


def check_inputs(probe: Probe) -> Iterator[str]:
    """`step` leaves the actions and `reset` leaves the mask as they were given."""
    with probe.open() as env:
        env.reset()
        for step in range(probe.options.steps):
            actions = probe.actions(env, step)
            kept = actions.clone()
            env.step(actions)
            if not torch.equal(actions, kept):
                yield f"step wrote into the actions it was given, in step {step}"
                break
        mask = torch.arange(env.num_games, device=env.device) % 2 == 0
        kept = mask.clone()
        env.reset(mask)
        if not torch.equal(mask, kept):
            yield "reset wrote into the mask it was given"
