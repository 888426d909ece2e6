"""Shared fixtures: which tests see a GPU, a small two-seat environment with random ends, one policy of every kind."""

import gc
import importlib
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pytest
import tests.turns  # before torch, which takes long
import torch
from gymnasium import spaces
from hypothesis import HealthCheck, settings
from tests.strategies import TINY_STRATEGY
from torch import Tensor

from ludus.algorithms.algorithm import _ALGORITHMS, algorithms
from ludus.envs import registry
from ludus.envs import world as worlds
from ludus.envs.base import BatchedEnv, EnvSpec, Observations, StepResult
from ludus.nn.cnn import CnnConfig
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies import user_module
from ludus.policies.config import NormalizationConfig, PolicyConfig
from ludus.rewards import plugins, terms
from ludus.training.config import TrainConfig

# On a busy machine a draw may take seconds: how long an example takes says nothing about what is tested.
settings.register_profile("ludus", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ludus")

# The files that take 10 s and more, the longest first. pytest-xdist hands out whole files, those with the most tests
# first: a long file with few tests would be begun last, and all but one worker would wait for it.
LONG_FILES = (
    "test_ray.py",  # starts clusters of processes
    "test_rocket_gpu_step.py",  # compiles most kernels, for the others too
    "test_mimic_warp.py",  # compiles the kernels of MuJoCo Warp
    "test_engine.py",  # compiles two games for the browser, for the others too
    "test_wheel.py",
    "test_examples.py",
    "test_export_onnx.py",
    "test_promise_01_kill_and_resume.py",
    "test_compiling.py",
    "test_learns.py",
    "test_share_browser.py",
    "test_watch_browser.py",
    "test_shipped_presets.py",
    "test_doctor_runs.py",
    "test_promise_16_odd_run_files.py",
    "test_site.py",
    "test_city_worker_backend.py",
    "test_play_window.py",
    "test_promise_06_signals.py",
    "test_promise_18_network_and_secrets.py",
    "test_shipped.py",
    "test_analysis.py",
    "test_bad_disks.py",
    "test_rlbot_folder.py",
    "test_strategy_options.py",
    "test_hostile_state.py",
    "test_gymnasium_batch.py",
    "test_mimic_env.py",
    "test_micropolis_leftovers.py",
    "test_stacked.py",
    "test_promise_10_workers.py",
    "test_loop_distributed.py",
    "test_off_policy_run.py",
    "test_x11_driver.py",
    "test_analyze_command.py",
    "test_train_command.py",
    "test_own_game_commands.py",
    "test_portability.py",
    "test_screen_backend.py",
    "test_micropolis_game.py",
    "test_promise_07_other_config.py",
    "test_walker.py",
    "test_gymnasium_commands.py",
    "test_promise_08_metrics.py",
    "test_agents_cli.py",
    "test_mimic_render_gl.py",
    "test_watch_command.py",
    "test_city_audit.py",
    "test_city_env.py",
    "test_city_guide.py",
    "test_check.py",
    "test_promise_19_malformed_config.py",
    "test_brawl_skills.py",
    "test_cli.py",
    "test_rocket_shows.py",
    "test_exploring.py",
    "test_ratio.py",
    "test_engine_policy.py",
)

NoCudaSync: TypeAlias = Callable[[], AbstractContextManager[None]]
HAS_CUDA = torch.cuda.is_available()
VISIBLE_GPUS = os.environ.get("CUDA_VISIBLE_DEVICES")

_STREAMING = TINY_STRATEGY
_LSTM = RecurrentConfig(size=16)
_NORMALISED = NormalizationConfig(observations=True, returns=True)

POLICY_KINDS: dict[str, PolicyConfig] = {
    "mlp": PolicyConfig(),
    "mlp-normalised": PolicyConfig(encoder=(16,), normalize=_NORMALISED),
    "lstm": PolicyConfig(recurrent=_LSTM),
    "lstm-separate": PolicyConfig(recurrent=RecurrentConfig(size=16, critic="separate")),
    "lstm-skip": PolicyConfig(recurrent=RecurrentConfig(size=16, skip=True)),
    "streaming": PolicyConfig(strategy=_STREAMING),
    "streaming-lstm": PolicyConfig(strategy=_STREAMING, recurrent=_LSTM, normalize=_NORMALISED),
    "film-lstm": PolicyConfig(
        strategy=_STREAMING.model_copy(update={"block": ("opponent", "self")}),
        recurrent=RecurrentConfig(size=16, skip=True),
        normalize=_NORMALISED,
    ),
    "cnn": PolicyConfig(cnn=CnnConfig(channels=(4,), kernels=(3,), strides=(2,), features=8)),
    "cnn-lstm": PolicyConfig(cnn=CnnConfig(channels=(4,), kernels=(3,), strides=(2,), features=8), recurrent=_LSTM),
}

ODD_FILES: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "FIFO": os.mkfifo,
    "link loop": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "huge": lambda path: [path.touch(), os.truncate(path, 1 << 40)],  # type: ignore[func-returns-value]
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\n" * 9),
    "nested": lambda path: path.write_text("[" * 100_000 + "\n"),
}

