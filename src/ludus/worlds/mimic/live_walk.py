"""One walker in real time that takes commands: speed, turns, pushes, pauses; for the page of `ludus play mimic`."""

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from ludus.core.errors import UnknownNameError
from ludus.core.files import JSON
from ludus.envs.base import EnvRequest, Observations, StepResult
from ludus.evaluation.matches import play_steps
from ludus.evaluation.players import AgentPlayer, one_seat
from ludus.policies.agent import Agent
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.rendering.figure import StickFigure
from ludus.worlds.mimic.steering import SteeredEnv

LARGEST_IMPULSE_NS = 100.0
# The shipped walker, whose hips do not rotate, follows 10 degrees per second; at 20 it falls within 3 s.
LARGEST_TURN_DEG_S = 10.0
_FRAMES_PER_S = 50.0  # that pages are sent
_LYING_S = 1.6  # after a fall, before it begins again
_MOST_BEHIND_S = 0.1  # a machine that is too slow walks slower: it does not try to catch up with more
_MEAN_SPEED_S = 1.0


class PushCommand(BaseModel):
    """A push at the hips, as long as those of training."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    direction_deg: Annotated[float, Field(ge=-720.0, le=720.0)]  # on the ground, from the first direction to the left
    impulse_ns: Annotated[float, Field(gt=0.0, le=LARGEST_IMPULSE_NS)]


class Command(BaseModel):
    """What a page asks for; everything that is None stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    speed: Annotated[float, Field(ge=0.0, le=10.0)] | None = None  # desired, m/s; kept within what the reference can do
    motion: str | None = None  # to go over into, one of several that the policy knows
    turn: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None  # share of the largest turn, to the left, until told
    push: PushCommand | None = None
    paused: bool | None = None
    time: Annotated[float, Field(ge=0.05, le=4.0)] | None = None  # seconds of walking per second
    restart: bool = False


@dataclass(slots=True)
class _Progress:
    """What happened since the start of the program, and since the last restart."""

    steps: int = 0
    busy_s: float = 0.0  # spent on them
    falls: int = 0
    way: Floats = field(default_factory=lambda: np.zeros(2))  # m on the ground since the restart
    distance_m: float = 0.0
    lying_until_s: float = 0.0
    last_push: PushCommand | None = None
    recent: list[tuple[float, float]] = field(default_factory=list)  # seconds and metres of the last second


