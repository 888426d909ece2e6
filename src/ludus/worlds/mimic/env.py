"""`mimic-v1`: thousands of walkers that follow a reference gait, on the host or on a GPU.

What is here runs on the host, with MuJoCo. On a GPU, `device_step.py` does the same in kernels, with MuJoCo Warp.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash_tensor, uniform
from ludus.core.state import FINITE, MAX_COUNT
from ludus.envs import base
from ludus.envs.base import BatchedEnv, Columns, EnvRequest, Observations, StepResult
from ludus.envs.settings import read_settings
from ludus.worlds.mimic import observation
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import Steps, Walker, make_walker
from ludus.worlds.mimic.motion.reference import follow_motion, follow_motions
from ludus.worlds.mimic.physics import Controls, MujocoPhysics, Physics, Push, push_forces
from ludus.worlds.mimic.reference import (
    STAIR_STEPS,
    STREAMS,
    TRANSITION_S,
    Frame,
    Part,
    Reference,
    Stream,
    draw_motions,
    draw_starts,
    normal_reference,
)
from ludus.worlds.mimic.rendering.figure import WalkerView, reference_positions
from ludus.worlds.mimic.scoring import Scorer
from ludus.worlds.mimic.spec import check_settings, make_spec, observed_heights, observed_motions

if TYPE_CHECKING:
    from ludus.worlds.mimic.device_step import DeviceStep
    from ludus.worlds.mimic.rendering.painter import WalkerPainter

SPEED_CHANGE_M_S2 = 0.3  # how fast the reference follows a new desired speed
COMMAND_STATE = ("motion", "previous", "blend")  # where there are several: the one asked for, and how far it has come
_USUAL_SPEEDS = (0.1, 0.8)  # of the reference's range, where nothing is asked of a body of the user's own
_SPEED_TOLERANCE_M_S = 0.005  # ranges are shown with two digits


class MimicEnv(BatchedEnv):
    """A walker with the sizes and masses of a person learns to walk as people do.

    The reference gait gives, for a desired speed and a phase of the stride, the angles and velocities of all joints,
    the height, orientation and velocity of the hips and where heels and balls of the feet are. It runs on its own
    clock; the walker is rewarded for being like it. With `mirror` left steps are seen, and acted on, as right steps.

    Observation, entry `vector`, float32 (J joints: 8, or 13 with trunk and hip rotation):

    | index | field | unit |
    |---|---|---|
    | 0, 1 | cosine and sine of the phase of the step (of the stride without `mirror`) | |
    | 2, 3 | speed of the reference, desired speed | m/s |
    | 4 | height of the hips over standing | dm |
    | 5 - 7 | roll, pitch and yaw of the trunk (of the pelvis with 13 joints) | rad |
    | 8 - 10 | velocity of the hips ahead, to the left, up, in the direction it faces | m/s |
    | 11 - 13 | angular velocity about the trunk's own axes | 5 rad/s |
    | 14 ... 13 + J | joint angles | rad |
    | 14 + J ... 13 + 2 J | joint velocities | 10 rad/s |
    | 14 + 2 J ... | share of each of several motions in the reference; absent where there is one | |
    | then 12 | on stairs: height of the ground from 0.1 m behind to 0.45 m ahead, over the line of the stairs | dm |

    Action, `Box(-1, 1, (J,))`: `torque`, shares of each joint's largest torque; `target`, angles from the lowest to the
    highest of each joint with 0 at the reference's mean. Values beyond the range are clipped.

    Events: `reward` (similarity to the reference, 0 to 1: 0.8 exp(-3 pose_error) + 0.2 exp(-0.05 velocity_error)),
    `distance` (m along its way), `energy` (J of all joints), `strikes_right`, `strikes_left` (feet that came down),
    `step_right`, `step_left` (m from the other heel to theirs), `swing_right`, `swing_left` (s that they were off the
    ground before), `stance_right`, `stance_left` (s on the ground), `falls`, `completed`, `pushes`, `faults` (numbers
    of the physics that went wrong), and `peak_JOINT` (N m by which the largest torque of the episode grew).

    Measures: `pose_error`, `velocity_error` (sums of squares over joints and trunk, rad and rad/s), `root_error`
    (squares of height in dm, of forward and of sideways speed in m/s; on stairs also of three times the way in m
    that it is off its place), `effector_error` (m^2, heels and balls), `power`
    (W), `mass` (kg), `speed`, `desired` (m/s), `height` (m), `tilt` (rad), `phase` (of the stride) and `error_JOINT`
    (deg^2).

    Start: on the reference, at a random phase and speed, with a little noise.

    End: the hips below `lowest_height` of standing, the trunk tilted beyond `largest_tilt_deg`, or physics that broke;
    truncated after `episode_s`.
    """

    def __init__(self, request: EnvRequest) -> None:
        config = read_settings(MimicConfig, request.config, "mimic-v1")
        check_settings(config)
        self.walker = make_walker(config)
        self.reference, speed_range, warnings = _make_reference(config, self.walker)
        stairs = self._stairs = self.reference.stairs
        if stairs is not None:
            self.walker = make_walker(config, Steps(stairs.first_m, stairs.depth_m, stairs.height_m, STAIR_STEPS))
        config = self.config = config.model_copy(update={"speed_range": speed_range})
        self.warnings = (*warnings, *_speed_warnings(config, self.reference))
        joints = self.walker.joints
        self.spec = make_spec(config, joints, self.reference)
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self.device = base.resolve_device(request.device, self.spec.id, self.spec.device_types)
        self._painter: WalkerPainter | None = None
        self._controls = Controls(self.walker, self.reference, config)
        self._scorer = Scorer(self.walker, config, self.num_envs, self.device)
        parts = self.reference.parts
        told = tuple(range(len(observed_motions(parts))))
        heights = observed_heights(self.reference)
        self._reflection = observation.observation_reflection(joints, told, heights, stride=False)
        # Of each motion: its speeds, its direction ahead and to the left, and by how much it turns in a step.
        own_range = [config.speed_range] if len(parts) == 1 else [part.speeds for part in parts]
        self.speed_ranges = torch.tensor(own_range)
        self.ways = torch.tensor([way_of(part) for part in parts])
        self.turns = torch.tensor([part.turn_rad_s / self.spec.rate_hz for part in parts])
        self._joint_reflection = observation.joint_reflection(joints)
        numbers = torch.arange(self.num_envs, device=self.device)
        self._counters = {
            "game": self.first_game + numbers,
            "episode": torch.full_like(numbers, -1),
            "frame": torch.zeros_like(numbers),
            "change": torch.zeros_like(numbers),
        }
        names = ("phase", "speed", "desired", *(COMMAND_STATE if told else ()))
        self._state = {name: torch.zeros(self.num_envs, device=self.device) for name in names}
        # What a snapshot may hold of it: phases become indices.
        self._ranges = {
            **dict.fromkeys(("game", "frame", "change"), (0, MAX_COUNT)),
            "episode": (-1, MAX_COUNT),
            "seed": (0, 2**32 - 1),
            "phase": (0, 1),
            **(dict.fromkeys(COMMAND_STATE, (0, len(parts) - 1)) | {"blend": (0, 1)} if told else {}),
            **dict.fromkeys(("physics", "speed", "desired", *self._scorer.state()), FINITE),
        }
        self._rows = torch.zeros((self.num_envs, self.reference.table.shape[-1]), device=self.device)
        self._frame = self.reference.split(self._rows)  # views of the rows, which are written in place
        self._physics: Physics
        self._on_device: DeviceStep | None = None
        if config.physics == "warp" and stairs is not None:
            raise ConfigError(f"motion {config.motion} has stairs, which MuJoCo Warp cannot do; set physics: mujoco")
        if config.physics == "warp" or self.device.type == "cuda":
            self._physics, self._on_device = self._make_device_step()
        else:
            self._physics = MujocoPhysics(self.walker, config, self._controls, self.num_envs)
        self._restart(torch.ones(self.num_envs, dtype=torch.bool, device=self.device))
        self._counters["episode"].fill_(-1)

    def _make_device_step(self) -> tuple[Physics, "DeviceStep"]:
        from ludus.worlds.mimic.device_step import DeviceStep  # needs a library that is optional
        from ludus.worlds.mimic.warp_physics import WarpPhysics

        physics = WarpPhysics(self.walker, self.config, self.num_envs, self.device)
        state = {**self._counters, **self._state, **self._scorer.state(), "reference": self._rows}
        step = DeviceStep(self, state, physics)
        step.set_seed(self.seed)
        return physics, step

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start a new episode; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        if seed is not None:
            self._take_seed(seed)
            self._counters["episode"].fill_(-1)
        everyone = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        return self._restart(everyone if games is None else games)

    def _take_seed(self, seed: int) -> None:
        self.seed = seed
        if self._on_device is not None:
            self._on_device.set_seed(seed)

    @property
    def _host(self) -> MujocoPhysics:
        """The physics of walkers that are advanced on the host."""
        assert isinstance(self._physics, MujocoPhysics)  # noqa: S101 - `DeviceStep` does without what asks for it
        return self._physics

    def _advance(self, actions: Tensor) -> StepResult:
        if self._on_device is not None:
            return self._on_device.step(actions)
        given = actions[:, 0].clamp(-1.0, 1.0).nan_to_num()
        given = torch.where(self._mirrored().unsqueeze(1), self._joint_reflection.apply(given), given)
        push, pushed = self._pushes()
        self._host.decide(given, push)
        self._host.advance()
        return self._conclude(pushed)

    def _conclude(self, pushed: Tensor) -> StepResult:
        """Return what follows from the physics of a step, and restart the games that ended."""
        outcome = self._host.conclude()
        turned = self._turned()
        if turned is not None:
            self._turn(turned.double())
        way = self.ways[self._motions()]
        self._move_reference()
        positions, velocities = self._bodies()
        angles = observation.euler_angles(positions[:, 3:7])
        lag_m = None if self._stairs is None else self._stairs.lag(positions[:, 0], self._state["phase"])
        fell = self._has_fallen(positions, angles)
        terminated = fell | outcome.broken
        truncated = (self._counters["frame"] >= (self.spec.step_limit or 0)) & ~terminated
        events, state_metrics = self._scorer.score(positions, velocities, angles, self._frame, outcome.sensors, lag_m)
        state_metrics["speed"] = (velocities[:, :2] * way).sum(1)
        events["distance"], events["pushes"] = (outcome.travelled * way).sum(1), pushed
        events["falls"], events["completed"] = fell.float(), truncated.float()
        events["faults"] = outcome.broken.float()
        state_metrics["desired"], state_metrics["phase"] = self._state["desired"], self._state["phase"]
        final_observations = self._observe(angles)
        ended = terminated | truncated
        packed_events = _packed(events, self.spec.events)
        packed_measures = _packed(state_metrics, self.spec.state_metrics)
        observations = self._restart(ended) if bool(ended.any()) else final_observations
        return StepResult(observations, terminated, truncated, final_observations, packed_events, packed_measures)

    def _bodies(self) -> tuple[Tensor, Tensor]:
        """Return positions and velocities of all walkers; on stairs, heights are those over the line of `Stairs`."""
        positions, velocities = self._host.bodies()
        if self._stairs is not None:
            positions[:, 2] -= self._stairs.line(positions[:, 0])
        return positions, velocities

    def _set(self, name: str, games: Tensor, values: Tensor) -> None:
        """Set a number of the state in the games of the mask `(games,)`."""
        own = self._state[name] if name in self._state else self._counters[name]
        own.copy_(torch.where(games, values, own))

    @property
    def controls(self) -> Controls:
        """What turns actions into controls."""
        return self._controls

    def frame(self) -> Frame:
        """Return the current frame of the reference of every game, live."""
        return self._frame

    def positions(self, game: int) -> NDArray[np.float64]:
        """Return a copy of the positions of one walker, as MuJoCo has them: root, then joints."""
        return self._physics.place(game)

    def velocities(self, game: int) -> NDArray[np.float64]:
        """Return a copy of the velocities of one walker, as MuJoCo has them: root, then joints."""
        return self._physics.state()[game, 1 + self.walker.model.nq :].cpu().numpy().copy()

    def feet_down(self) -> Tensor:
        """Return `(games, 2)` bool, whether the right and the left foot are on the ground."""
        return self._scorer.state()["feet"][:, :2] > 0.5

    def view(self, game: int) -> WalkerView:
        """Return the view of one walker."""
        push, _ = self._pushes()
        force = np.zeros(2) if push is None else push_forces(Push(*(part[game : game + 1] for part in push)))[0]
        time_s = float(self._counters["frame"][game]) / self.spec.rate_hz
        ghost, line = reference_positions(Frame(*(part[game : game + 1].cpu() for part in self._frame)), 0), None
        if self._stairs is not None:
            line = float(self._stairs.line(torch.tensor(self.positions(game)[0])))
            ghost[2] += line
        desired = float(self._state["desired"][game])
        push_n = float(force[0]), float(force[1])
        return WalkerView(self.positions(game), ghost, time_s, desired, push_n, stairs_m=line)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one walker and the reference beside it as an RGB picture; see `rendering.gl` for what it needs."""
        from ludus.worlds.mimic.rendering.painter import WalkerPainter  # only who draws pays for it

        if self._painter is None:
            self._painter = WalkerPainter(self.walker)
        return self._painter.paint(self.view(game))

    def _has_fallen(self, positions: Tensor, angles: Tensor) -> Tensor:
        config = self.config
        low = positions[:, 2] < config.lowest_height * self.walker.standing_m
        limit = math.radians(config.largest_tilt_deg)
        return low | (angles[:, 0].abs() > limit) | (angles[:, 1].abs() > limit)

    def _move_reference(self) -> None:
        """Advance phase and speed, and draw a new desired speed where one is due."""
        state, counters, step_s = self._state, self._counters, 1.0 / self.spec.rate_hz
        state["phase"].copy_((state["phase"] + step_s / self._frame.period_s) % 1.0)
        change = self.speed_step_m_s
        state["speed"].add_((state["desired"] - state["speed"]).clamp(-change, change))
        counters["frame"].add_(1)
        if self._has_motions:
            state["blend"].copy_((state["blend"] + step_s / TRANSITION_S).clamp(max=1.0))
        due = counters["frame"] == counters["change"]
        if self.changes_speed and bool(due.any()):
            hashes = self._hash(Stream.COMMAND, 3)
            if self._has_motions and self.config.command is None:
                self._switch(due & (state["blend"] >= 1.0), uniform(hashes[:, 2]))
            speeds, frames = self._next_speeds(hashes)
            self._set("desired", due, speeds)
            self._set("change", due, frames)
        self._rows.copy_(self._reference_rows())

    @property
    def _has_motions(self) -> bool:
        return len(self.reference.parts) > 1

    def _motions(self) -> Tensor:
        """Return `(games,)`, the motion that is asked for in each game."""
        if self._has_motions:
            return self._state["motion"].long()
        return torch.zeros(self.num_envs, dtype=torch.long)

    def _switch(self, games: Tensor, random: Tensor) -> None:
        """Let the games of the mask `(games,)` go over into motions that follow from `random` `(games,)`."""
        state = self._state
        drawn = (random * len(self.reference.parts)).floor()
        self._set("previous", games, state["motion"].clone())
        self._set("blend", games, (drawn == state["motion"]).float())
        self._set("motion", games, drawn)

    def _reference_rows(self) -> Tensor:
        """Return the rows of the reference; one motion goes over into the next while the stride goes on."""
        state = self._state
        if not self._has_motions:
            return self.reference.rows(state["speed"], state["phase"])
        before, now = (
            self.reference.rows(state["speed"], state["phase"], state[name]) for name in ("previous", "motion")
        )
        return torch.lerp(before, now, state["blend"].unsqueeze(1))

    def _turn(self, turns: Tensor) -> None:
        """Turn the directions of walkers to the left by `turns` `(games,)` in rad.

        The world is turned under a walker instead: physics on level ground does not know directions.
        """
        self._host.turn(-turns.numpy())

    def _turned(self) -> Tensor | None:
        """Return by how much the direction of each game turns in this step, `(games,)`; None if none ever does."""
        if not bool(self.turns.any()):
            return None
        if not self._has_motions:
            return self.turns.expand(self.num_envs)
        before, now = (self.turns[self._state[name].long()] for name in ("previous", "motion"))
        return torch.lerp(before, now, self._state["blend"])

    @property
    def changes_speed(self) -> bool:
        """Whether the desired speed changes within an episode."""
        return self.config.speed is None and self.config.speed_change_s > 0.0

    @property
    def speed_step_m_s(self) -> float:
        """By how much the speed of the reference changes at most in a step."""
        return SPEED_CHANGE_M_S2 * (1.0 / self.spec.rate_hz)

    def _next_speeds(self, hashes: Tensor) -> tuple[Tensor, Tensor]:
        """Draw the next desired speeds `(games,)`, and the frames at which others will follow them."""
        config, random = self.config, uniform(hashes)
        low, high = self._speed_range()
        seconds = config.speed_change_s * (0.5 + random[:, 1])
        frames = self._counters["frame"] + (seconds * self.spec.rate_hz).long().clamp(min=1)
        return low + (high - low) * random[:, 0], frames

    def _speed_range(self) -> tuple[Tensor, Tensor]:
        """Return the lowest and the highest desired speed of each game, `(games,)` each."""
        low, high = self.speed_ranges[self._motions()].unbind(1)
        return low, high

    def _own_speed(self) -> Tensor:
        """Return the speed of the settings, `(games,)`; among several motions, what each has that is nearest to it."""
        speeds = torch.full((self.num_envs,), self.config.speed or 0.0)
        return torch.clamp(speeds, *self._speed_range()) if self._has_motions else speeds

    def _pushes(self) -> tuple[Push | None, Tensor]:
        """Return the pushes of this frame, and 1 in games in which one begins."""
        config = self.config.pushes
        if config.impulse_ns == 0.0:
            return None, torch.zeros(self.num_envs, device=self.device)
        every, lasts = (max(1, round(value * self.spec.rate_hz)) for value in (config.every_s, config.duration_s))
        frames = self._counters["frame"]
        number, since = frames // every, frames % every
        keys = (self._counters["game"], self._counters["episode"], number, Stream.PUSH)
        hashes = stream_hash_tensor(self.seed, *keys)
        active = ((number >= 1) & (since < lasts)).double()
        newtons = active * config.impulse_ns * self.spec.rate_hz / lasts
        return Push(2.0 * math.pi * uniform(hashes).double(), newtons), ((number >= 1) & (since == 0)).float()

    def _restart(self, games: Tensor) -> Observations:
        """Begin the next episode of the games in the mask `(games,)`, and observe all."""
        if self._on_device is not None:
            return self._on_device.restart(games)
        counters, state = self._counters, self._state
        counters["episode"].add_(games)
        counters["frame"].masked_fill_(games, 0)
        hashes = self._hash(Stream.START, STREAMS)
        if self._has_motions:
            motions = draw_motions(self.config, self.reference.parts, counters["game"], hashes).float()
            for name, numbers in (("motion", motions), ("previous", motions), ("blend", torch.ones_like(motions))):
                self._set(name, games, numbers)
        own = None if self.config.speed is None else self._own_speed()
        speed_range = self._speed_range() if own is None else (own, own)
        phases, speeds = draw_starts(self.config, counters["game"], hashes, speed_range)
        for name, values in (("phase", phases), ("speed", speeds), ("desired", speeds)):
            self._set(name, games, values)
        if self.changes_speed:
            self._set("change", games, self._next_speeds(self._hash(Stream.COMMAND, 2))[1])
        else:
            counters["change"].masked_fill_(games, 0)  # which is never due
        self._rows.copy_(self._reference_rows())
        rows = games.nonzero().squeeze(1)
        noise = uniform(self._hash(Stream.NOISE, 2 * len(self.walker.joints), rows))
        self._host.restart(rows, Frame(*(part[rows] for part in self._frame)), noise)
        if self._stairs is not None:
            places = self._stairs.place(state["phase"][rows])
            self._host.move(rows, places, self._stairs.line(places))
        self._scorer.restart(games)
        return self._observe()

    def _mirrored(self) -> Tensor:
        """Return `(games,)` bool, games that are in a left step and see it as a right one."""
        return (self._state["phase"] >= 0.5) & self.config.mirror

    def _observe(self, angles: Tensor | None = None) -> Observations:
        positions, velocities = self._bodies()
        angles = observation.euler_angles(positions[:, 3:7]) if angles is None else angles
        state = self._state
        phases = (2.0 * state["phase"]) % 1.0 if self.config.mirror else state["phase"]
        speeds = torch.stack((state["speed"], state["desired"]), dim=1)
        vector = observation.observe(
            positions, velocities, angles, phases, speeds, self.walker.standing_m, *self._shares(),
            *self._heights(positions[:, 0], angles[:, 2]),
        )  # fmt: skip
        vector = torch.where(self._mirrored().unsqueeze(1), self._reflection.apply(vector), vector)
        return {"vector": vector.unsqueeze(1)}

    def _heights(self, x: Tensor, yaw: Tensor) -> tuple[Tensor, ...]:
        """Return heights of the ground ahead of walkers, over the line under them, `(games, heights)` in dm."""
        if self._stairs is None:
            return ()
        ahead = torch.cos(yaw).unsqueeze(1) * torch.tensor(observation.AHEAD_M)
        line = self._stairs.line(x).unsqueeze(1)
        return (10.0 * (self._stairs.ground(x.unsqueeze(1) + ahead) - line),)

    def _shares(self) -> tuple[Tensor, ...]:
        """Return the share of each motion in the reference, `(games, motions)`; nothing if there is only one."""
        if not self._has_motions:
            return ()
        count, blend = len(self.reference.parts), self._state["blend"].unsqueeze(1)
        before, now = (torch.nn.functional.one_hot(self._state[name].long(), count) for name in ("previous", "motion"))
        return (torch.lerp(before.float(), now.float(), blend),)

    def _hash(self, stream: int, count: int, rows: Tensor | None = None) -> Tensor:
        """Return hashes `(games, count)` of this frame of each game, or of those in `rows` alone."""
        keys = [self._counters[name].unsqueeze(1) for name in ("game", "episode", "frame")]
        keys = keys if rows is None else [key[rows] for key in keys]
        return stream_hash_tensor(self.seed, *keys, stream + torch.arange(count))

    def _whole_state(self) -> dict[str, Tensor]:
        halves = [self.seed & 0xFFFFFFFF, (self.seed >> 32) & 0xFFFFFFFF]  # seeds may be larger than int64
        whole = {"seed": torch.tensor(halves), "physics": self._physics.state()}
        whole |= self._counters | self._state | self._scorer.state()
        return {f"{self._prefix}{name}": tensor for name, tensor in whole.items()}

    @property
    def _prefix(self) -> str:
        return f"{self.spec.id}/{self.walker.name}/"

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as tensors that later steps do not touch."""
        return {name: tensor.clone() for name, tensor in self._whole_state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Restore a snapshot, including seed and game numbers, and return its observations."""
        ranges = {f"{self._prefix}{name}": limits for name, limits in self._ranges.items()}
        base.check_snapshot(snapshot, self._whole_state(), self.spec.id, ranges)
        taken = {name.rpartition("/")[2]: tensor for name, tensor in snapshot.items()}
        self._take_seed(int(taken["seed"][0]) | int(taken["seed"][1]) << 32)
        self.first_game = int(taken["game"][0])
        self._physics.load_state(taken["physics"])
        for part in (self._counters, self._state):
            for name, tensor in part.items():
                tensor.copy_(taken[name])
        self._scorer.load_state(taken)
        if self._on_device is not None:
            return self._on_device.resume()
        self._rows.copy_(self._reference_rows())
        return self._observe()

    def close(self) -> None:
        """End the threads and release what was drawn with; may be called twice."""
        self._physics.close()
        if self._painter is not None:
            self._painter.close()
            self._painter = None


