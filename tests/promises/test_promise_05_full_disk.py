"""Promise 5: on a full disk the previous checkpoint stays intact, the error is typed, and saving again works."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.commands import Commands

from ludus.core.errors import StoreFullError
from ludus.store import Checkpoint, CheckpointStore


def content(value: int, size: int) -> Checkpoint:
    return Checkpoint(tensors={"policy": {"weight": torch.full((size,), float(value))}}, documents={"counters": value})


# A child process, because a limit on file sizes would also hit whatever else the test process writes.
LIMITED = """
    import resource, sys
    from pathlib import Path
    import torch
    from ludus.core.errors import StoreFullError
    from ludus.store import Checkpoint, CheckpointStore

    def content(value, size):
        return Checkpoint({"policy": {"weight": torch.full((size,), float(value))}}, {"counters": value})

    root = Path(sys.argv[1])
    store = CheckpointStore(root, keep=1, report=print)
    store.save("best", 1, content(1, 1000))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    for name in ("best", "step-2"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            store.save(name, 2, content(2, 50_000))
        except StoreFullError as error:
            assert "free some space and try again" in str(error), error
        else:
            raise SystemExit("the limit was not felt")
        assert sorted(path.name for path in root.iterdir()) == ["best"], list(root.iterdir())
        latest = store.latest_valid()
        assert latest.step == 1 and latest.checkpoint.documents["counters"] == 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store.save("best", 3, content(3, 50_000))
    assert store.latest_valid().step == 3
    assert sorted(path.name for path in root.iterdir()) == ["best"]
"""


def test_a_limit_on_file_sizes_is_survived_and_the_next_save_works(tmp_path: Path, commands: Commands) -> None:
    program = tmp_path / "limited.py"
    program.write_text(textwrap.dedent(LIMITED))
    code, said = commands.run(program, tmp_path / "store")
    assert code == 0, said
    assert said == "", "nothing had to be reported"


def test_a_disk_that_is_really_full_is_survived_and_the_next_save_works(small_disk: Any) -> None:
    reports: list[str] = []
    store = CheckpointStore(small_disk.path / "store", keep=1, report=reports.append)
    store.save("best", 1, content(1, 10_000))
    small_disk.fill()
    for name in ("best", "step-2"):
        with pytest.raises(StoreFullError, match="No space left on device"):
            store.save(name, 2, content(2, 50_000))
        assert [path.name for path in store.root.iterdir()] == ["best"]
        latest = store.latest_valid()
        assert latest is not None
        assert latest.step == 1
    small_disk.empty()
    store.save("step-2", 2, content(2, 50_000))
    latest = store.latest_valid()
    assert latest is not None
    assert latest.step == 2
    assert reports == []
