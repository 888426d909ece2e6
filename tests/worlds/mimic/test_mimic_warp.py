"""Walkers advanced by MuJoCo Warp, here on the CPU: they do what those of MuJoCo do."""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import warp as wp
from torch.utils._python_dispatch import TorchDispatchMode

from ludus.core.errors import ConfigError, DeviceError, MissingDependencyError
from ludus.envs import registry
from ludus.envs.base import EnvRequest, StepResult
from ludus.envs.check import CheckOptions, check_env
from ludus.envs.registry import can_live_on, make_env
from ludus.training import resolve
from ludus.training.distributed import Process
from ludus.training.presets import load_run_config
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.physics import MujocoPhysics

if TYPE_CHECKING:
    from ludus.worlds.mimic.device_step import DeviceStep
    from ludus.worlds.mimic.warp_physics import WarpPhysics

pytestmark = pytest.mark.compile

# MuJoCo Warp takes seconds to import, and every worker of pytest-xdist loads this file: the tests import it.
if importlib.util.find_spec("mujoco_warp") is None:
    pytest.skip("the package mujoco-warp is missing: pip install -e '.[mimic-gpu]'", allow_module_level=True)

WALKERS = 6
# With so many iterations both contact solvers converge, so that only the rounding of float32 is left.
CONVERGED = {"solver_iterations": 20}
BUSY: dict[str, Any] = {
    "action": "torque",
    "friction": 0.7,
    "speed_change_s": 0.2,
    "episode_s": 0.5,
    "lowest_height": 0.2,
    "pushes": {"impulse_ns": 30.0, "every_s": 0.2},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "busy": BUSY,
    "torques of thirteen joints": {"walker": "walker-13", "mirror": False, "action": "torque"},
    "several motions": {
        "walker": "walker-13",
        "mirror": False,
        "motions": ("turn-left", "stand", "turn-right", "side-left"),
        "speed_change_s": 0.2,
        "episode_s": 0.5,
    },
}


def make(physics: str = "warp", walkers: int = WALKERS, seed: int = 3, first_game: int = 5, **config: Any) -> MimicEnv:
    return MimicEnv(EnvRequest(walkers, "cpu", seed, first_game, {**config, "physics": physics}))


def warp_of(env: MimicEnv) -> "WarpPhysics":
    from ludus.worlds.mimic.warp_physics import WarpPhysics

    assert isinstance(env._physics, WarpPhysics)
    return env._physics


def device_of(env: MimicEnv) -> "DeviceStep":
    assert env._on_device is not None
    return env._on_device


def some_actions(env: MimicEnv, steps: int, size: float = 0.3) -> torch.Tensor:
    shape = (steps, env.num_envs, 1, len(env.walker.joints))
    return size * (2.0 * torch.rand(shape, generator=torch.Generator().manual_seed(8)) - 1.0)


def numbers(result: StepResult) -> dict[str, torch.Tensor]:
    """Everything that a step gave, copied."""
    given = {"observations": result.observations["vector"], "final": result.final_observations["vector"]}
    given |= {"terminated": result.terminated, "truncated": result.truncated}
    given |= dict(result.events) | dict(result.state_metrics)
    return {name: tensor.clone() for name, tensor in given.items()}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_step_gives_what_a_step_of_mujoco_gives(name: str) -> None:
    host, warp = (make(physics, **CONVERGED, **SETTINGS[name]) for physics in ("mujoco", "warp"))
    host.reset()
    warp.reset()
    ended, pushed = 0, 0.0
    changed: set[float] = set()
    blends: set[float] = set()
    for step, actions in enumerate(some_actions(host, 60)):
        compares = step % 4 == 0 or step == 49  # in which episodes of half a second end
        if compares:
            warp.restore(host.snapshot())
        expected = host.step(actions)
        if not compares:
            continue
        found = numbers(warp.step(actions))
        for key, value in numbers(expected).items():
            torch.testing.assert_close(found[key], value, rtol=2e-4, atol=2e-3 if "error" in key else 2e-4, msg=key)
        torch.testing.assert_close(found["observations"], expected.observations["vector"], rtol=0.0, atol=3e-5)
        for key, tensor in host.snapshot().items():
            if not key.endswith(("physics", "feet", "peaks")):
                torch.testing.assert_close(warp.snapshot()[key], tensor, rtol=0.0, atol=1e-6, msg=key)
        ended += int(expected.ended.sum())
        pushed += float(expected.events["pushes"].sum())
        changed |= set(expected.state_metrics["desired"].flatten().tolist())
        blends |= set(host._state["blend"].tolist()) if "blend" in host._state else set()
    if name == "several motions":
        assert len(blends) > WALKERS  # some went over into another one
    if name == "busy":
        assert ended > 0
        assert pushed > 0.0
        assert len(changed) > 2 * WALKERS


