"""States of a run on several processes: collected by the one that saves, handed out by the one that reads."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from torch import Tensor

from ludus.policies.memory import part_of, with_prefix
from ludus.training.callbacks import Counters
from ludus.training.checkpointing import Saved
from ludus.training.ranks import Ranks
from ludus.training.workbench import RunState

_COMMON = ("policy", "optimiser")  # equal on all processes: every update joins their gradients and statistics


def collect_parts(ranks: Ranks, state: RunState) -> tuple[Mapping[str, Tensor], ...]:
    """Returns to the writer what the processes from rank 1 have of their own; nothing to the others."""
    if ranks.is_writer:
        return tuple(ranks.receive_tensors(rank) for rank in range(1, ranks.place.count))
    own = {name: tensors for name, tensors in state.tensors.items() if name not in _COMMON}
    ranks.send_tensors(_flat(own), 0)
    return ()


def hand_out(ranks: Ranks, saved: Saved | None) -> Saved | None:
    """Gives every process its own state of a checkpoint that the writer has read; None to all if there is none."""
    if ranks.place.count == 1:
        return saved
    head = None if saved is None else [
        asdict(saved.counters), saved.rollbacks, dict(saved.state.learner), dict(saved.state.course),
    ]  # fmt: skip

    told = json.loads(ranks.gather_texts(json.dumps(head))[0])
    if told is None:
        return None
    if saved is not None:
        common = _flat({name: saved.state.tensors[name] for name in _COMMON})
        for rank, part in enumerate(saved.parts, 1):
            ranks.send_tensors({**common, **part}, rank)
        return saved
    counters, rollbacks, learner, course = told
    flat = ranks.receive_tensors(0)
    groups = {name: part_of(flat, name) for name in sorted({name.partition(".")[0] for name in flat})}
    return Saved(RunState(groups, learner, course), Counters(**counters), rollbacks, offsets={})


def _flat(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    flat: dict[str, Tensor] = {}
    for name, tensors in groups.items():
        flat |= with_prefix(name, tensors)
    return flat
