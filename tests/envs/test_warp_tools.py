"""Prepared launches: parts for several threads, memory that callers hand in, failures in helpers."""

import importlib
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
import warp as wp

from ludus.core.errors import UnsupportedError
from ludus.envs import warp_tools
from ludus.envs.warp_tools import Launcher, shrinking_parts

pytestmark = pytest.mark.compile

CPU = torch.device("cpu")


@wp.kernel
def add_index_kernel(source: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32), first: int) -> None:  # type: ignore[valid-type]
    game = wp.tid() + first  # type: ignore[operator]
    out[game] = source[game] + wp.float32(game)


@pytest.mark.parametrize(
    ("games", "sharers", "smallest", "expected"),
    [
        (1000, 1, 64, [0, 1000]),
        (0, 1, 64, [0, 0]),
        (
            1024,
            2,
            64,
            [0, 256, 448, 592, 700, 781, 845, 909, 973, 1024],
        ),  # quarters of the rest, then 64s, then what is left
        (5, 2, 1, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_parts_get_smaller(games: int, sharers: int, smallest: int, expected: list[int]) -> None:
    assert shrinking_parts(games, sharers, smallest) == expected


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_game_is_run_once_whatever_the_threads(threads: int) -> None:
    games = 5000
    source, out = torch.full((games,), 0.5), torch.zeros(games)
    launcher = Launcher(CPU, threads)
    run = launcher.prepare(games, (add_index_kernel, [wp.from_torch(source), wp.from_torch(out)]))
    for _ in range(50):
        out.zero_()
        run()
        assert torch.equal(out, torch.arange(games) + 0.5)
    launcher.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_argument_can_point_to_other_memory(threads: int) -> None:
    games = 600
    first, out = torch.zeros(games), torch.zeros(games)
    launcher = Launcher(CPU, threads)
    run = launcher.prepare(games, (add_index_kernel, [wp.from_torch(first), wp.from_torch(out)]))
    for value in (3.0, 7.0):
        other, result = torch.full((games,), value), torch.full((games,), -1.0)
        run.point("source", other)
        run.point("out", result)
        run()
        assert torch.equal(result, torch.arange(games) + value)
    assert out.abs().sum() == 0
    launcher.close()


def test_a_closed_launcher_runs_nothing_on_several_threads() -> None:
    games = 600
    numbers = torch.zeros(games)
    launcher = Launcher(CPU, 2)
    run = launcher.prepare(games, (add_index_kernel, [wp.from_torch(numbers), wp.from_torch(numbers)]))
    launcher.close()
    launcher.close()
    with pytest.raises(UnsupportedError, match="closed"):
        run()


def team(helpers: int) -> "warp_tools._Team":
    return warp_tools._Team(helpers)


def test_what_goes_wrong_in_a_helper_is_raised_and_the_next_job_is_unharmed() -> None:
    threads = team(2)
    caller = threading.get_ident()
    done: list[int] = []

    def fail_elsewhere() -> None:
        time.sleep(0.002)
        if threading.get_ident() != caller:
            raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        threads.share([[fail_elsewhere]] * 30, 2)
    threads.share([[lambda: done.append(1)]] * 30, 2)
    assert sum(done) == 30
    threads.end()


def test_nobody_waits_for_a_helper_that_has_not_begun() -> None:
    threads = team(1)
    begun, released = threading.Event(), threading.Event()

    def hold_the_helper() -> None:
        if threading.current_thread().name == "ludus-sim":
            begun.set()
            released.wait()
        else:
            begun.wait()

    held = threading.Thread(target=threads.share, args=([[hold_the_helper]] * 2, 1))
    held.start()
    begun.wait()
    done: list[int] = []
    other = threading.Thread(target=threads.share, args=([[lambda: done.append(1)]] * 3, 1))
    other.start()
    other.join(timeout=10)
    finished = not other.is_alive()
    released.set()
    held.join()
    other.join()
    assert finished
    assert sum(done) == 3
    threads.end()


KERNELS = """
import warp as wp

@wp.kernel
def fill_kernel(out: wp.array[wp.float32], first: int):
    out[wp.tid() + first] = {value}
"""


def test_modules_that_come_next_compile_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(warp_tools, "COMPILE_NOTE_AFTER_S", 0.05)
    monkeypatch.setattr(warp_tools, "host_threads", lambda _: 8)
    monkeypatch.syspath_prepend(tmp_path)
    names = ("kernels_of_one", "kernels_of_two")
    for value, name in enumerate(names, 1):
        (tmp_path / f"{name}.py").write_text(KERNELS.format(value=float(value)))
    one, two = (importlib.import_module(name) for name in names)
    warp_tools.load_kernels(one, CPU, soon=(two,))
    assert "Compiling the kernels 'kernels_of_one' for cpu" in caplog.text
    warp_tools.load_kernels(two, CPU)  # waits for what the first call began
    assert not any(thread.name.startswith("ludus-kernels") for thread in threading.enumerate())
    compiled = sorted(path.name.rpartition("_")[0] for path in (tmp_path / "cache").iterdir())
    assert compiled == [f"wp_{name}" for name in names]
    out = torch.zeros(5)
    for module, expected in ((one, 1.0), (two, 2.0)):
        Launcher(CPU, 1).prepare(5, (module.fill_kernel, [wp.from_torch(out)]))()
        assert out.tolist() == [expected] * 5


def test_several_modules_load_side_by_side_and_a_fault_in_one_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_tools, "host_threads", lambda _: 8)
    here = sys.modules[__name__]
    warp_tools.load_kernels((here, here), CPU)
    with pytest.raises(RuntimeError, match="does not contain any Warp"):
        warp_tools.load_kernels((here, importlib), CPU)


def test_kernels_that_a_library_launches_are_loaded_and_not_run(caplog: pytest.LogCaptureFixture) -> None:
    source, out = torch.ones(4), torch.zeros(4)
    inputs = [wp.from_torch(source), wp.from_torch(out), 0]
    launch, asked = wp.launch, []

    def work() -> None:
        asked.append(wp.launch)
        wp.launch(add_index_kernel, 4, inputs=inputs, device="cpu")
        wp.launch(add_index_kernel, 0, inputs=inputs, device="cpu")

    warp_tools.load_launched(work, torch.device("cpu"))
    assert asked[0] is not launch
    assert wp.launch is launch
    assert out.tolist() == [0.0] * 4
    with warp_tools.announce_compilation("a library", torch.device("cpu"), "a while"):
        work()
    assert out.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert not caplog.text

    def fail() -> None:
        raise UnsupportedError("no such size")

    with pytest.raises(UnsupportedError, match="no such size"):
        warp_tools.load_launched(fail, torch.device("cpu"))
    assert wp.launch is launch


def test_a_long_compilation_of_a_library_is_announced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warp_tools, "LIBRARY_NOTE_AFTER_S", 0.01)
    with warp_tools.announce_compilation("a library", torch.device("cpu"), "a while"):
        deadline = time.monotonic() + 10.0
        while "Compiling" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "Compiling the kernels of a library for cpu; this happens once on a machine and takes a while" in caplog.text