@pytest.mark.parametrize("starts", ["random", "fixed"])
def test_walkers_start_where_those_of_mujoco_do(starts: str) -> None:
    host, warp = (make(physics, 40, starts=starts) for physics in ("mujoco", "warp"))
    for seed in (None, 2**40 + 1):
        expected, found = (env.reset(seed=seed)["vector"] for env in (host, warp))
        torch.testing.assert_close(found, expected, rtol=0.0, atol=3e-6)
        chosen = torch.arange(40) % 3 == 0
        expected, found = (env.reset(chosen)["vector"] for env in (host, warp))
        torch.testing.assert_close(found, expected, rtol=0.0, atol=3e-6)
        for key, tensor in host.snapshot().items():
            torch.testing.assert_close(warp.snapshot()[key], tensor, rtol=1e-6, atol=5e-6, msg=key)


def test_the_same_controls_move_walkers_as_converged_mujoco_does() -> None:
    config: dict[str, Any] = {"lowest_height": 0.2, "largest_tilt_deg": 120.0}
    host, warp = make("mujoco", solver_iterations=100, **config), make("warp", **config)
    host.reset()
    warp.restore(host.snapshot())
    for actions in some_actions(host, 50):
        host.step(actions)
        warp.step(actions)
    for game in range(WALKERS):
        here, there = host.positions(game), warp.positions(game)
        assert np.rad2deg(np.abs(here[7:] - there[7:]).max()) < 2e-3
        assert np.abs(here[:3] - there[:3]).max() < 2e-5


def test_whole_episodes_have_the_same_statistics() -> None:
    host, warp = (make(physics, **CONVERGED, episode_s=0.3, starts="fixed") for physics in ("mujoco", "warp"))
    sums: list[torch.Tensor] = []
    for env in (host, warp):
        env.reset()
        found = [numbers(env.step(actions)) for actions in some_actions(env, 60, size=0.1)]
        columns = [torch.cat([each[name] for name in ("completed", "falls", "distance")], 1) for each in found]
        sums.append(torch.stack(columns).sum(0))
    assert sums[0][:, 0].tolist() == [2.0] * WALKERS
    torch.testing.assert_close(sums[1], sums[0], rtol=0.0, atol=1e-3)


def test_a_restored_batch_plays_on_with_the_same_bits() -> None:
    env, other = make(**BUSY), make(seed=9, **BUSY)
    env.reset()
    actions = some_actions(env, 40)
    for action in actions[:20]:
        env.step(action)
    snapshot = env.snapshot()
    first = [numbers(env.step(action)) for action in actions[20:]]
    for player in (env, other):
        player.restore(snapshot)
        for expected, action in zip(first, actions[20:], strict=True):
            found = numbers(player.step(action))
            assert all(torch.equal(found[key], value) for key, value in expected.items())
    assert other.seed == env.seed == 3


def test_a_snapshot_goes_from_one_physics_to_the_other_and_back() -> None:
    host, warp = make("mujoco"), make("warp")
    warp.reset()
    for action in some_actions(warp, 5):
        warp.step(action)
    snapshot = warp.snapshot()
    seen = host.restore(snapshot)["vector"]
    torch.testing.assert_close(seen, warp.restore(snapshot)["vector"], rtol=0.0, atol=1e-5)
    for key, tensor in host.snapshot().items():
        assert torch.equal(tensor, snapshot[key]), key


