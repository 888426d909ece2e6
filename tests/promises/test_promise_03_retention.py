"""Promise 3: retention deletes only after a success, never the newest valid, named or protected; foreign files stay."""

import errno
import os
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ludus.core.errors import CheckpointError, StoreError
from ludus.store import NAMED, Checkpoint, CheckpointStore, step_name, verify_checkpoint

NAMES = [*NAMED, *(step_name(step) for step in range(6))]
FOREIGN = ["notes.txt", "Mine", "backup.zip"]

SAVES = st.tuples(st.just("save"), st.sampled_from(NAMES), st.none())
FAILURES = st.tuples(st.just("fail"), st.sampled_from(NAMES), st.integers(1, 40))
DAMAGES = st.tuples(st.just("damage"), st.sampled_from(NAMES), st.sampled_from(["flip", "cut", "lose manifest"]))
PRUNES = st.tuples(st.just("prune"), st.integers(1, 3), st.sets(st.sampled_from(NAMES), max_size=3))


def content(value: int) -> Checkpoint:
    return Checkpoint(tensors={"policy": {"weight": torch.full((3,), float(value))}}, documents={"counters": value})


def valid_names(store: CheckpointStore) -> list[str]:
    """Returns the whole checkpoints, the one saved last first."""
    found = []
    for name in store.names():
        try:
            found.append((verify_checkpoint(store.root / name).sequence, name))
        except CheckpointError:
            continue
    return [name for _, name in sorted(found, reverse=True)]


def damage(folder: Path, how: str) -> None:
    if not (folder / "manifest.json").exists():
        return
    if how == "lose manifest":
        (folder / "manifest.json").unlink()
    else:
        path = folder / "policy.safetensors"
        data = path.read_bytes()
        path.write_bytes(data[:-1] + (bytes([data[-1] ^ 1]) if how == "flip" and data else b""))


def save_with_a_fault(store: CheckpointStore, name: str, step: int, call: int) -> bool:
    """Saves while one write, fsync or rename fails; returns whether the save succeeded nevertheless."""
    count = 0
    with pytest.MonkeyPatch.context() as patch:
        for system_call in ("write", "fsync", "rename"):
            original = getattr(os, system_call)

            def wrapper(*arguments: object, original: object = original) -> object:
                nonlocal count
                count += 1
                if count == call:
                    raise OSError(errno.EIO, "input/output error")
                return original(*arguments)  # type: ignore[operator]

            patch.setattr(os, system_call, wrapper)
        try:
            store.save(name, step, content(step))
        except StoreError:
            return False
    return True


def saves(*names: str) -> list[tuple[str, object, object]]:
    return [("save", name, None) for name in names]


@example(3, [*saves("step-1", "step-2", "step-3"), ("damage", "step-3", "flip"), ("damage", "step-2", "flip"),
             ("prune", 1, set())])  # fmt: skip
@example(1, [*saves("best", "step-1", "step-2", "step-3"), ("prune", 1, set())])
@settings(max_examples=60)
@given(st.integers(1, 3), st.lists(SAVES | FAILURES | DAMAGES | PRUNES, min_size=1, max_size=14))
def test_nothing_is_deleted_that_must_stay(keep: int, operations: list[tuple[str, object, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in FOREIGN:
            (root / name).write_text(name)
        store = CheckpointStore(root, keep=keep, report=lambda _: None)
        for step, (kind, first, second) in enumerate(operations):
            before, valid_before = set(store.names()), valid_names(store)
            if kind == "save":
                assert isinstance(first, str)
                store.save(first, step, content(step))
                after = set(store.names())
                assert valid_names(store)[0] == first, "what was just saved is valid and the newest"
                assert before & {*NAMED} <= after
                assert {*valid_before[:1]} & {*NAMED, first} <= after
                assert len(set(valid_names(store)) - {*NAMED} - {first}) <= keep
            elif kind == "fail":
                assert isinstance(first, str)
                assert isinstance(second, int)
                if not save_with_a_fault(store, first, step, second):
                    assert before <= set(store.names()), "a save that failed deleted something"
                    assert set(valid_before) <= set(valid_names(store)), "a save that failed damaged something"
            elif kind == "damage":
                damage(root / str(first), str(second))
            else:
                assert isinstance(first, int)
                assert isinstance(second, set)
                deleted = store.prune(first, protected=second)
                assert not {*deleted} & ({*NAMED} | second | {*valid_before[:1]})
                assert before - {*deleted} == set(store.names())
                assert not deleted or valid_before, "without any valid checkpoint nothing may go"
            assert all((root / name).read_text() == name for name in FOREIGN)
