"""A structure-aware fuzzer of agent files: it changes descriptions and settings, loads the agent, and lets it play.

    python tests/promises/fuzz_agents.py FOLDER SECONDS

Whatever a file says, only a `LudusError` may come of it: no other exception, no file opened outside, no process, no
connection, and no more memory and CPU time than the limits below. It prints what it found as JSON.
"""

import copy
import json
import os
import resource
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import ludus
from ludus.core.errors import LudusError
from ludus.envs.base import action_dtypes
from ludus.envs.registry import make_env, settings_model
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.shipped import agent_path
from ludus.store import Checkpoint, read_single_file, write_single_file

MEMORY_BYTES = 2 << 30  # beyond what the process has after a warm-up
CPU_SECONDS = 20.0  # of one example: a load, a game of its world, five decisions
BATCH = 100  # examples between two looks at the clock

SHIPPED = ("champion", "builder", "walker", "striker")
TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("rps", {"recurrent": {"size": 8}}),
    "streaming": ("brawl", {"strategy": {"width": 16, "heads": 2, "layers": 1, "latent": 8, "window": 9}}),
    "gymnasium": ("gym:CartPole-v1", {}),
}
FORBIDDEN = ("subprocess", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "pty", "socket.connect",
             "socket.bind", "socket.sendto", "urllib", "shutil", "os.remove", "os.rename", "os.mkdir", "os.link",
             "os.symlink", "os.chmod", "os.kill", "pickle")  # fmt: skip

