"""The pool: who leaves for whom, and slots that stay with their snapshots."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus import make_env
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.league.pool import SnapshotPool
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

SPEC = make_env("duel", 1).spec
POLICY = Policy(SPEC, PolicyConfig.model_validate({"net_arch": {"pi": [], "vf": []}}))


def test_the_oldest_leaves_that_nobody_plays_with() -> None:
    pool = SnapshotPool(POLICY, keep=3)
    state = POLICY.state()
    assert [pool.add(f"s{i}", i, state, ()) for i in range(3)] == [None, None, None]
    assert pool.names() == ("s0", "s1", "s2")
    assert pool.add("s3", 3, state, in_use={0}) == "s1"
    assert pool.names() == ("s0", "s3", "s2")
    assert [snapshot.name for snapshot in pool.snapshots] == ["s0", "s2", "s3"]
    # All but the newest are playing, and the newest never leaves: the new one is not taken.
    assert pool.add("s4", 4, state, in_use={0, 2}) == "s4"
    assert pool.names() == ("s0", "s3", "s2")
    assert pool.remove("s2").slot == 2
    assert pool.add("s4", 4, state, in_use={0, 1}) is None
    assert pool.find("s4").slot == 2
    assert not pool.is_empty


def test_a_slot_can_be_named_to_give_a_snapshot_back() -> None:
    pool = SnapshotPool(POLICY, keep=3)
    pool.add("s5", 5, POLICY.state(), (), slot=2)
    pool.add("s1", 1, POLICY.state(), (), slot=0)
    assert pool.names() == ("s1", "", "s5")
    assert [snapshot.name for snapshot in pool.snapshots] == ["s1", "s5"]
    assert pool.add("s5", 5, POLICY.state(), (), slot=2) is None
    assert pool.add("s6", 6, POLICY.state(), (), slot=2) == "s5"


def test_what_cannot_be_is_refused() -> None:
    pool = SnapshotPool(POLICY, keep=2)
    pool.add("s0", 0, POLICY.state(), ())
    for name in ("", "s0"):
        with pytest.raises(ConfigError, match="own name"):
            pool.add(name, 1, POLICY.state(), ())
    with pytest.raises(UnknownNameError, match="did you mean 's0'"):
        pool.remove("s1")
    with pytest.raises(StateError, match="same policy config"):
        pool.add("s1", 1, {"parameter.x": torch.zeros(1)}, ())
    with pytest.raises(ConfigError, match="slot 2"):
        pool.add("s1", 1, POLICY.state(), (), slot=2)
    assert pool.names() == ("s0", "")


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.lists(st.sets(st.integers(0, 4)), max_size=20))
def test_players_and_the_newest_never_leave(keep: int, uses: list[set[int]]) -> None:
    pool = SnapshotPool(POLICY, keep)
    state = POLICY.state()
    for i, in_use in enumerate(uses):
        before = {snapshot.name: snapshot for snapshot in pool.snapshots}
        newest = pool.snapshots[-1].name if before else ""
        evicted = pool.add(f"s{i}", i, state, in_use)
        after = {snapshot.name: snapshot for snapshot in pool.snapshots}
        assert len(after) == min(keep, len(before) + (evicted != f"s{i}"))
        assert len({snapshot.slot for snapshot in after.values()}) == len(after)
        gone = set(before) - set(after)
        assert gone == ({evicted} - {None, f"s{i}"})
        assert newest not in gone
        assert all(before[name].slot not in in_use for name in gone)
        assert all(after[name] == before[name] for name in set(before) & set(after))