pytest_plugins = ["tests.agents", "tests.commands"]


class SmallDisk:
    """A file system of a few MiB that can be filled up or made read-only.

    Attributes:
        path: Where it is mounted.
    """

    def __init__(self, path: Path, size: str) -> None:
        self.path, self._ballast = path, path / "ballast"
        path.mkdir()
        self._run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))

    def fill(self, free: int = 0) -> None:
        """Fill it to the last byte, or leave some bytes free."""
        with self._ballast.open("wb", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue
            file.truncate(max(file.tell() - free, 0))

    def empty(self) -> None:
        """Gives the space back that `fill` took."""
        self._ballast.unlink()

    def protect(self) -> None:
        """Makes it read-only, also for root."""
        self._run("mount", "-o", "remount,ro", str(self.path))

    def close(self) -> None:
        self._run("umount", "--lazy", str(self.path))

    def _run(self, program: str, *arguments: str) -> None:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"{program} is not installed")
        done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")


class ArenaEnv(BatchedEnv):
    """Two seats see random numbers; games end at random, by their own rules or cut off; buttons are the reward."""

    def __init__(self, num_envs: int, *, picture: bool = False, end_chance: float = 0.1) -> None:
        entries: dict[str, spaces.Space[Any]] = {"vector": spaces.Box(-np.inf, np.inf, (12,), np.float32)}
        if picture:
            entries["picture"] = spaces.Box(0, 255, (7, 7, 3), np.uint8)
        self.spec = EnvSpec(
            name="arena",
            version=1,
            teams=(0, 1),
            observation_space=spaces.Dict(entries),
            action_space=spaces.MultiBinary(4),
            rate_hz=30.0,
            step_limit=None,
            events=("reward",),
            blocks=MappingProxyType({"vector": MappingProxyType({"self": (0, 6), "opponent": (6, 12)})}),
        )
        self.num_envs, self.device, self.seed, self.first_game = num_envs, torch.device("cpu"), 0, 0
        self._end_chance, self._generator = end_chance, torch.Generator().manual_seed(0)

    def _draw(self) -> Observations:
        drawn = {"vector": torch.randn(self.num_envs, 2, 12, generator=self._generator)}
        if "picture" in self.spec.observation_space.spaces:
            shape = (self.num_envs, 2, 7, 7, 3)
            drawn["picture"] = torch.randint(0, 256, shape, generator=self._generator, dtype=torch.uint8)
        return drawn

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        return self._draw()

    def _advance(self, actions: Tensor) -> StepResult:
        drawn = torch.rand(2, self.num_envs, generator=self._generator) < self._end_chance
        events = {"reward": actions.float().sum(-1) - 2.0}
        return StepResult(self._draw(), drawn[0], drawn[1] & ~drawn[0], self._draw(), events, {})


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # keep the order of `pytest_collection_modifyitems`


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector: modules and tests are no garbage, and it would visit them often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the workers of pytest-xdist begin with the longest files."""
    if hasattr(config, "workerinput"):
        order = {name: place for place, name in enumerate(LONG_FILES)}
        items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from modules and tests.

    They are some million objects that live to the end, and every full collection would visit them all: half a second.
    Collections are as rare as in a command, too: see `ludus.cli.main`.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    tests.turns.end_turn()


def pytest_sessionfinish() -> None:
    tests.turns.forget_turns()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not HAS_CUDA:
        pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session", autouse=True)
def hidden_gpu() -> Iterator[None]:
    """Hide the GPU from everything but tests marked `cuda`: from fixtures, and from processes that tests start.

    A fork cannot use its parent's CUDA context, and two ranks cannot share one GPU. It is a fixture because the workers
    of pytest-xdist inherit the environment of a process that loads this file too.
    """
    with pytest.MonkeyPatch.context() as patch:
        if HAS_CUDA:
            torch.zeros(1, device="cuda")
            torch.cuda.device_count()  # asked once: torch keeps the answer
            importlib.import_module("ludus.envs.warp_tools")  # it starts Warp, which looks for devices once
            patch.setenv("CUDA_VISIBLE_DEVICES", "")
            patch.setattr(torch.cuda, "is_available", lambda: False)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what runs of tests name outside away from the user's own record of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def cuda_isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show the GPU to tests marked `cuda`, and restore what they may change globally."""
    if not (HAS_CUDA and request.node.get_closest_marker("cuda")):
        yield
        return
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    if VISIBLE_GPUS is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", VISIBLE_GPUS)
    precision, benchmark = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    yield
    _set_sync_debug_mode("default")
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.benchmark = benchmark