VALUES: list[Any] = [
    *("./evil.yaml", "evil.yaml", "/etc/passwd", "../x", "~", "a\0b", "http://127.0.0.1/x", "os:system", "", "openai"),
    *("micropolis", "embedded", "nan", "x" * 300, "\x1b[2J", "<script>", "walk-slow", "brawl-v1", "city-v1"),
    *(0, -1, 1, 2, 3, 7, 64, 1000, 65_536, 10**6, 10**9, 2**31, 2**63, 10**18, 10**30),
    *(0.0, -1.0, 0.5, 1e-300, 1e300, 1e18, None, True, False, [], {}, [[]], [0] * 100, {"a": {"b": {}}}),
]
NASTY = st.sampled_from(VALUES)
HOW = st.sampled_from(["set", "drop", "repeat", "move"])
# Half of all examples change settings alone: most changes of a description are refused before the settings are read.
CHANGES = st.one_of(st.just([]), st.lists(st.tuples(st.integers(0, 10**6), HOW, NASTY), min_size=1, max_size=3))
SETTINGS = st.lists(st.tuples(st.integers(0, 10**6), NASTY), max_size=3)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of everything inside a document."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def change(document: Any, number: int, how: str, value: Any) -> None:
    """Sets, drops or repeats one thing in a document, or replaces it by another part of the document."""
    known = list(places(document))
    *way, key = known[number % len(known)]
    holder = at(document, tuple(way))
    if how == "drop":
        del holder[key]
    elif how == "repeat" and isinstance(holder[key], list):
        holder[key] = holder[key] * min(50, 1 + 20_000 // max(len(holder[key]), 1))
    elif how == "move":
        holder[key] = copy.deepcopy(at(document, known[(number * 7919) % len(known)]))
    else:
        holder[key] = copy.deepcopy(value)


def play(agent: Agent) -> None:
    with make_env(agent.spec.id, 1, config=agent.settings or None) as env:
        agent.check_world(env.spec)
        space = env.spec.action_space
        actions = torch.zeros((1, env.spec.seats, *(space.shape or ())), dtype=action_dtypes(space)[0])
        observations, state = env.reset(seed=0), None
        for _ in range(5):
            chosen, state = agent.predict({name: each[0, 0] for name, each in observations.items()}, state)
            actions[0, 0] = chosen
            observations = env.step(actions).observations


class Watch:
    """Notes what a process does that it should not."""

    def __init__(self, root: Path) -> None:
        # What is read as code or data of Ludus and its libraries, and caches of compiled kernels.
        own = [root, Path(ludus.__file__).parent, Path(sys.prefix), Path(sysconfig.get_path("stdlib")), Path("/proc")]
        own += [Path("/sys"), Path("/dev/null"), Path("/dev/shm"), Path.home() / ".cache", Path(tempfile.gettempdir())]  # noqa: S108
        own += [Path(os.environ["XDG_CACHE_HOME"])] if "XDG_CACHE_HOME" in os.environ else []
        self.allowed = tuple(str(path) for path in own)
        self.is_active, self.seen = False, list[str]()
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_active:
            return
        if event.startswith(FORBIDDEN):
            self.seen.append(f"{event} {str(arguments)[:200]}")
        elif event == "open" and isinstance(arguments[0], str) and not arguments[0].startswith(self.allowed):
            self.seen.append(f"open {arguments[0][:200]}")


def base_agents(root: Path) -> dict[str, Checkpoint]:
    """Returns valid agents of several worlds and kinds, each of which has played, so that kernels are compiled."""
    agents = {name: read_single_file(agent_path(name)) for name in SHIPPED}
    for name, (world, config) in TINY.items():
        with make_env(world) as env:
            policy = Policy(env.spec, PolicyConfig.model_validate(config))
        agents[name] = agent_checkpoint(policy.spec, policy.config, policy.state(), {})
    for content in agents.values():
        write_single_file(root / "agent.ludus", Checkpoint(content.tensors, {"agent": content.documents["agent"]}))
        play(Agent.load(root / "agent.ludus"))
    return agents


def main(root: Path, seconds: float) -> dict[str, Any]:
    os.chdir(root)
    (root / "evil.yaml").write_text("extends: micropolis\nlaunch: {command: [touch, PWNED]}\n")
    agents, watch = base_agents(root), Watch(root)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    found: list[str] = []
    counts = {"refused": 0, "played": 0, "slowest_s": 0.0}

    @given(st.sampled_from(sorted(agents)), CHANGES, SETTINGS)
    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def example(name: str, changes: list[tuple[int, str, Any]], others: list[tuple[int, Any]]) -> None:
        document: Any = copy.deepcopy(agents[name].documents["agent"])
        model = settings_model(document["world"])
        fields = sorted(model.model_fields) if model is not None else ["a"]
        for number, value in others:
            document["settings"][fields[number % len(fields)]] = copy.deepcopy(value)
        for number, how, value in changes:
            if document:
                change(document, number, how, value)
        write_single_file(root / "agent.ludus", Checkpoint(agents[name].tensors, {"agent": document}))
        text = f"{name} {json.dumps(changes)[:300]} {json.dumps(others)[:300]}"
        before = time.process_time()
        watch.is_active = True
        try:
            play(Agent.load(root / "agent.ludus"))
            counts["played"] += 1
        except LudusError as error:
            counts["refused"] += 1
            if len(str(error)) > 3_000 or not str(error).isascii():
                found.append(f"{text}: an error of {len(str(error))} letters: {str(error)[:200]!r}")
        except BaseException as error:
            found.append(f"{text}: {type(error).__name__}: {str(error)[:300]}")
        finally:
            watch.is_active = False
        taken = time.process_time() - before
        counts["slowest_s"] = max(counts["slowest_s"], taken)
        if taken > CPU_SECONDS:
            found.append(f"{text}: took {taken:.1f} s")
        found.extend(f"{text}: {each}" for each in watch.seen)
        watch.seen.clear()

    began = time.monotonic()
    for batch in range(10**6):
        if time.monotonic() - began > seconds or len(found) > 20:
            break
        seed(batch)(example)()
    if (root / "PWNED").exists():
        found.append("a program ran")
    return counts | {"found": found}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]).resolve(), float(sys.argv[2]))))
