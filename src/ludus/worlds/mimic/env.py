"""`mimic-v1`: thousands of walkers that follow a reference gait, on the host or on a GPU.

Everything but the physics is the same tensor code on every device. It changes its tensors in place and asks the host
nothing where MuJoCo Warp advances the walkers, so that a step can be replayed as CUDA graphs.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import mix_keys, stream_hash, stream_hash_tensor, uniform
from ludus.core.state import FINITE, MAX_COUNT
from ludus.envs import base
from ludus.envs.base import BatchedEnv, Columns, EnvRequest, Observations, StepResult
from ludus.envs.settings import read_settings
from ludus.envs.spaces import Reflection
from ludus.worlds.mimic import observation
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import Walker, make_walker
from ludus.worlds.mimic.motion.reference import follow_motion
from ludus.worlds.mimic.physics import FRICTION_LEVELS, Controls, MujocoPhysics, Physics, Push, push_forces
from ludus.worlds.mimic.reference import STREAMS, Frame, Reference, draw_starts, normal_reference
from ludus.worlds.mimic.rendering.figure import WalkerView, reference_positions
from ludus.worlds.mimic.scoring import Scorer
from ludus.worlds.mimic.spec import check_settings, make_spec

if TYPE_CHECKING:
    from ludus.worlds.mimic.rendering.painter import WalkerPainter
    from ludus.worlds.mimic.step_graphs import StepGraphs

SPEED_CHANGE_M_S2 = 0.3  # how fast the reference follows a new desired speed
_USUAL_SPEEDS = (0.1, 0.8)  # of the reference's range, where nothing is asked of a body of the user's own
_SPEED_TOLERANCE_M_S = 0.005  # ranges are shown with two digits
# Numbers of the random streams; each has room for as many as it needs.
_STREAM_START, _STREAM_FRICTION, _STREAM_NOISE, _STREAM_COMMAND, _STREAM_PUSH = 0, 8, 16, 64, 80


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

    Action, `Box(-1, 1, (J,))`: `torque`, shares of each joint's largest torque; `target`, angles from the lowest to the
    highest of each joint with 0 at the reference's mean; `delta`, differences from the present angles. Values beyond
    the range are clipped.

    Events: `reward` (similarity to the reference, 0 to 1: 0.8 exp(-3 pose_error) + 0.2 exp(-0.05 velocity_error)),
    `distance` (m along the way), `energy` (J of all joints), `strikes_right`, `strikes_left` (feet that came down),
    `step_right`, `step_left` (m from the other heel to theirs), `falls`, `completed`, `pushes`, `faults` (numbers of
    the physics that went wrong), and `peak_JOINT` (N m by which the largest torque of the episode grew).

    Measures: `pose_error`, `velocity_error` (sums of squares over joints and trunk, rad and rad/s), `root_error`
    (squares of height in dm, of forward and of sideways speed in m/s), `effector_error` (m^2, heels and balls), `power`
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
        config = self.config = config.model_copy(update={"speed_range": speed_range})
        self.warnings = (*warnings, *_speed_warnings(config, self.reference))
        joints = self.walker.joints
        self.spec = make_spec(config, joints)
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self.device = base.resolve_device(request.device, self.spec.id, self.spec.device_types)
        self._painter: WalkerPainter | None = None
        self._graphs: StepGraphs | None = None
        self._controls = Controls(self.walker, self.reference, config)
        self._asks_host = config.physics != "warp" and self.device.type == "cpu"
        self._physics = self._make_physics()
        self._scorer = Scorer(self.walker, config, self.num_envs, self.device)
        self._mirror_vector = _Mirroring(observation.observation_reflection(joints, stride=False), self.device)
        self._mirror_joints = _Mirroring(observation.joint_reflection(joints), self.device)
        numbers = torch.arange(self.num_envs, device=self.device)
        self._counters = {
            "game": self.first_game + numbers,
            "episode": torch.full_like(numbers, -1),
            "frame": torch.zeros_like(numbers),
            "change": torch.zeros_like(numbers),
        }
        names = ("phase", "speed", "desired", "failure", "friction")
        self._state = {name: torch.zeros(self.num_envs, device=self.device) for name in names}
        self._state["failure"].fill_(-1.0)
        self._seed_hash = torch.tensor(stream_hash(self.seed), device=self.device)
        self._pushed = torch.zeros(self.num_envs, device=self.device)  # 1 where a push begins in this step
        # What a snapshot may hold of it: phases and levels become indices.
        self._ranges = {
            **dict.fromkeys(("game", "frame", "change"), (0, MAX_COUNT)),
            "episode": (-1, MAX_COUNT),
            "seed": (0, 2**32 - 1),
            "phase": (0, 1),
            "failure": (-1, 1),
            "friction": (0, FRICTION_LEVELS - 1),
            **dict.fromkeys(("physics", "speed", "desired", *self._scorer.state()), FINITE),
        }
        self._motion = self.reference.to(self.device)
        self._rows = self._motion.rows(self._state["speed"], self._state["phase"])
        self._frame = self._motion.split(self._rows)  # views of the rows, which are written in place
        self._restart(torch.ones(self.num_envs, dtype=torch.bool, device=self.device))
        self._counters["episode"].fill_(-1)

    def _make_physics(self) -> Physics:
        if self._asks_host:
            return MujocoPhysics(self.walker, self.config, self._controls, self.num_envs)
        from ludus.worlds.mimic.warp_physics import WarpPhysics  # needs a library that is optional

        return WarpPhysics(self.walker, self.config, self._controls, self.num_envs, self.device)

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start a new episode; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        if seed is not None:
            self._take_seed(seed)
            self._counters["episode"].fill_(-1)
            self._state["failure"].fill_(-1.0)
        self._restart(torch.ones(self.num_envs, dtype=torch.bool, device=self.device) if games is None else games)
        return self._observe()

    def _advance(self, actions: Tensor) -> StepResult:
        if self.device.type == "cuda":
            if self._graphs is None:
                from ludus.worlds.mimic.step_graphs import StepGraphs  # only who has a GPU pays for it

                self._graphs = StepGraphs(self._decide, self._physics.advance, self._conclude, self.live_tensors())
            return self._graphs.step(actions)
        self._decide(actions)
        self._physics.advance()
        return self._conclude()

    def _decide(self, actions: Tensor) -> None:
        """Give the physics what drives it in the next step."""
        given = actions[:, 0].clamp(-1.0, 1.0).nan_to_num()
        given = torch.where(self._mirrored().unsqueeze(1), self._mirror_joints.apply(given), given)
        push, begins = self._pushes()
        if push is not None:
            self._pushed.copy_(begins)
        self._physics.decide(given, push)

    def _conclude(self) -> StepResult:
        """Return what follows from the physics of a step, and restart the games that ended."""
        outcome = self._physics.conclude()
        self._move_reference()
        positions, velocities = self._physics.bodies()
        angles = observation.euler_angles(positions[:, 3:7])
        fell = self._has_fallen(positions, angles)
        terminated = fell | outcome.broken
        truncated = (self._counters["frame"] >= (self.spec.step_limit or 0)) & ~terminated
        events, state_metrics = self._scorer.score(positions, velocities, angles, self._frame, outcome.sensors)
        events["distance"], events["pushes"] = outcome.travelled, self._pushed
        events["falls"], events["completed"] = fell.float(), truncated.float()
        events["faults"] = outcome.broken.float()
        state_metrics["desired"], state_metrics["phase"] = self._state["desired"], self._state["phase"]
        final_observations = self._observe(angles)
        ended = terminated | truncated
        self._set("failure", terminated, self._state["phase"])
        packed_events = _packed(events, self.spec.events)
        packed_measures = _packed(state_metrics, self.spec.state_metrics)
        observations = final_observations
        if self._may_be(ended):
            self._restart(ended)
            observations = self._observe()
        return StepResult(observations, terminated, truncated, final_observations, packed_events, packed_measures)

    def _may_be(self, games: Tensor) -> bool:
        """Return whether any game is in the mask, or True where asking would wait for the device."""
        return not self._asks_host or bool(games.any())

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

    def view(self, game: int) -> WalkerView:
        """Return the view of one walker."""
        push, _ = self._pushes()
        force = np.zeros(2) if push is None else push_forces(Push(*(part[game : game + 1] for part in push)))[0]
        time_s = float(self._counters["frame"][game]) / self.spec.rate_hz
        ghost = reference_positions(Frame(*(part[game : game + 1].cpu() for part in self._frame)), 0)
        desired = float(self._state["desired"][game])
        return WalkerView(self.positions(game), ghost, time_s, desired, (float(force[0]), float(force[1])))

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
        change = SPEED_CHANGE_M_S2 * step_s
        state["speed"].add_((state["desired"] - state["speed"]).clamp(-change, change))
        counters["frame"].add_(1)
        due = counters["frame"] == counters["change"]
        if self._changes_speed and self._may_be(due):
            speeds, frames = self._next_speeds(self._hash(_STREAM_COMMAND, 2))
            self._set("desired", due, speeds)
            self._set("change", due, frames)
        self._rows.copy_(self._motion.rows(state["speed"], state["phase"]))

    @property
    def _changes_speed(self) -> bool:
        """Whether the desired speed changes within an episode."""
        return self.config.speed is None and self.config.speed_change_s > 0.0

    def _next_speeds(self, hashes: Tensor) -> tuple[Tensor, Tensor]:
        """Draw the next desired speeds `(games,)`, and the frames at which others will follow them."""
        config, random = self.config, uniform(hashes)
        low, high = config.speed_range
        seconds = config.speed_change_s * (0.5 + random[:, 1])
        frames = self._counters["frame"] + (seconds * self.spec.rate_hz).long().clamp(min=1)
        return low + (high - low) * random[:, 0], frames

    def _pushes(self) -> tuple[Push | None, Tensor]:
        """Return the pushes of this frame, and 1 in games in which one begins."""
        config = self.config.pushes
        if config.impulse_ns == 0.0:
            return None, self._pushed
        every, lasts = (max(1, round(value * self.spec.rate_hz)) for value in (config.every_s, config.duration_s))
        frames = self._counters["frame"]
        number, since = frames // every, frames % every
        hashes = self._hash_keys(self._counters["game"], self._counters["episode"], number, _STREAM_PUSH)
        active = ((number >= 1) & (since < lasts)).double()
        newtons = active * config.impulse_ns * self.spec.rate_hz / lasts
        return Push(2.0 * math.pi * uniform(hashes).double(), newtons), ((number >= 1) & (since == 0)).float()

    def _restart(self, games: Tensor) -> None:
        """Begin the next episode of the games in the mask `(games,)`."""
        counters, state = self._counters, self._state
        counters["episode"].add_(games)
        counters["frame"].masked_fill_(games, 0)
        phases, speeds = draw_starts(
            self.config, counters["game"], state["failure"], self._hash(_STREAM_START, STREAMS)
        )
        for name, values in (("phase", phases), ("speed", speeds), ("desired", speeds)):
            self._set(name, games, values)
        if self._changes_speed:
            self._set("change", games, self._next_speeds(self._hash(_STREAM_COMMAND, 2))[1])
        else:
            counters["change"].masked_fill_(games, 0)  # which is never due
        self._rows.copy_(self._motion.rows(state["speed"], state["phase"]))
        self._physics.restart(games, self._frame, self._start_noise)
        if self.config.friction_range is not None:
            self._set("friction", games, (self._hash(_STREAM_FRICTION, 1)[:, 0] % FRICTION_LEVELS).float())
            self._physics.choose_friction(state["friction"].long())
        self._scorer.restart(games)

    def _start_noise(self, rows: Tensor | None) -> Tensor:
        return uniform(self._hash(_STREAM_NOISE, 2 * len(self.walker.joints), rows))

    def _mirrored(self) -> Tensor:
        """Return `(games,)` bool, games that are in a left step and see it as a right one."""
        return (self._state["phase"] >= 0.5) & self.config.mirror

    def _observe(self, angles: Tensor | None = None) -> Observations:
        positions, velocities = self._physics.bodies()
        angles = observation.euler_angles(positions[:, 3:7]) if angles is None else angles
        state = self._state
        phases = (2.0 * state["phase"]) % 1.0 if self.config.mirror else state["phase"]
        speeds = torch.stack((state["speed"], state["desired"]), dim=1)
        vector = observation.observe(positions, velocities, angles, phases, speeds, self.walker.standing_m)
        vector = torch.where(self._mirrored().unsqueeze(1), self._mirror_vector.apply(vector), vector)
        return {"vector": vector.unsqueeze(1)}

    def _hash(self, stream: int, count: int, rows: Tensor | None = None) -> Tensor:
        """Return hashes `(games, count)` of this frame of each game, or of those in `rows` alone."""
        keys = [self._counters[name].unsqueeze(1) for name in ("game", "episode", "frame")]
        keys = keys if rows is None else [key[rows] for key in keys]
        return self._hash_keys(*keys, stream + torch.arange(count, device=self.device))

    def _hash_keys(self, *keys: Tensor | int) -> Tensor:
        if self._asks_host:
            return stream_hash_tensor(self.seed, *keys)
        return mix_keys(self._seed_hash, *keys)  # a graph reads the seed where it lies

    def _take_seed(self, seed: int) -> None:
        self.seed = seed
        self._seed_hash.fill_(stream_hash(seed))

    def live_tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors that a step changes."""
        own = (*self._counters.values(), *self._state.values(), *self._scorer.state().values(), self._rows)
        return (*own, self._pushed, *self._physics.live_tensors())

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
        self._physics.choose_friction(self._state["friction"].long())
        self._rows.copy_(self._motion.rows(self._state["speed"], self._state["phase"]))
        return self._observe()

    def close(self) -> None:
        """End the threads and release what was drawn with; may be called twice."""
        self._physics.close()
        self._graphs = None
        if self._painter is not None:
            self._painter.close()
            self._painter = None


class _Mirroring:
    """A reflection whose numbers lie on a device: `Reflection.apply` sends them there in every call."""

    def __init__(self, reflection: Reflection, device: torch.device) -> None:
        self._source = torch.tensor(reflection.source, device=device)
        self._sign = torch.tensor(reflection.sign, device=device)

    def apply(self, values: Tensor) -> Tensor:
        """Return the mirror image of `(games, size)`."""
        return values.index_select(1, self._source) * self._sign


def _packed(columns: Mapping[str, Tensor], names: tuple[str, ...]) -> Columns:
    return Columns(torch.stack([columns[name] for name in names], dim=-1).unsqueeze(1), names)


def _make_reference(config: MimicConfig, walker: Walker) -> tuple[Reference, tuple[float, float], tuple[str, ...]]:
    """Return the reference, the range of desired speeds, and warnings."""
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
