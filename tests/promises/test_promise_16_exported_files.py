"""Promise 16, for exported files: whatever a stranger puts into one, loading the agent runs nothing and takes little.

Every hostile file has a correct SHA-256, as an attacker would write it. One child process loads them all as agents
after a warm-up, under an audit hook and a limit on its memory, and says what happened.
"""

import hashlib
import json
import math
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch

from ludus import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import write_single_file

pytestmark = pytest.mark.fault

MEMORY_BYTES = 512 << 20  # what loading one hostile file may take beyond what the process has
SECONDS = 3.0  # of CPU time that refusing one may take
ZEROS = "0" * 64


def sealed(header: dict[str, Any], data: bytes = b"") -> bytes:
    """Returns a file with this header and the hash that belongs to it."""
    header["__metadata__"]["sha256"] = ZEROS
    text = json.dumps(header, separators=(",", ":")).encode()
    raw = struct.pack("<Q", len(text)) + text + data
    digest = hashlib.sha256(raw).hexdigest()
    return raw.replace(f'"sha256":"{ZEROS}"'.encode(), f'"sha256":"{digest}"'.encode(), 1)


def opened(raw: bytes) -> tuple[dict[str, Any], bytes]:
    length = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def described(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Changes the description of the policy, and seals the file again."""

    def make(raw: bytes) -> bytes:
        header, data = opened(raw)
        documents = json.loads(header["__metadata__"]["documents"])
        change(documents["agent"])
        header["__metadata__"]["documents"] = json.dumps(documents)
        return sealed(header, data)

    return make


def with_documents(text: str) -> Callable[[bytes], bytes]:
    def make(raw: bytes) -> bytes:
        header, data = opened(raw)
        header["__metadata__"]["documents"] = text
        return sealed(header, data)

    return make


def with_tensor(shape: list[int], offsets: list[int]) -> Callable[[bytes], bytes]:
    def make(raw: bytes) -> bytes:
        header, _ = opened(raw)
        return sealed({"__metadata__": header["__metadata__"], "policy/a": {"dtype": "F32", "shape": shape, "data_offsets": offsets}})  # fmt: skip  # noqa: E501

    return make


def encoding(**strategy: Any) -> Callable[[bytes], bytes]:
    """Adds a strategy encoder to the policy."""
    return described(lambda d: d["config"].update(strategy={"block": None, "entry": "observation", **strategy}))


def with_numbers(value: float) -> Callable[[bytes], bytes]:
    """Puts a number into the first place of all tensors."""

    def make(raw: bytes) -> bytes:
        header, data = opened(raw)
        return sealed(header, struct.pack("<f", value) + data[4:])

    return make


LONG = "x" * 3_000_000

HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "pickle": (lambda _: b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x09touch ran\x85R.", "announces a header"),
    "zipped pickle": (lambda _: b"PK\x03\x04" + bytes(100), "header"),
    "huge header": (lambda _: struct.pack("<Q", 2**62) + b"{}", "announces a header"),
    "no description": (with_documents("{}"), "no agent"),
    "documents of another kind": (with_documents("[]"), "no mapping"),
    "deep documents": (with_documents("[" * 100_000 + "]" * 100_000), "nested deeper"),
    "documents full of lists": (with_documents("[" + "[]," * 600_000 + "1]"), "more than 1000000 values"),
    "absurd shape": (with_tensor([2**40, 2**40], [0, 8]), "absurd shape"),
    "shape larger than the file": (with_tensor([2**40], [0, 2**42]), "cover 4398046511104"),
    "network of 10**18 units": (described(lambda d: d["config"]["net_arch"].update(pi=[10**18, 10**18])), "agent.json"),
    "network that does not fit": (described(lambda d: d["config"]["net_arch"].update(pi=[5_000, 5_000])), "asks for"),
    "memory of 10**15 numbers": (described(lambda d: d["config"].update(recurrent={"size": 10**15})), "agent.json"),
    "100,000 layers": (described(lambda d: d["config"]["net_arch"].update(pi=[1] * 100_000)), "agent.json"),
    "endless picture": (
        described(lambda d: d["observation_space"][0][1].update(shape=[1_000_000, 1_000_000, 1_000_000])),
        "agent.json",
    ),
    "40 entries of 260 MiB": (
        described(
            lambda d: d["observation_space"].extend(
                [f"extra{i}", {"kind": "box", "shape": [4096, 4096], "dtype": "float64"}] for i in range(40)
            )
        ),
        "bytes for its spaces",
    ),
    "64 layers over 10,000 frames": (
        encoding(layers=64, heads=8, width=48, feedforward=48, window=10_000),
        "recurrent state per seat",
    ),
    "recurrent state of 20 MB": (
        encoding(layers=1, heads=1, width=256, feedforward=8, window=10_000),
        "recurrent state per seat",
    ),
    "memory of 60,000 numbers": (described(lambda d: d["config"].update(recurrent={"size": 60_000})), "parameters"),
    "2.5 billion parameters": (
        described(lambda d: d["config"]["net_arch"].update(pi=[50_000, 50_000])),
        "parameters, more than the limit",
    ),
    "100 layers for each of 900 entries": (
        described(
            lambda d: (
                d["observation_space"].extend([f"extra{i}", {"kind": "box", "shape": [1]}] for i in range(900)),
                d["config"].update(encoder=[1] * 64),
            )
        ),
        "layers",
    ),
    "a table of 10**12 uses": (
        described(
            lambda d: d.update(
                action_space={"kind": "multi_discrete", "counts": [1_000_000, *[2] * 900]}, exploratory_kinds=[1]
            )
        ),
        "bytes for its spaces",
    ),
    "one-hot of a million choices, twenty times": (
        described(
            lambda d: d["observation_space"].extend(
                [f"extra{i}", {"kind": "discrete", "counts": [1_000_000]}] for i in range(20)
            )
        ),
        "parameters",
    ),
    "a picture in 256 channels": (
        described(
            lambda d: (
                d["observation_space"].append(["picture", {"kind": "box", "shape": [512, 512, 3], "dtype": "uint8"}]),
                d["config"].update(cnn={"channels": [256, 1], "kernels": [1, 1], "strides": [1, 512], "features": 1}),
            )
        ),
        "intermediate results",
    ),
    "world of 3 MB": (described(lambda d: d.update(world=LONG + "-v1")), "wrong at world"),
    "world with an escape character": (described(lambda d: d.update(world="\x1b[31m-v1")), "wrong at world"),
    "world of version 10**100": (described(lambda d: d.update(world="rps-v1" + "0" * 100)), "wrong at world"),
    "entry of 3 MB": (
        described(lambda d: d["observation_space"].append([LONG, {"kind": "box", "shape": [1]}])),
        "observation_space.1",
    ),
    "key of 3 MB": (described(lambda d: d.update({LONG: 1})), "wrong at xxx"),
    "block of 3 MB": (described(lambda d: d.update(blocks={"vector": {LONG: [0, 1]}})), "wrong at blocks"),
    "block outside its entry": (
        described(lambda d: d.update(blocks={d["observation_space"][0][0]: {"all": [0, 10**9]}})),
        "no range",
    ),
    "block that is turned": (
        described(lambda d: d.update(blocks={d["observation_space"][0][0]: {"all": [1, 0]}})),
        "no range",
    ),
    "field of 3 MB": (described(lambda d: d.update(fields={"vector": [LONG]})), "wrong at fields"),
    "bot of 3 MB": (described(lambda d: d.update(bots=[LONG])), "wrong at bots"),
    "2,000 bots": (described(lambda d: d.update(bots=["bot"] * 2_000)), "wrong at bots"),
    "mask of 3 MB": (described(lambda d: d.update(action_mask=LONG)), "wrong at action_mask"),
    "strategy of an entry of 3 MB": (encoding(entry=LONG), "wrong at config.strategy.entry"),
    "activation of 3 MB": (described(lambda d: d["config"].update(activation=LONG)), "wrong at config.activation"),
    "activation of pictures of 3 MB": (
        described(lambda d: d["config"].update(cnn={"activation": LONG})),
        "wrong at config.cnn.activation",
    ),
    "settings of 3 MB": (described(lambda d: d.update(settings={"text": LONG})), "settings are"),
    "arguments of 3 MB": (described(lambda d: d["config"].update(module_kwargs={"text": LONG})), "as JSON"),
    "200,000 seats": (described(lambda d: d.update(teams=[0] * 200_000)), "wrong at teams"),
    "no seat": (described(lambda d: d.update(teams=[])), "wrong at teams"),
    "300,000 bounds": (
        described(lambda d: d.update(action_space={"kind": "box", "shape": [1], "low": [0.0] * 300_000})),
        "low",
    ),
    "bounds of nothing": (
        described(lambda d: d.update(action_space={"kind": "box", "shape": [2], "low": [0.0], "high": [1.0]})),
        "lower and 1 upper bounds of 2 numbers",
    ),
    "choice without a count": (described(lambda d: d.update(action_space={"kind": "discrete"})), "is no space"),
    "no decisions per second": (described(lambda d: d.update(rate_hz=0.0)), "wrong at rate_hz"),
    "NaN weights": (with_numbers(math.nan), "contains NaN or Inf"),
    "infinite weights": (with_numbers(math.inf), "contains NaN or Inf"),
    "a class by name": (described(lambda d: d["config"].update(activation="os.system")), "activation"),
    "a key that is none": (described(lambda d: d.update(__reduce__="os.system")), "__reduce__"),
}

READER = """
    import json, resource, sys, time
    from pathlib import Path
    from ludus.core.errors import CheckpointError
    from ludus.policies.agent import Agent

    root, memory = Path(sys.argv[1]), int(sys.argv[2])
    Agent.load(root / "valid.ludus")
    for warm_up in ("nowhere.ludus", "fits-not.ludus"):
        try:
            Agent.load(root / warm_up)
        except CheckpointError:
            pass

    FORBIDDEN = ("exec", "compile", "import", "subprocess", "os.system", "os.exec", "os.posix_spawn", "os.fork",
                 "socket", "ctypes", "pickle", "marshal", "os.remove", "os.rename", "os.mkdir")
    events, active = [], False

    def hook(event, arguments):
        if active and event.startswith(FORBIDDEN):
            events.append(f"{event} {arguments[:1]}")
        elif active and event == "open" and not str(arguments[0]).startswith(str(root)):
            events.append(f"open {arguments[0]}")

    sys.addaudithook(hook)
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    results = {}
    for file in sorted(root.glob("case*.ludus")):
        events.clear()
        started = time.process_time()
        active = True
        try:
            Agent.load(file)
            message = "was loaded"
        except CheckpointError as error:
            message = str(error)
        except BaseException as error:
            message = f"{type(error).__name__} instead of a CheckpointError: {error}"
        active = False
        results[file.stem] = (message, time.process_time() - started, list(events))
    print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("exported")
    with make_env("rps") as env, torch.random.fork_rng(devices=[]):
        policy = Policy(env.spec, PolicyConfig.model_validate({"net_arch": {"pi": [8], "vf": [8]}}))
    write_single_file(root / "valid.ludus", agent_checkpoint(policy.spec, policy.config, policy.state()))
    valid = (root / "valid.ludus").read_bytes()
    (root / "fits-not.ludus").write_bytes(described(lambda d: d["config"].update(recurrent={"size": 3}))(valid))
    for number, (make, _) in enumerate(HOSTILE.values()):
        (root / f"case{number:03}.ludus").write_bytes(make(valid))
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READER), str(root), str(MEMORY_BYTES)],
        capture_output=True, text=True, timeout=120, check=False, cwd=root,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert not (root / "ran").exists(), "a pickle was executed"
    outcome: dict[str, Any] = json.loads(result.stdout)
    return outcome


@pytest.mark.parametrize("number", range(len(HOSTILE)), ids=HOSTILE.keys())
def test_hostile_files_are_refused_quickly_in_little_memory_without_running_anything(
    outcome: dict[str, Any], number: int
) -> None:
    message, seconds, events = outcome[f"case{number:03}"]
    assert [*HOSTILE.values()][number][1] in message
    assert message.isascii()
    assert len(message) < 1000
    assert seconds < SECONDS
    assert events == []
