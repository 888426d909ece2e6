"""Show that the browser plays the same game as Python, and how fast: hashes over frames of random actions.

    python benchmarks/browser_parity.py --frames 1000000    # docs/data/browser_parity.json
    python benchmarks/browser_parity.py --frames 20000 --worlds brawl --skip chromium
    python benchmarks/browser_parity.py --agents            # time of one decision, and the bytes of an agent

The state and the observations of every frame are hashed (CRC-32, continued from frame to frame), with episodes that end
and restart in between: once with random actions in all seats, once with a scripted player in the last one. One row per
world and variant with the hash of each machine that is here: CPU, CUDA, node and Chromium. Results of other machines
with as many frames stay in the file, so that a GPU can be added elsewhere (`--skip cpu node chromium`).
"""

import argparse
import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

from ludus.core.random import stream_hash_tensor
from ludus.envs.base import EnvSpec
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.registry import make_env
from ludus.envs.world import find_world
from ludus.policies.agent import Agent
from ludus.policies.policy import Policy
from ludus.rollout.cuda_graphs import capture
from ludus.share.policy import PackedPolicy, pack_policy
from ludus.share.precision import pack_agent
from ludus.share.program import ActionForm, Program, capture_world
from ludus.share.wasm import RANDOM_HOLD, compile_program
from ludus.training.presets import load_run_config

GAME_SEED, ACTION_SEED = 7, 99
DATA = Path(__file__).parents[1] / "docs" / "data" / "browser_parity.json"
MACHINES = ("cpu", "cuda", "node", "chromium")
_BLOCK = 1_000  # frames whose actions are drawn and whose states are hashed together
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_TIMEOUT_S = 3_600
_REPORT = "found.then((value) => fetch('/', { method: 'POST', body: JSON.stringify(value) }));"


@dataclass(frozen=True, slots=True)
class Played:
    """What random play gave."""

    hash: int
    episodes: int
    seconds: float


def random_actions(spec: EnvSpec, seed: int, frames: int) -> Iterator[Tensor]:
    """Yield the actions `(1, seats, ...)` of each frame."""
    return itertools.chain.from_iterable(random_blocks(spec, seed, frames))


