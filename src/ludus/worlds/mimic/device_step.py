"""A step of all walkers on a device: kernels of this world around the physics of MuJoCo Warp, recorded as one graph."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import warp as wp
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs.base import Columns, Observations, StepResult
from ludus.envs.warp_tools import announce_compilation, fill_struct, load_kernels, load_launched, stream_from_torch
from ludus.worlds.mimic import observation
from ludus.worlds.mimic.kernels import step as kernels
from ludus.worlds.mimic.kernels import structs
from ludus.worlds.mimic.reference import TRANSITION_S
from ludus.worlds.mimic.spec import observed_motions
from ludus.worlds.mimic.warp_physics import WarpPhysics

if TYPE_CHECKING:
    from ludus.worlds.mimic.env import MimicEnv

_BLOCK = 64  # threads of a block on a CUDA device: 8,192 walkers are enough for all its multiprocessors


class DeviceStep:
    """Advances, restarts and observes the walkers of an environment whose tensors live on a device.

    The kernels are compiled and the graph is recorded in the first step.
    """

    def __init__(self, env: "MimicEnv", state: Mapping[str, Tensor], physics: WarpPhysics) -> None:
        """Share the tensors of an environment: counters, state, feet, peaks and the rows of the reference."""
        self._device, self._walkers, self._physics = env.device, env.num_envs, physics
        load_kernels((kernels,), env.device, blocks={kernels: (_BLOCK,)})
        joints = len(env.walker.joints)
        size = len(env.spec.fields["vector"])
        self._actions = self._floats(1, joints)
        self._chosen = torch.zeros(self._walkers, dtype=torch.bool, device=env.device)
        self._seed = torch.zeros(1, dtype=torch.int32, device=env.device)
        self._observations = {"vector": self._floats(1, size)}
        self._result = StepResult(
            observations=self._observations,
            terminated=torch.zeros_like(self._chosen),
            truncated=torch.zeros_like(self._chosen),
            final_observations={"vector": self._floats(1, size)},
            events=Columns(self._floats(1, len(env.spec.events)), env.spec.events),
            state_metrics=Columns(self._floats(1, len(env.spec.state_metrics)), env.spec.state_metrics),
        )
        own = {"before": self._floats(physics.positions.shape[1] + physics.velocities.shape[1])}
        own |= {"pushed": self._floats(), "vector": self._floats(size)}
        # A single motion has gone over into itself.
        own |= {"motion": self._floats(), "previous": self._floats(), "blend": self._floats() + 1.0}
        self._live = {**own, **state, "time": physics.time}
        self._live |= {"positions": physics.positions, "velocities": physics.velocities}
        self._state = self._make_state()
        self._task, self._tables = _make_task(env, self._seed)
        self._graph: Any = None

    def _floats(self, *shape: int) -> Tensor:
        return torch.zeros((self._walkers, *shape), device=self._device)

    def _make_state(self) -> structs.Walkers:
        state, data = structs.Walkers(), self._physics.data
        arrays = {name: wp.from_torch(tensor) for name, tensor in self._live.items()}
        arrays |= {"controls": data.ctrl, "forces": data.qfrc_applied, "sensors": data.sensordata}
        fill_struct(state, arrays)
        return state

    def set_seed(self, seed: int) -> None:
        """Let all random numbers follow from another seed."""
        hashed = stream_hash(seed)
        self._seed.fill_(hashed - (hashed >> 31 << 32))  # int32 holds the bits of a 32-bit hash

    def restart(self, games: Tensor) -> Observations:
        """Begin the next episode of the walkers in the mask `(games,)`, and observe all."""
        self._chosen.copy_(games)
        seen, chosen = wp.from_torch(self._observations["vector"]), wp.from_torch(self._chosen)
        self._launch(kernels.restart_kernel, [self._state, self._task, chosen, seen])
        return self._observations

    def resume(self) -> Observations:
        """Compute what follows from a state that was restored, and observe all."""
        seen = wp.from_torch(self._observations["vector"])
        self._launch(kernels.resume_kernel, [self._state, self._task, seen])
        return self._observations

    def step(self, actions: Tensor) -> StepResult:
        """Advance all walkers by actions `(games, 1, joints)`; the host only queues it."""
        self._actions.copy_(actions)
        if self._graph is None:
            self._graph = self._record()
        wp.capture_launch(self._graph, stream=self._stream())
        return self._result

    def _stream(self) -> Any:  # noqa: ANN401 - a stream of Warp has no static type
        is_cuda = self._device.type == "cuda"
        return stream_from_torch(torch.cuda.current_stream(self._device)) if is_cuda else None

    def _launch(self, kernel: Any, inputs: list[Any]) -> None:  # noqa: ANN401 - a kernel of Warp has no static type
        place, stream = str(self._device), self._stream()
        wp.launch(kernel, self._walkers, inputs=inputs, device=place, stream=stream, block_dim=_BLOCK)

    def _record(self) -> Any:  # noqa: ANN401 - a graph of Warp has no static type
        """Compile or load all kernels and record a step as a graph; the walkers stay as they are."""
        kept, options = {name: tensor.clone() for name, tensor in self._live.items()}, self._physics.model.opt
        is_cuda = self._device.type == "cuda"
        if is_cuda:
            torch.cuda.synchronize(self._device)  # Warp has a stream of its own here
        with wp.ScopedDevice(str(self._device)):
            with announce_compilation("MuJoCo Warp", self._device, "up to a minute"):
                options.graph_conditional = False  # a loop with a condition would wait for kernels that do not run
                load_launched(self._run, self._device)
                options.graph_conditional = is_cuda
                self._run()
            wp.synchronize_device()
            with wp.ScopedCapture() as recording:
                self._run()
            wp.synchronize_device()
        for name, tensor in self._live.items():
            tensor.copy_(kept[name])
        return recording.graph

    def _run(self) -> None:
        """Launch all kernels of a step on Warp's current device and stream."""
        result = self._result
        tensors = [result.terminated, result.truncated]
        tensors += [columns.packed for columns in (result.events, result.state_metrics) if isinstance(columns, Columns)]
        tensors += [result.final_observations["vector"], result.observations["vector"]]
        before = [self._state, self._task, wp.from_torch(self._actions)]
        after = [self._state, self._task, *map(wp.from_torch, tensors)]
        wp.launch(kernels.decide_kernel, self._walkers, inputs=before, block_dim=_BLOCK)
        self._physics.steps()
        wp.launch(kernels.conclude_kernel, self._walkers, inputs=after, block_dim=_BLOCK)