def way_of(part: Part) -> tuple[float, float]:
    """Return the direction of a motion, ahead and to the left."""
    return round(math.cos(part.way_rad), 12), round(math.sin(part.way_rad), 12)


def _packed(columns: Mapping[str, Tensor], names: tuple[str, ...]) -> Columns:
    return Columns(torch.stack([columns[name] for name in names], dim=-1).unsqueeze(1), names)


def _make_reference(config: MimicConfig, walker: Walker) -> tuple[Reference, tuple[float, float], tuple[str, ...]]:
    """Return the reference, the range of desired speeds, and warnings."""
    if config.motions:
        return follow_motions(config, walker)
    if config.motion is None:
        reference = normal_reference(walker)
        if config.body is None or "speed_range" in config.model_fields_set:
            return reference, config.speed_range, ()
        low, high = reference.speeds
        usual = (low + share * (high - low) for share in _USUAL_SPEEDS)
        return reference, (next(usual), next(usual)), ()
    return follow_motion(config.motion, config, walker)


def _speed_warnings(config: MimicConfig, reference: Reference) -> tuple[str, ...]:
    """Warn of a desired speed at which the reference cannot be played."""
    if len(reference.parts) > 1:
        return ()
    asked = config.speed_range if config.speed is None else (config.speed, config.speed)
    low, high = reference.speeds
    if low - _SPEED_TOLERANCE_M_S <= asked[0] and asked[1] <= high + _SPEED_TOLERANCE_M_S:
        return ()
    wanted = f"{asked[0]:g}" if config.speed is not None else f"{asked[0]:g} to {asked[1]:g}"
    motion = "normal gait" if config.motion is None else f"motion {config.motion}"
    return (
        f"a desired speed of {wanted} m/s is outside the range of the {motion}, {low:.2f} to {high:.2f} m/s: the "
        "reference stays within its range, so numbers such as speed_error and imitation mean little; choose scenarios "
        "and speeds within the range",
    )
