"""Promise 16: no file that is read can run code, reach outside its folder, hang, or take much time or memory.

Every hostile checkpoint has a manifest with correct hashes, as an attacker would write it. One child process reads
them all after a warm-up, under an audit hook and a limit on its memory, and says what happened.
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.core.errors import CheckpointError
from ludus.store import Checkpoint, CheckpointStore, load_checkpoint, save_checkpoint

pytestmark = pytest.mark.fault

MEMORY_BYTES = 256 << 20  # what reading one hostile checkpoint may take beyond what the process has
SECONDS = 3.0  # of CPU time that refusing one may take; the slowest needs about one

# Two ways of spelling `os.system("touch .../ran")` as a pickle: protocol 0 and protocol 4.
PICKLES = [
    b"cos\nsystem\n(S'touch ran'\ntR.",
    b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x09touch ran\x85R.",
]


def tensor_file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape: list[int], offsets: list[int], dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def seal(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Writes a manifest that is right in everything but what it says."""

    def canonical(document: dict[str, Any]) -> bytes:
        return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"

    body = {"format": "ludus-checkpoint", "version": 1, "step": 0, "sequence": 9, "files": files}
    (folder / "manifest.json").write_bytes(canonical({**body, "sha256": hashlib.sha256(canonical(body)).hexdigest()}))


