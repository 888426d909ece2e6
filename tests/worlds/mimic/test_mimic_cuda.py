"""Walkers on a CUDA device: they do what those of MuJoCo do on the CPU, and the host never waits for them."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import warp as wp

from ludus.envs.base import StepResult
from ludus.envs.check import CheckOptions, run_checks
from ludus.envs.registry import make_env, place_for
from ludus.policies.agent import Agent
from ludus.training import Trainer
from ludus.training.presets import load_run_config
from ludus.worlds.mimic.env import MimicEnv

if TYPE_CHECKING:
    from tests.conftest import NoCudaSync

pytestmark = pytest.mark.cuda
# MuJoCo Warp takes seconds to import, and every worker of pytest-xdist loads this file: the tests import it.
if importlib.util.find_spec("mujoco_warp") is None:
    pytest.skip("the package mujoco-warp is missing: pip install -e '.[mimic-gpu]'", allow_module_level=True)

WALKERS = 40
BUSY: dict[str, Any] = {
    "action": "torque",
    "friction": 0.7,
    "speed_change_s": 0.2,
    "episode_s": 0.3,
    "pushes": {"impulse_ns": 30.0, "every_s": 0.2},
}


def make(device: str = "cuda", seed: int = 4, **config: Any) -> MimicEnv:
    env = make_env("mimic", WALKERS, device, seed=seed, config=config)
    assert isinstance(env, MimicEnv)
    return env


def some_actions(env: MimicEnv, steps: int) -> torch.Tensor:
    shape = (steps, env.num_envs, 1, len(env.walker.joints))
    return (0.6 * torch.rand(shape, generator=torch.Generator().manual_seed(8)) - 0.3).to(env.device)


def numbers(result: StepResult) -> dict[str, torch.Tensor]:
    given = {"observations": result.observations["vector"], "final": result.final_observations["vector"]}
    given |= {"terminated": result.terminated, "truncated": result.truncated}
    given |= dict(result.events) | dict(result.state_metrics)
    return {name: tensor.cpu().clone() for name, tensor in given.items()}


@pytest.mark.parametrize("settings", [{}, BUSY], ids=["usual", "busy"])
def test_a_gpu_computes_what_mujoco_does_on_the_cpu(settings: dict[str, Any]) -> None:
    host, device = make("cpu", solver_iterations=20, **settings), make(solver_iterations=20, **settings)
    torch.testing.assert_close(device.reset()["vector"].cpu(), host.reset()["vector"], rtol=0.0, atol=1e-5)
    for step, actions in enumerate(some_actions(host, 64)):
        if step % 8 == 0:
            device.restore(host.snapshot())
        expected, found = numbers(host.step(actions)), numbers(device.step(actions.cuda()))
        if step % 8 == 0:
            for key, value in expected.items():
                atol = 5e-3 if "error" in key else 5e-4
                torch.testing.assert_close(found[key], value, rtol=1e-3, atol=atol, msg=f"{step} {key}")


def test_the_graph_computes_what_the_same_kernels_do_without_it() -> None:
    graphed, plain = make(**BUSY), make(**BUSY)
    graphed.reset()
    for step, actions in enumerate(some_actions(graphed, 40)):
        if step % 5 == 0:
            plain.restore(graphed.snapshot())
        found = numbers(graphed.step(actions))
        assert plain._on_device is not None
        plain._on_device._actions.copy_(actions)
        torch.cuda.synchronize()
        with wp.ScopedDevice("cuda"):
            plain._on_device._run()
            wp.synchronize_device()
        expected = numbers(plain._on_device._result)
        if step % 5 == 0:
            for key, value in expected.items():
                atol = 5e-3 if "error" in key else 5e-4
                torch.testing.assert_close(found[key], value, rtol=1e-3, atol=atol, msg=f"{step} {key}")


def test_a_new_seed_and_a_partial_reset_reach_the_recorded_graph() -> None:
    used, new = make(**BUSY), make(seed=77, **BUSY)
    for actions in some_actions(used, 5):
        used.step(actions)
    chosen = torch.arange(WALKERS, device="cuda") % 3 == 0
    for env in (used, new):
        env.reset(seed=77)
        env.reset(chosen)
    for step, actions in enumerate(some_actions(used, 40)):
        found, expected = numbers(used.step(actions)), numbers(new.step(actions))
        assert torch.equal(found["desired"], expected["desired"]), step  # drawn anew by the seed, in every episode
        assert torch.equal(found["pushes"], expected["pushes"]), step


def test_a_step_never_waits_for_the_gpu(no_cuda_sync: "NoCudaSync") -> None:
    env = make(**BUSY)
    actions = some_actions(env, 20)
    env.reset()
    env.step(actions[0])
    torch.cuda.synchronize()
    with no_cuda_sync():
        for action in actions:
            env.step(action)


def test_a_restored_batch_plays_on_with_the_same_bits() -> None:
    env, other = make(deterministic=True, **BUSY), make(seed=9, deterministic=True, **BUSY)
    env.reset()
    actions = some_actions(env, 40)
    for action in actions[:20]:
        env.step(action)
    snapshot = env.snapshot()
    first = [numbers(env.step(action)) for action in actions[20:]]
    for player in (env, other):
        player.restore(snapshot)
        for step, (expected, action) in enumerate(zip(first, actions[20:], strict=True)):
            found = numbers(player.step(action))
            assert [key for key, value in expected.items() if not torch.equal(found[key], value)] == [], step


def test_it_passes_the_conformance_kit() -> None:
    def maker(num_envs: int, seed: int, first_game: int) -> MimicEnv:
        config = {"episode_s": 0.2, "deterministic": True}
        env = make_env("mimic", num_envs, "cuda", seed=seed, first_game=first_game, config=config)
        assert isinstance(env, MimicEnv)
        return env

    report = run_checks(maker, CheckOptions(num_envs=3, steps=10, end_steps=25))
    assert {name: faults for name, faults in report.failed.items() if name != "render"} == {}  # that needs OpenGL


@pytest.mark.usefixtures("opengl")
def test_a_walker_on_the_gpu_is_drawn() -> None:
    with make() as env:
        env.reset()
        before = env.snapshot()
        assert env.render(3).std() > 5.0
        assert all(torch.equal(value, before[key]) for key, value in env.snapshot().items())


def test_several_motions_are_those_of_the_host() -> None:
    names = ("turn-left", "stand", "turn-right", "side-left")
    settings: dict[str, Any] = {"walker": "walker-13", "mirror": False, "motions": names, "speed_change_s": 0.4}
    host, device = make("cpu", solver_iterations=20, **settings), make(solver_iterations=20, **settings)
    torch.testing.assert_close(device.reset()["vector"].cpu(), host.reset()["vector"], rtol=0.0, atol=1e-5)
    seen = set()
    for step, actions in enumerate(0.3 * some_actions(host, 96)):
        if step % 8 == 0:
            device.restore(host.snapshot())
        expected, found = numbers(host.step(actions)), numbers(device.step(actions.cuda()))
        if step % 8 == 0:
            for key, value in expected.items():
                atol = 5e-3 if "error" in key else 5e-4
                torch.testing.assert_close(found[key], value, rtol=1e-3, atol=atol, msg=f"{step} {key}")
            seen |= set(expected["observations"][:, 0, -len(names) :].flatten().tolist())
    assert len(seen) > 10  # shares of motions that go over into each other


def test_a_walker_trains_on_the_gpu_and_its_agent_walks_on_the_cpu(tmp_path: Path) -> None:
    assert place_for("auto", "mimic") == "cuda"
    small = ["world.num_envs=64", "ppo.n_steps=16", "ppo.batch_size=256", "evaluation.matches=2"]
    config = load_run_config("mimic", "walk-gpu", overrides=[*small, "world.device=cuda"])
    config = config.model_copy(update={"total_env_steps": 2 * 64 * 16})
    with Trainer(config, tmp_path) as trainer:
        assert trainer.run().iterations == 2
        assert trainer.components.env.games_device.type == "cuda"
    agent = Agent.load(tmp_path, "cpu")
    with make_env("mimic", 3, config=agent.settings) as env:
        seen, _ = agent.predict(env.reset()["vector"][0, 0], None, deterministic=True)
    assert torch.isfinite(seen).all()
