"""Games compiled to WebAssembly, machines that run them (wasmtime in this process, node), pages and a real browser."""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.browser_parity import ACTION_SEED, GAME_SEED, run_in_node
from tests.browser import Browser, open_browser
from tests.strategies import TINY_STRATEGY

from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.share.page import share_agent
from ludus.share.program import Program, capture_world
from ludus.share.wasm import compile_program
from ludus.store import save_checkpoint

SHORT_MATCH = 450  # frames of Brawl in the page of `seer_page`
# A window for games in real time: without a GPU, drawing takes most of a core, and less in a small window.
SMALL_WINDOW = {"width": 640, "height": 480}

# Short matches, so that episodes end and restart within a few thousand frames.
SHORT: dict[str, dict[str, Any]] = {
    "brawl": {"step_limit": 900, "stocks": 2},
    "rocket": {"match_s": 20.0, "overtime_s": 10.0},
}


@dataclass(frozen=True)
class Game:
    """A captured game and its WebAssembly."""

    program: Program
    wasm: bytes

    def node(self, function: str, *arguments: object) -> Any:
        """Return what `async (engine, ...arguments) => ...` gives in node."""
        load = f"async (wasm, description, ...rest) => ({function})(await LudusEngine.load(wasm, description), ...rest)"
        return run_in_node(load, self.wasm, self.program.describe(), *arguments)

    def wasmtime(self, frames: int, bot: str | None = None) -> int:
        """Play random frames without JavaScript; return their hash."""
        import wasmtime

        store = wasmtime.Store()
        module = wasmtime.Module(store.engine, self.wasm)
        assert [each.name for each in module.imports] == []  # it needs nothing of the page
        core: Any = wasmtime.Instance(store, module, []).exports(store)
        core["start"](store)
        core["reset"](store, GAME_SEED, 0)
        if bot is not None:
            place = core["address"](store, self.program.index("assignment")) + 4 * (self.program.seats - 1)
            core["memory"].write(store, self.program.bots.index(bot).to_bytes(4, "little"), place)
        return int(core["play_random"](store, ACTION_SEED, 0, 0, frames, 0)) % 2**32


@pytest.fixture(scope="session")
def game() -> Callable[[str], Game]:
    """Returns the game of a world with short matches; compiled once."""
    _needs_compiler()

    @cache
    def make(world: str) -> Game:
        program = capture_world(world, SHORT[world])
        return Game(program, compile_program(program))

    return make


@pytest.fixture
def node() -> None:
    """Skips where node is missing."""
    if shutil.which("node") is None:
        pytest.skip("needs node: apt-get install nodejs")


def _needs_compiler() -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the extra `web`: pip install ziglang")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests of a file; where there is none they are skipped."""
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="session")
def seer_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an untrained agent that names its opponent, with matches of 15 s."""
    _needs_compiler()
    folder, settings = tmp_path_factory.mktemp("seer"), {"step_limit": SHORT_MATCH}
    with make_env("brawl", config=settings) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = Policy(env.spec, PolicyConfig(strategy=TINY_STRATEGY.model_copy(update={"classify": 1.0})))
        checkpoint = agent_checkpoint(env.spec, policy.config, policy.state(), settings)
        save_checkpoint(folder / "seer", checkpoint, step=1, sequence=1)
    return share_agent(str(folder / "seer"), folder / "seer.html").file


@pytest.fixture(scope="session")
def champion_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the strongest shipped fighter, with another one to choose."""
    _needs_compiler()
    file = tmp_path_factory.mktemp("page") / "champion.html"
    return share_agent("champion", file, against=["rookie"]).file


@pytest.fixture(scope="session")
def rocket_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a shipped rocket agent."""
    _needs_compiler()
    return share_agent("novice", tmp_path_factory.mktemp("page") / "novice.html").file
