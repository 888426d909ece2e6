"""Promise 2: a save that is cut off anywhere leaves the old checkpoint or the new one, never neither.

Three ways: every system call of a save fails once, the process stops at every system call, and a real process is
killed in the middle of its saves. And the order of the calls is right: nothing is renamed before it is on the
disk, nothing old is deleted before the new name is on the disk.
"""

import errno
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import StoreError
from ludus.store import Checkpoint, CheckpointStore, load_checkpoint

pytestmark = pytest.mark.fault

CALLS = ("open", "write", "fsync", "close", "mkdir", "rename", "replace", "unlink", "rmdir")


class Stopped(BaseException):
    """Stands for the end of the process: nothing catches it, and nothing on the disk changes after it."""


class Faults:
    """Counts the calls that change the disk, and lets them fail from a given one on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.trace: list[tuple[str, str]] = []
        self._fails: Callable[[int], BaseException | None] = lambda _: None
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def start(self, fails: Callable[[int], BaseException | None]) -> None:
        self.count, self._fails = 0, fails
        self.trace.clear()

    def _wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            target = str(arguments[0])
            if name in ("fsync", "write", "close"):
                target = ("folder " if stat.S_ISDIR(os.fstat(arguments[0]).st_mode) else "file ") + target
            self.count += 1
            self.trace.append((name, target))
            error = self._fails(self.count)
            if error is not None:
                if name == "close":  # a close that fails still closes
                    call(*arguments)
                raise error
            return call(*arguments, **options)

        return wrapper


def content(value: int) -> Checkpoint:
    return Checkpoint(
        tensors={"policy": {"weight": torch.full((5,), float(value))}, "optimizer": {"m": torch.full((2,), value)}},
        documents={"counters": {"value": value}},
    )


def value_of(checkpoint: Checkpoint) -> int:
    """Returns the one value that every part of the checkpoint must agree on."""
    values = {
        *checkpoint.tensors["policy"]["weight"].tolist(),
        *checkpoint.tensors["optimizer"]["m"].tolist(),
        checkpoint.documents["counters"]["value"],  # type: ignore[call-overload, index]
    }
    assert len(values) == 1
    return int(values.pop())


def fresh_store(root: Path) -> CheckpointStore:
    store = CheckpointStore(root, keep=1, report=lambda _: None)
    store.save("step-1", 1, content(1))
    store.save("best", 2, content(2))
    return store


def fail_once(call: int) -> Callable[[int], BaseException | None]:
    return lambda count: OSError(errno.EIO, "input/output error") if count == call else None


def fail_from(call: int) -> Callable[[int], BaseException | None]:
    return lambda count: OSError(errno.EIO, "input/output error") if count >= call else None


def stop_at(call: int) -> Callable[[int], BaseException | None]:
    return lambda count: Stopped() if count >= call else None


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    with monkeypatch.context() as patch:
        yield Faults(patch)


@pytest.mark.parametrize("mode", [fail_once, fail_from, stop_at], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("name", ["best", "step-2"])
def test_a_fault_at_every_call_leaves_old_or_new(
    tmp_path: Path, faults: Faults, mode: Callable[[int], Callable[[int], BaseException | None]], name: str
) -> None:
    fresh_store(tmp_path / "fresh")
    call = 0
    while True:
        call += 1
        shutil.copytree(tmp_path / "fresh", tmp_path / str(call))
        store = CheckpointStore(tmp_path / str(call), keep=1, report=lambda _: None)
        faults.start(mode(call))
        saved = True
        try:
            store.save(name, 3, content(3))
        except (StoreError, Stopped):
            saved = False
        reached = faults.count >= call
        faults.start(lambda _: None)

        latest = store.latest_valid()
        assert latest is not None, f"nothing is left after a fault at call {call}"
        assert value_of(latest.checkpoint) in ({3} if saved else {2, 3})
        assert value_of(load_checkpoint(store.root / "best")) in (2, 3), "the best one was lost"
        assert latest.step == value_of(latest.checkpoint)

        store.save(name, 4, content(4))  # the store works on, and tidies up
        assert value_of(store.load(name).checkpoint) == 4
        assert not [path.name for path in store.root.iterdir() if path.name.startswith(".ludus")]
        if not reached:
            break
    assert call > 30, "a save has more calls than that: faults are not injected everywhere"


def test_everything_is_on_the_disk_before_it_gets_its_name_and_before_the_old_one_goes(
    tmp_path: Path, faults: Faults
) -> None:
    store = fresh_store(tmp_path)
    faults.start(lambda _: None)
    store.save("best", 3, content(3))
    steps = [name if name in ("write", "rename", "rmdir", "unlink") else f"{name} {target.split()[0]}"
             for name, target in faults.trace if name in ("write", "fsync", "rename", "rmdir", "unlink")]  # fmt: skip
    order = [step for position, step in enumerate(steps) if position == 0 or step != steps[position - 1]]
    assert order[:8] == ["write", "fsync file"] * 4, "each of the 3 files, then the manifest, is written and fsynced"
    renames = [position for position, step in enumerate(steps) if step == "rename"]
    aside, published, doomed = renames
    assert "fsync folder" in steps[:aside], "the new folder's names are fsynced before any rename"
    assert steps[aside:published] == ["rename"], "nothing comes between the two renames"
    assert "fsync folder" in steps[published:doomed], "the new name is fsynced before the old one is touched"
    assert all(position > doomed for position, step in enumerate(steps) if step in ("unlink", "rmdir"))


# The child imports once and then forks a saver a round; the saver says through a pipe what has been saved.
KILLER = """
    import os, random, signal, sys, time
    from pathlib import Path
    import torch
    from ludus.store import Checkpoint, CheckpointStore

    torch.set_num_threads(1)
    root, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    store = CheckpointStore(root, keep=2, report=lambda text: None)

    def content(value):
        tensors = {f"part{i}": {"weight": torch.full((40_000,), float(value))} for i in range(3)}
        return Checkpoint(tensors, {"counters": value})

    def check(name):
        stored = store.load(name)
        value = stored.checkpoint.documents["counters"]
        assert stored.step == value
        assert all((part["weight"] == value).all() for part in stored.checkpoint.tensors.values())
        return value

    value = 0
    store.save("best", value, content(value))
    inside = 0
    for round_number in range(rounds):
        reader, writer = os.pipe()
        saver = os.fork()
        if saver == 0:
            while True:
                value += 1
                store.save("best" if value % 2 else f"step-{value}", value, content(value))
                os.write(writer, b"%d\\n" % value)
        os.close(writer)
        first = os.read(reader, 1 << 16)  # at least one save is done
        time.sleep(chance.uniform(0, 0.03))
        os.kill(saver, signal.SIGKILL)
        os.waitpid(saver, 0)
        done = int((first + os.read(reader, 1 << 16)).split()[-1])
        os.close(reader)
        inside += any(path.name.startswith(".ludus") for path in root.iterdir())
        latest = store.latest_valid()
        assert latest is not None and latest.step in (done, done + 1), (latest and latest.step, done)
        assert check(latest.name) == latest.step
        assert check("best") in ((done,) if done % 2 else (done - 1, done + 1))
        value = latest.step
    print(inside)
"""


def test_kill_9_in_the_middle_of_saves(tmp_path: Path) -> None:
    rounds = 30
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLER), str(tmp_path / "store"), str(rounds), "7"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) >= rounds // 10, "too few kills fell inside a save to prove anything"