@pytest.fixture
def no_cuda_sync() -> NoCudaSync:
    """Return a context in which any synchronization with the GPU is an error."""

    @contextmanager
    def guarded() -> Iterator[None]:
        _set_sync_debug_mode("error")
        try:
            yield
        finally:
            _set_sync_debug_mode("default")

    return guarded


def _set_sync_debug_mode(mode: str) -> None:
    with warnings.catch_warnings():  # "prototype feature": raised as an error, it would leave the mode on
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)


def forget_algorithm(name: str) -> None:
    """Take an algorithm that a test registered out of the registry and of the configuration."""
    del _ALGORITHMS[name]
    del TrainConfig.__pydantic_fields__[name], TrainConfig.__annotations__[name]
    TrainConfig.model_rebuild(force=True)


@pytest.fixture
def forget() -> Callable[[str], None]:
    """Forget an algorithm before the test ends."""
    return forget_algorithm


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every test begin without the plugins, networks and reward terms of those before it.

    Workers would load the plugins, agents would record them, and a term can be registered once alone.
    """
    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.setattr(plugins, "_OTHERS", {})
    monkeypatch.setattr(user_module, "_REGISTERED", {})
    before = {world: set(found) for world, found in terms._TERMS.items()}
    yield
    for algorithm in [name for name, known in algorithms().items() if not type(known).__module__.startswith("ludus.")]:
        forget_algorithm(algorithm)
    for world, found in terms._TERMS.items():
        for name in found.keys() - before.get(world, set()):
            if not found[name].__module__.startswith("ludus."):  # those of a world that was imported stay
                del found[name]


@pytest.fixture(params=list(POLICY_KINDS))
def policy_kind(request: pytest.FixtureRequest) -> tuple[str, PolicyConfig]:
    """Name and settings of every kind of policy in turn."""
    return request.param, POLICY_KINDS[request.param]


@pytest.fixture
def policy_kinds() -> dict[str, PolicyConfig]:
    """The settings of every kind of policy by name, for tests that are too slow for all of them."""
    return POLICY_KINDS


@pytest.fixture(params=list(ODD_FILES))
def make_odd_file(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Puts a file that cannot be read as text in a place, or something that is no file: every kind in turn."""

    def make(path: Path) -> None:
        path.unlink(missing_ok=True)
        ODD_FILES[request.param](path)

    return make


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A real file system of 2 MiB; skips where none can be mounted."""
    disk = SmallDisk(tmp_path / "disk", "2m")
    yield disk
    disk.close()


@pytest.fixture
def make_arena() -> type[ArenaEnv]:
    """The test world's class: `make_arena(num_envs, picture=...)`."""
    return ArenaEnv


@pytest.fixture
def stroll_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register `stroll-v1`, a walker on the host with episode metrics, mirror and scenarios, for one test."""
    monkeypatch.setattr(worlds, "_WORLDS", dict(worlds.known_worlds()))
    registry.register_world(
        worlds.World(
            id="stroll-v1",
            env="stroll.env:make",
            config="stroll.env:StrollSettings",
            metrics="stroll.metrics:METRICS",
            scenarios="stroll.scenarios:SCENARIOS",
        )
    )
