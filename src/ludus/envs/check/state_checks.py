"""Checks of snapshots: a restored game has the same future, and a foreign snapshot is refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ludus.core.errors import SnapshotError, UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.check.probe import Frame, Probe, frame_difference, observation_frame, record_difference
from ludus.envs.check.report import NotApplicableError


@dataclass(frozen=True, slots=True)
class _Known:
    """A snapshot in the middle of play, what was seen then, and what came after it."""

    snapshot: Mapping[str, Tensor]
    seen: Frame
    future: list[Frame]
    bots: bool

    @property
    def players(self) -> str:
        return "bots" if self.bots else "random actions"


def check_snapshot(probe: Probe) -> Iterator[str]:
    """A restored game has the same past and the same future, bit for bit, also in another batch."""
    probe.need_repeatable()
    if not probe.spec.snapshots:
        raise NotApplicableError("spec.snapshots is False")
    count = probe.options.steps
    for bots in (False, True) if probe.spec.bots else (False,):
        with probe.open() as env:
            seen = observation_frame(env.reset())
            for frame in probe.record(env, 0, count, bots=bots):
                seen = {name: frame[name] for name in seen}
            taken = env.snapshot()
            copied = {name: tensor.clone() for name, tensor in taken.items()}
            known = _Known(copied, seen, probe.record(env, count, count, bots=bots), bots)
            if any(not torch.equal(taken[name], copied[name]) for name in copied):
                yield "later steps write into the snapshot"
            yield from _restore_faults(probe, env, known, "the same batch")
        with probe.open(seed=probe.options.seed + 1) as env:
            env.reset()
            yield from _restore_faults(probe, env, known, "another batch")


def _restore_faults(probe: Probe, env: BatchedEnv, known: _Known, where: str) -> Iterator[str]:
    given = {name: tensor.clone() for name, tensor in known.snapshot.items()}
    difference = frame_difference(known.seen, observation_frame(env.restore(given)))
    if difference is not None:
        yield f"restore in {where} does not return the observations of the snapshot: {difference}"
    count = probe.options.steps
    difference = record_difference(known.future, probe.record(env, count, count, bots=known.bots))
    if difference is not None:
        yield f"after restore in {where}, play goes on differently (with {known.players}): {difference}"
    if any(not torch.equal(given[name], known.snapshot[name]) for name in given):
        yield f"play after restore in {where} writes into the snapshot that was given"


def check_foreign_snapshot(probe: Probe) -> Iterator[str]:
    """A snapshot that does not fit is refused with SnapshotError, and without support with UnsupportedError."""
    with probe.open() as env:
        env.reset()
        if not probe.spec.snapshots:
            try:
                env.snapshot()
            except UnsupportedError:
                return
            yield "spec.snapshots is False, but snapshot() does not raise UnsupportedError"
            return
        snapshot = env.snapshot()
    name = sorted(snapshot)[0]
    foreign = {
        "of nothing": {},
        f"without {name!r}": {key: tensor for key, tensor in snapshot.items() if key != name},
        "with a name too many": snapshot | {"a foreign name": torch.zeros(1)},
    }
    for kind, given in foreign.items():
        with probe.open() as env:
            yield from _refusal_faults(env, given, kind)
    if probe.spec.max_games is None or probe.num_games < probe.spec.max_games:
        with probe.open(games=probe.num_games + 1) as env:
            yield from _refusal_faults(env, snapshot, "of another number of games")


def _refusal_faults(env: BatchedEnv, snapshot: Mapping[str, Tensor], kind: str) -> Iterator[str]:
    try:
        env.restore(snapshot)
    except SnapshotError:
        return
    except Exception as error:
        yield f"restore of a snapshot {kind} raises {type(error).__name__}, not SnapshotError: {error}"
        return
    yield f"restore accepts a snapshot {kind}"