def test_a_game_does_not_depend_on_the_batch() -> None:
    whole, part = make(walkers=5, first_game=0, **BUSY), make(walkers=2, first_game=3, **BUSY)
    whole.reset()
    part.reset()
    for actions in some_actions(whole, 30):
        expected, found = numbers(whole.step(actions)), numbers(part.step(actions[3:]))
        assert all(torch.equal(found[key], value[3:]) for key, value in expected.items())


@pytest.mark.usefixtures("opengl")
def test_it_passes_the_conformance_kit() -> None:
    def maker(num_envs: int, seed: int, first_game: int) -> MimicEnv:
        return make("warp", num_envs, seed, first_game, episode_s=0.2)

    report = check_env(maker, CheckOptions(num_envs=3, steps=10, end_steps=25))
    assert not report.failed, str(report)


def test_physics_that_breaks_ends_the_episode_and_nothing_else() -> None:
    env, other = make(), make()
    env.reset(seed=0)
    other.reset(seed=0)
    warp_of(env).velocities[1, 8] = np.nan
    actions = some_actions(env, 2)
    result, usual = numbers(env.step(actions[0])), numbers(other.step(actions[0]))
    others = torch.arange(WALKERS) != 1
    assert torch.equal(result["terminated"], ~others)
    assert torch.equal(result["faults"][:, 0] > 0.0, ~others)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in result.values())
    assert all(torch.equal(tensor[others], usual[key][others]) for key, tensor in result.items())
    assert not env.step(actions[1]).events["faults"].any()


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the names of torch's operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_a_step_is_one_graph_that_gets_actions_and_works_in_place() -> None:
    env = make(**BUSY)
    env.reset()
    actions = some_actions(env, 12).unbind(0)
    first = env.step(actions[0])
    places = [tensor.data_ptr() for tensor in device_of(env)._live.values()]
    with Operations() as operations:
        results = [env.step(action) for action in actions]
    assert operations.found == {"copy_"}
    assert all(result is first for result in results)
    env.reset(seed=4)
    env.restore(env.snapshot())
    assert [tensor.data_ptr() for tensor in device_of(env)._live.values()] == places


def test_recording_the_graph_does_not_move_the_walkers() -> None:
    recorded, new = make(**BUSY), make(**BUSY)
    recorded.step(some_actions(recorded, 1)[0])
    start = new.snapshot()
    recorded.restore(start)
    device_of(recorded)._graph = None
    for actions in some_actions(new, 3):
        expected, found = numbers(new.step(actions)), numbers(recorded.step(actions))
        assert all(torch.equal(found[key], value) for key, value in expected.items())


