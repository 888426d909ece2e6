"""What a process and everything below it takes: a game is a tree of processes, and the screen is one of them."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a tree of processes takes together.

    Attributes:
        processes: How many there are.
        memory_bytes: What is in memory for them; pages that several share count once for each.
        cpu_s: Processor time since they started.
    """

    processes: int
    memory_bytes: int
    cpu_s: float


def resource_use(pid: int) -> ResourceUse:
    """Returns what a process and all below it take; nothing if it has ended."""
    count, memory_bytes, cpu_s = 0, 0, 0.0
    for process in process_tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            with process.oneshot():
                times = process.cpu_times()
                memory_bytes += process.memory_info().rss
            cpu_s += times.user + times.system
            count += 1
    return ResourceUse(count, memory_bytes, cpu_s)


def process_tree(pid: int) -> list[psutil.Process]:
    """Returns a process and all below it; none if it has ended."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def process_state(pid: int) -> str:
    """Returns the kernel's letter for what a process does (`R`, `S`, `T` stopped ...); empty if it has ended.

    Read from /proc directly: this is asked before every gesture, and psutil takes 20 times as long.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""
    return "" if state in ("Z", "X") else state


def sleeps(pid: int) -> int | None:
    """Returns how often a process has gone to sleep, if it sleeps now; None if it runs, is about to, or has ended.

    Two equal answers mean that it did nothing in between: whatever wakes a process makes it runnable at once, however
    long it then has to wait for a processor.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return int(fields["voluntary_ctxt_switches"]) if fields["State"].split()[0] == "S" else None