def random_blocks(spec: EnvSpec, seed: int, frames: int) -> Iterator[Tensor]:
    """Yield blocks of actions `(frames, 1, seats, ...)`, as `play_random` in `engine.cpp` draws them."""
    form = ActionForm.of(spec.action_space)
    counts = torch.tensor(form.counts)
    seats, numbers = torch.arange(spec.seats).unsqueeze(1), torch.arange(len(form.counts))
    shape = (-1, 1, spec.seats, *(spec.action_space.shape or ()))
    for first in range(0, frames, _BLOCK):
        held = (torch.arange(first, min(first + _BLOCK, frames)) // RANDOM_HOLD).view(-1, 1, 1)
        drawn = stream_hash_tensor(seed, held, seats, numbers)
        if form.kind == "box":
            block = (drawn >> 8).float() * 2.0**-23 - 1.0
        else:
            block = ((drawn * counts) >> 32).to(getattr(torch, form.dtype))
        yield block.view(shape)


def hashed_tensors(env: KernelEnv) -> list[Tensor]:
    """Return what is hashed, in order: the state, and what is observed."""
    seen = [tensor for name, tensor in env.working_tensors().items() if name.startswith("observations.")]
    return [*env.state_tensors().values(), *seen]


def state_hash(env: KernelEnv, before: int = 0) -> int:
    """Return what `hash` in `engine.cpp` does: CRC-32 of the state and of the observations."""
    for tensor in hashed_tensors(env):
        before = zlib.crc32(tensor.cpu().numpy().tobytes(), before)
    return before


def play_in_python(program: Program, frames: int, bot: str | None = None, device: str = "cpu") -> Played:
    """Play random actions in an environment, with a scripted player in the last seat if one is named."""
    with make_env(program.world, 1, device, config=program.settings) as env:
        assert isinstance(env, KernelEnv)
        env.reset(seed=GAME_SEED)
        bots = env.bots(program.bots)
        assignment = torch.full((1, env.spec.seats), -1, dtype=torch.int32, device=device)
        if bot is not None:
            assignment[0, -1] = program.bots.index(bot)
        tensors = hashed_tensors(env)
        # Rows of the block's frames, which are hashed together: on a GPU a copy per frame would wait for the device.
        rows = [tensor.expand(_BLOCK, *tensor.shape).clone() for tensor in tensors]
        moving = [pair for pair in zip(rows, tensors, strict=True) if pair[1].device == env.device]  # the seed is not
        drawn = next(random_blocks(env.spec, ACTION_SEED, _BLOCK)).to(device)
        actions = torch.zeros_like(drawn[0])
        frame, ended = (torch.zeros(1, dtype=torch.int64, device=device) for _ in range(2))

        def play() -> None:
            actions.copy_(drawn.index_select(0, frame)[0])
            if bot is not None:
                bots.act(assignment, actions)
            result = env.step(actions)
            ended.add_(result.terminated | result.truncated)
            for row, tensor in moving:
                row.index_copy_(0, frame, tensor.unsqueeze(0))
            frame.add_(1)

        advance = play
        if env.device.type == "cuda":
            state = [*env.state_tensors().values(), *env.working_tensors().values()]
            advance = capture(play, [frame, ended, *(tensor for tensor in state if tensor.device == env.device)]).replay
        began, found = time.perf_counter(), 0
        for block in random_blocks(env.spec, ACTION_SEED, frames):
            drawn[: len(block)] = block.to(device)
            frame.zero_()
            for _ in range(len(block)):
                advance()
            found = _hash_rows(rows, len(block), found)
        return Played(found, int(ended), time.perf_counter() - began)


def _hash_rows(rows: list[Tensor], count: int, before: int) -> int:
    arrays = [row.cpu().numpy() for row in rows]
    for frame in range(count):
        for array in arrays:
            before = zlib.crc32(array[frame].tobytes(), before)
    return before


_PLAY = """
async (wasm, description, bot, frames, gameSeed, actionSeed) => {
  const engine = await LudusEngine.load(wasm, description);
  engine.reset(gameSeed);
  if (bot !== null) engine.setBot(engine.seats - 1, bot);
  const began = performance.now();
  const found = engine.randomKeys(actionSeed, frames);
  return [found, (performance.now() - began) / 1000];
}
"""

_DECIDE = """
async (wasm, description, policyDescription, policyBytes, bot, frames, gameSeed) => {
  const engine = await LudusEngine.load(wasm, description);
  const policy = engine.addPolicy(policyBytes, policyDescription);
  engine.reset(gameSeed);
  if (bot !== null) engine.setBot(engine.seats - 1, bot);
  let spent = 0;
  for (let frame = 0; frame < 2 * frames; frame++) {
    engine.actBots();
    const began = performance.now();
    policy.act(0);
    if (frame >= frames) spent += performance.now() - began;
    engine.step();
  }
  return spent / frames;
}
"""


def run_in_node(function: str, *arguments: object) -> Any:  # noqa: ANN401 - JSON
    """Return what a function gives in node; bytes are passed as `Uint8Array`."""
    return json.loads(_execute(function, arguments, _in_node))


def run_in_chromium(function: str, *arguments: object) -> Any:  # noqa: ANN401 - JSON
    """Return what a function gives in headless Chromium; bytes are passed as `Uint8Array`."""
    return json.loads(_execute(function, arguments, _in_chromium))


def _execute(function: str, arguments: tuple[object, ...], run: Callable[[str, Path], str]) -> str:
    engine = (files("ludus.share") / "assets" / "engine.js").read_text(encoding="utf-8")
    given = ", ".join(
        f'Uint8Array.from(atob("{base64.b64encode(each).decode()}"), (c) => c.charCodeAt(0))'
        if isinstance(each, bytes)
        else json.dumps(each)
        for each in arguments
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return run(f"{engine}\nconst found = ({function})({given});\n", Path(folder))


def _in_node(script: str, folder: Path) -> str:
    file = folder / "script.cjs"
    file.write_text(script + "found.then((value) => console.log(JSON.stringify(value)));\n")
    done = subprocess.run(["node", str(file)], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def _in_chromium(script: str, folder: Path) -> str:
    """Open a page that sends what it found to a server of our own."""
    page = f"<!doctype html><body></body><script>{script}{_REPORT}</script>".encode()
    answers: SimpleQueue[str] = SimpleQueue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page if self.path == "/" else b"")

        def do_POST(self) -> None:
            answers.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    browser = next(filter(None, map(shutil.which, _BROWSERS)))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            f"--user-data-dir={folder / 'profile'}", f"http://127.0.0.1:{server.server_port}/",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return answers.get(timeout=_TIMEOUT_S)
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


def machines(skipped: list[str]) -> list[str]:
    """Return the machines that are here."""
    here = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "node": shutil.which("node") is not None,
        "chromium": any(map(shutil.which, _BROWSERS)),
    }
    return [machine for machine in MACHINES if here[machine] and machine not in skipped]


def compare(world: str, frames: int, skipped: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Print one row per variant; yield its name and what was found."""
    program = capture_world(world)
    here = machines(skipped)
    wasm = compile_program(program) if {"node", "chromium"} & {*here} else b""
    print(f"{world}: {len(wasm):,} bytes of WebAssembly, {len(zlib.compress(wasm, 9)):,} deflated")
    for bot in (None, find_world(world).default_opponent):
        found: dict[str, Played] = {}
        for machine in here:
            if machine in ("cpu", "cuda"):
                found[machine] = play_in_python(program, frames, bot, machine)
            else:
                run = run_in_node if machine == "node" else run_in_chromium
                value, seconds = run(_PLAY, wasm, program.describe(), bot, frames, GAME_SEED, ACTION_SEED)
                found[machine] = Played(value, -1, seconds)
        episodes = max(each.episodes for each in found.values())
        hashes = " | ".join(f"{name} {each.hash:08x} in {each.seconds:,.1f} s" for name, each in found.items())
        mark = "[OK]" if len({each.hash for each in found.values()}) == 1 else "[ERROR]"
        print(f"{mark} {world} | {bot or 'random'} | {frames:,} frames | {episodes:,} episodes | {hashes}", flush=True)
        played = {name: {"hash": f"{each.hash:08x}", "seconds": round(each.seconds, 1)} for name, each in found.items()}
        yield (
            f"{world}, {bot or 'random'}",
            {"frames": frames, "episodes": episodes, "machines": played} | ({"wasm_bytes": len(wasm)} if wasm else {}),
        )


def write(file: Path, results: dict[str, dict[str, Any]]) -> bool:
    """Add results to those in a file; return whether the hashes of all machines are equal."""
    stored: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    for name, result in results.items():
        before = stored.get(name, {})
        if before.get("frames") == result["frames"]:
            result = before | result | {"machines": before["machines"] | result["machines"]}
            result["episodes"] = max(before["episodes"], result["episodes"])
        stored[name] = result
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(stored, indent=1) + "\n")
    return all(len({each["hash"] for each in row["machines"].values()}) == 1 for row in stored.values())


def untrained(preset: str, world: str) -> Policy:
    """Return an untrained policy of a preset."""
    config = load_run_config(world, preset=preset)
    with make_env(world, 1) as env:
        torch.manual_seed(0)
        return Policy(env.spec, config.policy)


def time_agents(frames: int) -> None:
    """Print bytes and milliseconds per decision of agents, in every JavaScript engine that is here."""
    agents: dict[str, tuple[str, PackedPolicy]] = {
        "brawl quick": ("brawl", pack_policy(untrained("quick", "brawl"))),
        "brawl strategy, int8": ("brawl", pack_policy(untrained("strategy", "brawl"), "int8")),
    }
    for name in ("rookie", "champion", "novice", "striker"):
        agent = Agent.load(name)
        agents[name] = (agent.spec.name, pack_agent(agent))
    for name, (world, packed) in agents.items():
        program = capture_world(world)
        wasm, bot = compile_program(program), find_world(world).default_opponent
        given = (_DECIDE, wasm, program.describe(), packed.description, packed.data, bot, frames, GAME_SEED)
        times = {}
        if shutil.which("node"):
            times["node"] = run_in_node(*given)
        if any(map(shutil.which, _BROWSERS)):
            times["chromium"] = run_in_chromium(*given)
        shown = " | ".join(f"{machine} {value:.3f} ms per decision" for machine, value in times.items())
        print(f"[OK] {name} | {len(packed.data):,} bytes | {shown}", flush=True)


def main() -> None:
    """Compare or time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--worlds", nargs="+", default=["brawl", "rocket"])
    parser.add_argument("--skip", nargs="*", default=[], choices=MACHINES)
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--agents", action="store_true", help="time decisions of agents instead")
    asked = parser.parse_args()
    if asked.agents:
        time_agents(min(asked.frames, 1_000))
        return
    results = dict(row for world in asked.worlds for row in compare(world, asked.frames, asked.skip))
    if not write(asked.out, results):
        raise SystemExit("[ERROR] the hashes differ")


if __name__ == "__main__":
    main()