@pytest.mark.parametrize("action", ["torque", "target"])
def test_controls_are_those_of_the_host(action: str) -> None:
    host, warp = (make(physics, action=action) for physics in ("mujoco", "warp"))
    host.reset()
    warp.restore(host.snapshot())
    actions = some_actions(host, 1, size=2.0)[0]
    actions[0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    host.step(actions)
    warp.step(actions)
    expected = torch.from_numpy(host._host._inputs[:, 0, : len(host.walker.joints)]).float()
    torch.testing.assert_close(wp.to_torch(warp_of(warp).data.ctrl), expected, rtol=0.0, atol=1e-6)


def test_rows_that_come_in_any_order_are_put_into_one() -> None:
    """Rows of one foot's four spheres, of the other's, and of limits, mixed up as threads of a GPU may append them."""
    with make(walkers=WALKERS, deterministic=True, motion="walk-slow") as env:
        env.reset()
        for actions in some_actions(env, 12, size=1.0):
            env.step(actions)
        physics = warp_of(env)
        data, order = physics.data, physics.model.callback.control
        order(physics.model, data)
        names = ("type", "id", "pos", "margin", "D", "vel", "aref", "frictionloss", "J")
        expected = {name: getattr(data.efc, name).numpy().copy() for name in names}
        addresses, counts = data.contact.efc_address.numpy().copy(), data.nefc.numpy()
        kinds, mixed = expected["type"], {name: values.copy() for name, values in expected.items()}
        moved_to = np.tile(np.arange(kinds.shape[1]), (WALKERS, 1))
        random = np.random.default_rng(2)
        for world, count in enumerate(counts):
            blocks = [
                np.flatnonzero((kinds[world, :count] == kind) & (expected["id"][world, :count] == number))
                for kind, number in {*zip(kinds[world, :count], expected["id"][world, :count], strict=True)}
            ]
            rows = np.concatenate([blocks[k] for k in random.permutation(len(blocks))]) if blocks else np.arange(0)
            moved_to[world, rows] = np.arange(count)
            for values in mixed.values():
                values[world, :count] = values[world, rows]
        held = data.contact.worldid.numpy()
        other = np.where(addresses >= 0, moved_to[held[:, None], np.maximum(addresses, 0)], addresses)
        assert counts.max() >= 8
        assert any((mixed["id"] != expected["id"]).any(axis=1))
        for name, values in mixed.items():
            getattr(data.efc, name).assign(values)
        data.contact.efc_address.assign(other)
        order(physics.model, data)
        for name, values in expected.items():
            np.testing.assert_array_equal(getattr(data.efc, name).numpy(), values, err_msg=name)
        found = int(data.nacon.numpy()[0])  # behind them are contacts of earlier steps
        np.testing.assert_array_equal(data.contact.efc_address.numpy()[:found], addresses[:found])


def test_ordered_rows_walk_as_others_do() -> None:
    plain, ordered = make(**BUSY), make(deterministic=True, **BUSY)
    for env in (plain, ordered):
        env.reset()
    for actions in some_actions(plain, 20):
        expected, found = numbers(plain.step(actions)), numbers(ordered.step(actions))
        for key, value in expected.items():
            torch.testing.assert_close(found[key], value, rtol=1e-3, atol=5e-3 if "error" in key else 5e-4, msg=key)


def test_room_for_constraints_is_what_a_walker_can_have() -> None:
    from ludus.worlds.mimic.warp_physics import constraint_sizes

    # Eight spheres under the feet, four pyramid edges each, and the limits of 8 or 13 joints: 40 and 45 rows.
    for kind in ("walker-8", "walker-13"):
        assert constraint_sizes(make_walker(MimicConfig.model_validate({"walker": kind})).model) == (8, 48)


def test_a_body_of_your_own_has_room_to_touch_itself_too() -> None:
    from ludus.worlds.mimic.warp_physics import constraint_sizes

    joints = {"hip": "hip", "hip_frontal": "swing", "knee": "knee", "ankle": "ankle"}
    named = {f"{side}_{kind}": f"{name}_{side}" for side in ("right", "left") for kind, name in joints.items()}
    body = {"file": str(Path(__file__).parents[3] / "examples" / "own_body.xml"), "joints": named}
    model = make_walker(MimicConfig.model_validate({"body": body})).model
    # Two boxes as feet with four corners each, and 16 more; four rows for each contact, and the limits of ten joints.
    assert constraint_sizes(model) == (24, 112)


def test_auto_is_mujoco_on_the_cpu() -> None:
    assert isinstance(make("auto")._physics, MujocoPhysics)
    assert make("auto").spec.device_types == ("cpu", "cuda")
    assert make("mujoco").spec.device_types == ("cpu",)
    with pytest.raises(DeviceError, match="lives on cpu"):
        make_env("mimic", games_device="cuda", config={"physics": "mujoco"})
    with pytest.raises(ConfigError, match="physics"):
        make("bullet")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "ludus.worlds.mimic.warp_physics", raising=False)
    with pytest.raises(MissingDependencyError, match=r"mujoco-warp.*mimic-gpu"):
        make("warp")
    with pytest.raises(MissingDependencyError, match="physics: mujoco"):
        can_live_on("cpu", "mimic", {"physics": "warp"})


def test_a_run_on_a_gpu_without_the_library_says_so_if_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> bool:
        raise MissingDependencyError("mujoco-warp", "mimic-gpu", "mimic on a CUDA device")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for module in (resolve, registry):
        monkeypatch.setattr(module, "can_live_on", refuse)
    run = resolve.resolve(load_run_config("mimic", "debug"), Process())
    assert run.whole.world.device == registry.place_for("auto", "mimic") == "cpu"
    assert "mimic is played on the CPU: mimic on a CUDA device needs mujoco-warp" in caplog.text
    with pytest.raises(MissingDependencyError, match="mujoco-warp"):
        resolve.resolve(load_run_config("mimic", "debug", overrides=["world.device=cuda"]), Process())