def _make_task(env: "MimicEnv", seed: Tensor) -> tuple[structs.Task, list[Tensor]]:
    """Return the settings for the kernels, and the tensors whose memory they use."""
    config, controls, joints = env.config, env.controls, env.walker.joints
    parts = env.reference.parts
    told = observed_motions(parts)
    reflections = {
        "joint": observation.joint_reflection(joints),
        "vector": observation.observation_reflection(joints, range(len(told)), stride=False),
    }
    tables = {"table": env.reference.table.flatten(0, 1), "ways": env.ways.float(), "turns": env.turns.float()}
    tables |= {"firsts": torch.tensor([part.first for part in parts], dtype=torch.int32)}
    tables |= {"counts": torch.tensor([part.rows for part in parts], dtype=torch.int32)}
    tables |= {"slowest": torch.tensor([part.speeds[0] for part in parts])}
    tables |= {"spans": torch.tensor([max(part.speeds[1] - part.speeds[0], 1e-9) for part in parts])}
    tables |= {"low_speeds": env.speed_ranges[:, 0], "high_speeds": env.speed_ranges[:, 1]}
    tables |= {name: torch.as_tensor(getattr(controls, name)).float() for name in ("low", "high", "neutral")}
    tables |= {f"{name}_source": torch.tensor(each.source, dtype=torch.int32) for name, each in reflections.items()}
    tables |= {f"{name}_sign": torch.tensor(each.sign) for name, each in reflections.items()}
    tables = {name: tensor.to(env.device).contiguous() for name, tensor in tables.items()}
    task = structs.Task()
    fill_struct(task, {name: wp.from_torch(tensor) for name, tensor in tables.items()})
    task.seed = wp.array(ptr=seed.data_ptr(), dtype=wp.uint32, shape=(1,), device=str(env.device), copy=False)
    rate_hz, pushes = env.spec.rate_hz, config.pushes
    every, lasts = (max(1, round(value * rate_hz)) for value in (pushes.every_s, pushes.duration_s))
    fill_struct(
        task,
        {
            "joints": len(joints),
            "motions": len(told),
            "command": -1 if config.command is None else told.index(config.command),
            "transition_step": 1.0 / (env.spec.rate_hz * TRANSITION_S),
            "turning": int(bool(env.turns.any())),
            "phases": env.reference.table.shape[1],
            "torques": int(config.action == "torque"),
            "mirror": int(config.mirror),
            "fixed_starts": int(config.starts == "fixed"),
            "start_noise": config.start_noise,
            "has_speed": int(config.speed is not None),
            "own_speed": config.speed or 0.0,
            "changes_speed": int(env.changes_speed),
            "speed_change_s": config.speed_change_s,
            "speed_step": env.speed_step_m_s,
            "rate_hz": rate_hz,
            "step_s": 1.0 / rate_hz,
            "step_limit": env.spec.step_limit or np.iinfo(np.int64).max,
            "lowest_m": config.lowest_height * env.walker.standing_m,
            "largest_tilt": math.radians(config.largest_tilt_deg),
            "standing_m": env.walker.standing_m,
            "mass_kg": env.walker.mass_kg,
            "push_every": every,
            "push_lasts": lasts,
            "push_n": pushes.impulse_ns * rate_hz / lasts,
        },
    )
    return task, list(tables.values())