class SteeredWalk:
    """One walker in real time, with commands and frames that other threads write and read.

    Attributes:
        env: The walker.
        name: Display name of its agent.
    """

    def __init__(self, agent: Agent, name: str, settings: Mapping[str, Any], seed: int) -> None:
        self.env, self.name = SteeredEnv(EnvRequest(1, "cpu", seed, 0, settings)), name
        agent.check_world(self.env.spec)
        self._player = AgentPlayer(self.env, one_seat(self.env, 0), agent.policy, name=name, deterministic=True)
        self._figure = StickFigure(self.env.walker)
        self._commands: list[Command] = []
        self._changed = threading.Condition()
        self._frame, self._number, self._is_closed = "{}", -1, False
        self._paused, self._time = False, 1.0
        self._progress = _Progress()
        low, high = self.env.config.speed_range
        if self.env.motions:
            self.env.set_motion(self.env.config.command or self.env.motions[0])
        else:
            self.env.set_speed(0.5 * (low + high) if self.env.config.speed is None else self.env.config.speed)
        self._likeness = 1.0
        self._restart()

    def send(self, command: Command) -> None:
        """Give a command; it takes effect before the next step. Raise UnknownNameError for an unknown motion."""
        if command.motion is not None and command.motion not in self.env.motions:
            raise UnknownNameError("motion", command.motion, self.env.motions)
        with self._changed:
            self._commands.append(command)
            self._changed.notify_all()

    def next_frame(self, number: int, wait_s: float) -> tuple[int, str] | None:
        """Return number and JSON text of the newest frame once it is not `number`; None if there is none in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != number or self._is_closed, wait_s)
            return None if self._number == number else (self._number, self._frame)

    def describe(self) -> dict[str, JSON]:
        """Return what a page has to know before the first frame."""
        env, (low, high) = self.env, self.env.speeds_m_s
        return {
            "agent": self.name,
            "walker": env.walker.name,
            "height_m": env.walker.height_m,
            "mass_kg": env.walker.mass_kg,
            "rate_hz": env.spec.rate_hz,
            "points": list(StickFigure.names),
            "speeds": [low, high],
            "motions": list(env.motions),
            "trained": list(env.config.speed_range),
            "turn_deg_s": LARGEST_TURN_DEG_S,
            "largest_impulse_ns": LARGEST_IMPULSE_NS,
        }

    @property
    def load(self) -> float:
        """Mean share of real time that a step takes, whatever the pace that was asked for; 0 before the first."""
        return self._progress.busy_s / max(self._progress.steps, 1) * self.env.spec.rate_hz

    def summarise(self) -> str:
        """Return in a line what happened."""
        progress, rate_hz = self._progress, self.env.spec.rate_hz
        falls = f"{progress.falls} fall{'' if progress.falls == 1 else 's'}"
        step_ms = 1000.0 * progress.busy_s / max(progress.steps, 1)
        return (
            f"{progress.steps / rate_hz:.1f} s walked, {falls}; a step of {1000.0 / rate_hz:g} ms took "
            f"{step_ms:.1f} ms, {100.0 * self.load:.0f} % of real time"
        )

    def run(self, is_watched: Callable[[], bool], frames: int | None = None) -> None:
        """Walk in real time until interrupted or for the given number of steps; wait while no page is open."""
        due_s = time.perf_counter()
        rate_hz = self.env.spec.rate_hz
        while frames is None or self._progress.steps < frames:
            self._obey()
            now_s = time.perf_counter()
            if self._progress.lying_until_s and now_s >= self._progress.lying_until_s:
                self._progress.lying_until_s = 0.0
                self._publish("walking")
            if self._paused or self._progress.lying_until_s or not is_watched():
                with self._changed:
                    self._changed.wait_for(lambda: bool(self._commands), 0.02)
                due_s = time.perf_counter()
                continue
            self._step(every=max(1, round(rate_hz * self._time / _FRAMES_PER_S)))
            self._progress.busy_s += time.perf_counter() - now_s
            due_s = max(due_s + 1.0 / (rate_hz * self._time), time.perf_counter() - _MOST_BEHIND_S)
            time.sleep(max(due_s - time.perf_counter(), 0.0))

    def close(self) -> None:
        """Let go of pages that wait, and of the walker."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.env.close()

    def _obey(self) -> None:
        with self._changed:
            commands, self._commands = self._commands, []
        for command in commands:
            if command.motion is not None:
                self.env.set_motion(command.motion)
            if command.speed is not None:
                self.env.set_speed(command.speed)
            if command.turn is not None:
                self.env.set_turn(math.radians(LARGEST_TURN_DEG_S * command.turn))
            if command.push is not None and not self._progress.lying_until_s:
                self._progress.last_push = command.push
                direction = torch.tensor([math.radians(command.push.direction_deg)], dtype=torch.float64)
                self.env.push(direction, torch.tensor([command.push.impulse_ns]))
            self._time = self._time if command.time is None else command.time
            self._paused = self._paused if command.paused is None else command.paused
            if command.restart:
                self._restart()
        if commands:
            self._publish()

    def _restart(self) -> None:
        self._begin(self.env.reset())
        self._publish()

    def _begin(self, observations: Observations) -> None:
        self._played = play_steps(self.env, [self._player], observations)
        progress = self._progress
        progress.way, progress.distance_m, progress.recent = np.zeros(2), 0.0, []
        progress.lying_until_s = 0.0
        self._seconds, self._place = 0.0, self.env.positions(0)[:2].copy()

    def _step(self, every: int) -> None:
        before, force = self.env.positions(0), self.env.force(0)
        _, result = next(self._played)
        self._progress.steps += 1
        if bool(result.ended[0]):
            self._fall(before, result)
            return
        self._move()
        self._likeness = float(result.events["reward"][0, 0])
        if self._progress.steps % every == 0 or force != self.env.force(0):
            self._publish()

    def _fall(self, before: Floats, result: StepResult) -> None:
        """Show the last pose for a while; the walker itself has begun again already. The end of an hour is no fall."""
        if bool(result.terminated[0]):
            self._progress.falls += 1
            self._publish("fallen", before)
        self._begin(result.observations)
        self._progress.lying_until_s = time.perf_counter() + _LYING_S * bool(result.terminated[0])

    def _move(self) -> None:
        """Add a step to the way on the ground, whose direction is that of the heading."""
        progress, place = self._progress, self.env.positions(0)[:2].copy()
        step, self._place = _turned(place - self._place, float(self.env.headings[0])), place
        progress.way = progress.way + step
        progress.distance_m += float(np.hypot(*step))
        self._seconds += 1.0 / self.env.spec.rate_hz
        progress.recent.append((self._seconds, progress.distance_m))
        while self._seconds - progress.recent[0][0] > _MEAN_SPEED_S:
            progress.recent.pop(0)

    def _publish(self, state: str = "", positions: Floats | None = None) -> None:
        """Make the present state, or that of other positions, the newest frame."""
        env, progress = self.env, self._progress
        if not state:
            state = "fallen" if progress.lying_until_s else "paused" if self._paused else "walking"
        if state == "fallen" and positions is None:
            return  # its last pose stays
        view, heading = env.view(0), float(env.headings[0])
        walker = self._figure.points(view.positions if positions is None else positions)
        ghost = walker if view.ghost is None else self._figure.points(view.ghost)
        hips = walker[0, :2].copy()
        ghost[:, :2] += hips - ghost[0, :2]
        for points in (walker, ghost):
            points[:, :2] = _turned(points[:, :2] - hips, heading) + progress.way
        speed = _mean_speed(progress.recent)
        document: dict[str, Any] = {
            "state": state,
            "seconds": round(self._seconds, 3),
            "points": np.round(walker, 4).tolist(),
            "ghost": np.round(ghost, 4).tolist(),
            "speed": None if speed is None else round(speed, 3),
            "desired": round(view.desired_m_s, 3),
            "motion": env.config.command,
            "velocity": [round(float(value), 4) for value in self._velocity(heading)],
            "heading_deg": round(math.degrees(heading), 1),
            "force": [round(value, 1) for value in env.force(0)],
            "last_push": None if progress.last_push is None else progress.last_push.model_dump(),
            "likeness": round(self._likeness, 3),
            "distance": round(progress.distance_m, 2),
            "falls": progress.falls,
            "load": round(self.load, 3),
        }
        text = json.dumps(document, separators=(",", ":"))
        with self._changed:
            self._frame, self._number = text, self._number + 1
            self._changed.notify_all()

    def _velocity(self, heading: float) -> Floats:
        """Return the velocity of the hips on the ground, m/s."""
        return _turned(self.env.velocities(0)[:2], heading)


def _turned(vectors: Floats, angle: float) -> Floats:
    """Return vectors `(..., 2)` on the ground turned to the left by an angle in rad."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.stack((cos * vectors[..., 0] - sin * vectors[..., 1], sin * vectors[..., 0] + cos * vectors[..., 1]), -1)


def _mean_speed(recent: Sequence[tuple[float, float]]) -> float | None:
    """Return the mean speed over the last second, m/s; None at the start of a walk."""
    seconds = recent[-1][0] - recent[0][0] if recent else 0.0
    return (recent[-1][1] - recent[0][1]) / seconds if seconds > 0.2 * _MEAN_SPEED_S else None