def record(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def with_file(name: str, data: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).write_bytes(data)
        seal(folder, {name: record(data)})

    return make


def with_tensors(header: Any, data: bytes = b"") -> Callable[[Path], None]:
    return with_file("policy.safetensors", tensor_file(header, data))


def with_manifest(data: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "manifest.json").write_bytes(data)

    return make


def naming(name: str) -> Callable[[Path], None]:
    """Lists a file that exists, is harmless, and lies outside the folder."""
    data = tensor_file({})

    def make(folder: Path) -> None:
        (folder.parent / "outside.safetensors").write_bytes(data)
        seal(folder, {name: record(data)})

    return make


def linking(name: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        save_checkpoint(folder.parent / "other", Checkpoint(tensors={"policy": {"a": torch.zeros(1)}}))
        data = (folder.parent / "other" / "policy.safetensors").read_bytes()
        (folder / "policy.safetensors").write_bytes(data)
        seal(folder, {"policy.safetensors": record(data)})
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return make


def piping(folder: Path) -> None:
    seal(folder, {"policy.safetensors": {"bytes": 0, "sha256": hashlib.sha256().hexdigest()}})
    os.mkfifo(folder / "policy.safetensors")


def with_holes(name: str, size: int) -> Callable[[Path], None]:
    """A file that is huge by its size and takes no space."""

    def make(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.write(tensor_file({"a": entry([(size - 1000) // 4], [0, size - 1000])}))
            file.truncate(size)
        if name != "manifest.json":
            seal(folder, {name: {"bytes": size, "sha256": "0" * 64}})

    return make


MIB = 1 << 20
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "pickle 0 as tensors": (with_file("policy.safetensors", PICKLES[0]), "announces a header"),
    "pickle 4 as tensors": (with_file("policy.safetensors", PICKLES[1]), "announces a header"),
    "pickle in the header": (with_tensors(PICKLES[1]), "not UTF-8"),
    "zipped pickle as tensors": (with_file("policy.safetensors", b"PK\x03\x04" + bytes(100)), "cover 0 bytes|header"),
    "pickle as a document": (with_file("league.json", PICKLES[0]), "not valid JSON"),
    "pickle as manifest": (with_manifest(PICKLES[0]), "not valid JSON"),
    "pickle by name": (with_file("policy.pkl", PICKLES[0]), "file name 'policy.pkl' is not allowed"),
    "Python by name": (with_file("policy.py", b"print()"), "is not allowed"),
    "name above the folder": (naming("../outside.safetensors"), "is not allowed"),
    "absolute name": (naming("/etc/passwd.json"), "is not allowed"),
    "name in a sub-folder": (naming("a/b.json"), "is not allowed"),
    "Windows names": (naming("..\\outside.safetensors"), "is not allowed"),
    "drive name": (naming("c:policy.safetensors"), "is not allowed"),
    "name with a zero byte": (naming("policy.safetensors\x00.json"), "is not allowed"),
    "name with a line break": (naming("policy.safetensors\n"), "is not allowed"),
    "the manifest lists itself": (naming("manifest.json"), "is not allowed"),
    "linked tensors": (linking("policy.safetensors", "../other/policy.safetensors"), "symbolic link"),
    "linked manifest": (linking("manifest.json", "../other/manifest.json"), "symbolic link"),
    "link to an endless file": (linking("policy.safetensors", "/dev/zero"), "symbolic link"),
    "pipe": (piping, "not a regular file"),
    "header of 2**63 bytes": (with_file("policy.safetensors", struct.pack("<Q", 2**63) + b"{}"), "announces a header"),
    "header over the limit": (with_tensors(b" " * (4 * MIB + 1)), "announces a header of 4194305"),
    "header longer than the file": (with_file("policy.safetensors", struct.pack("<Q", 99)), "ends after 8 bytes"),
    "header full of lists": (with_tensors(b"[" + b"[]," * (MIB - 9) + b"1]"), "more than 1000000 values"),
    "deep header": (with_tensors(b'{"a":' * 500_000 + b"1" + b"}" * 500_000), "nested deeper"),
    "absurd shape": (with_tensors({"a": entry([2**40, 2**40], [0, 8])}, bytes(8)), "absurd shape"),
    "absurd empty shape": (with_tensors({"a": entry([0, 2**62, 2**62], [0, 0])}), "absurd shape"),
    "shape larger than the file": (with_tensors({"a": entry([2**40], [0, 2**42])}, bytes(8)), "cover 4398046511104"),
    "shape that wraps around": (with_tensors({"a": entry([2**31, 2**33 + 1], [0, 4])}, bytes(4)), "absurd shape"),
    "offsets that wrap around": (with_tensors({"a": entry([1], [2**64 - 4, 2**64])}, bytes(4)), "starts at byte"),
    "tensors on the same bytes": (
        with_tensors({f"t{i}": entry([MIB], [0, 4 * MIB]) for i in range(20_000)}, bytes(4 * MIB)),
        "the one before ends at",
    ),
    "100,000 tensors without a place": (
        with_tensors(b"{" + b",".join(b'"%d":{"dtype":"F32","shape":[0]}' % i for i in range(100_000)) + b"}"),
        "exactly dtype, shape and data_offsets",
    ),
    "tensors of 100 GiB of nothing": (with_holes("policy.safetensors", 100 << 30), "announces 107374182400 bytes"),
    "document of 100 GiB of nothing": (with_holes("league.json", 7 << 30), "at most 8388608 are allowed"),
    "manifest of 100 GiB of nothing": (with_holes("manifest.json", 100 << 30), "at most 1048576 are allowed"),
    "deep document": (with_file("league.json", b"[" * 2_000_000), "more than 1000000 values"),
    "deep but small document": (with_file("league.json", b"[" * 900_000), "nested deeper"),
    "document full of lists": (with_file("league.json", b"[" + b"[]," * 2_000_000 + b"1]"), "more than 1000000"),
    "long key over many values": (
        with_file("league.json", b'{"' + b"k" * (4 * MIB) + b'":[' + b"1," * 500_000 + b"1e999]}"),
        "is inf",
    ),
    "number of a million digits": (with_file("league.json", b"9" * 1_000_000), "not valid JSON"),
    "two meanings": (with_file("league.json", b'{"a":1,"a":2}'), "same key twice"),
    "bytes that are no truth values": (with_tensors({"a": entry([1], [0, 1], "BOOL")}, b"\xff"), "other than 0 and 1"),
}

READER = """
    import json, resource, sys, time
    from pathlib import Path
    from ludus.core.errors import CheckpointError
    from ludus.store import load_checkpoint, verify_checkpoint

    root, memory = Path(sys.argv[1]), int(sys.argv[2])
    load_checkpoint(root / "valid")
    try:
        load_checkpoint(root / "nowhere")
    except CheckpointError:
        pass

    FORBIDDEN = ("exec", "compile", "import", "subprocess", "os.system", "os.exec", "os.posix_spawn", "os.fork",
                 "socket", "ctypes", "pickle", "marshal", "code.", "function.", "os.remove", "os.rename", "os.mkdir")
    events, active = [], False

    def hook(event, arguments):
        if active and event.startswith(FORBIDDEN):
            events.append(event)
        elif active and event == "open" and not str(arguments[0]).startswith(str(root)):
            events.append(f"open {arguments[0]}")

    sys.addaudithook(hook)
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    results = {}
    for folder in sorted(path for path in root.iterdir() if path.name.startswith("case")):
        for read in (load_checkpoint, verify_checkpoint):
            events.clear()
            started = time.process_time()
            active = True
            try:
                read(folder)
                message = "was read"
            except CheckpointError as error:
                message = str(error)
            except BaseException as error:
                message = f"{type(error).__name__} instead of a CheckpointError: {error}"
            active = False
            seconds = time.process_time() - started
            results[f"{folder.name} {read.__name__}"] = (message, seconds, list(events))
    events.clear()
    active = True
    exec("import colorsys")
    open("/dev/null").close()
    active = False
    print(json.dumps({"results": results, "seen": events}))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("hostile")
    save_checkpoint(root / "valid", Checkpoint(tensors={"policy": {"a": torch.zeros(4)}}, documents={"league": [1]}))
    for number, (make, _) in enumerate(HOSTILE.values()):
        (root / f"case{number:03}").mkdir()
        make(root / f"case{number:03}")
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READER), str(root), str(MEMORY_BYTES)],
        capture_output=True, text=True, timeout=120, check=False, cwd=root,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert not (root / "ran").exists(), "a pickle was executed"
    outcome: dict[str, Any] = json.loads(result.stdout)
    return outcome


@pytest.mark.parametrize("function", ["load_checkpoint", "verify_checkpoint"])
@pytest.mark.parametrize("number", range(len(HOSTILE)), ids=HOSTILE.keys())
def test_hostile_checkpoints_are_refused_quickly_in_little_memory_without_running_anything(
    outcome: dict[str, Any], number: int, function: str
) -> None:
    message, seconds, events = outcome["results"][f"case{number:03} {function}"]
    expected = [*HOSTILE.values()][number][1].split("|")
    assert any(part in message for part in expected), message
    assert message.isascii()
    assert len(message) < 1000
    assert seconds < SECONDS
    assert events == []


def test_the_hook_sees_what_it_is_meant_to_see(outcome: dict[str, Any]) -> None:
    assert {"exec", "compile", "import", "open /dev/null"} <= set(outcome["seen"])


def test_a_store_full_of_hostile_checkpoints_names_them_and_gives_the_valid_one(tmp_path: Path) -> None:
    reports: list[str] = []
    store = CheckpointStore(tmp_path / "store", keep=1, report=reports.append)
    store.save("step-1", 1, Checkpoint(documents={"counters": 1}))
    for number, (make, _) in enumerate(HOSTILE.values()):
        (store.root / f"case{number:03}").mkdir()
        make(store.root / f"case{number:03}")
    latest = store.latest_valid()
    assert latest is not None
    assert latest.name == "step-1"
    named = {report.split(" cannot be used")[0].rsplit("/", 1)[-1] for report in reports}
    assert named == {name for name in store.names() if name.startswith("case")}
    assert len(named) >= len(HOSTILE) - 1  # the linked manifest


def test_no_loader_of_the_store_takes_a_single_file(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    path.write_bytes(PICKLES[0])
    with pytest.raises(CheckpointError, match=r"manifest\.json: cannot be opened"):
        load_checkpoint(path)
