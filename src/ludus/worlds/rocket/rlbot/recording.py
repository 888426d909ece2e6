"""The self-test of an exported bot: packets of our own simulator with the agent's decisions, recorded and replayed.

Two scenes: a kickoff that the agent plays in all seats, so that its controls come back in the packets, and cars thrown
about the field that random keys drive, so that packets hold jumps, dodges, landings and powerslides.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from ludus.core.errors import FormatError, ReplayDivergedError, ReplayError
from ludus.core.files import read_regular, write_atomic
from ludus.envs.base import EnvRequest
from ludus.envs.warp_tools import struct_views
from ludus.policies.agent import Agent
from ludus.worlds.rocket.actions import action_table
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.kernels.structs import Match
from ludus.worlds.rocket.layout import PADS, pad_kind
from ludus.worlds.rocket.observation import LAYOUT
from ludus.worlds.rocket.rlbot.observer import REST, CarState, Controls, Decoder, GameState
from ludus.worlds.rocket.rlbot.packet import (
    AirState,
    MatchPhase,
    Packet,
    Physics,
    PlayerInfo,
    angles_of,
    mirrored,
    mirrored_spin,
    pad_order,
)
from ludus.worlds.rocket.rlbot.pilot import ACTION_TOLERANCE, AgentDecider, Decision, Pilot
from ludus.worlds.rocket.rules import SECOND_JUMP_S, TICK_HZ
from ludus.worlds.rocket.view import Vector

FORMAT = "ludus-rlbot-recording"
VERSION = 1
SCENES = {"kickoff": True, "random": False}  # state setters; whether the agent drives
# Our pads in our own order, at the game's positions: the field of a recording.
FIELD: tuple[Vector, ...] = tuple(mirrored((x, y, 0.0)) for x, y in PADS)
# Angles of packets have 32 bits, and the host's own sine and cosine turn them into a rotation.
OBSERVATION_TOLERANCE = 1e-5

_MAX_BYTES = 64 << 20
_SCENE_S = 2.5
_SEED = 5
_KICKOFF_PHASE_TICKS = 2 * TICK_HZ  # the phase ends then, touched or not


@dataclass(frozen=True, slots=True)
class Choice:
    """A recorded decision of the agent."""

    frame: int
    index: int
    observation: tuple[float, ...]  # `(values,)`
    action: tuple[float, ...]  # the most likely action, as one or more numbers
    clear: bool  # whether the action is stable under small changes of the observation; see `AgentDecider.is_clear`


@dataclass(frozen=True, slots=True)
class Scene:
    """Packets of successive ticks, and the decisions made at some of them."""

    name: str  # the state setter that began the scene
    driven: bool  # whether the agent drove; then its controls are the inputs of the packets that follow
    packets: tuple[Packet, ...]  # one per tick
    choices: tuple[Choice, ...]  # ordered by frame, for each recorded player


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole recording."""

    format: str
    version: int
    scenes: tuple[Scene, ...]


_ADAPTER = TypeAdapter(Recording)


def write_recording(path: Path, scenes: tuple[Scene, ...]) -> None:
    """Write a recording as JSON."""
    write_atomic(path, _ADAPTER.dump_json(Recording(FORMAT, VERSION, scenes)))


def read_recording(path: Path) -> tuple[Scene, ...]:
    """Return the scenes of a recording; raise ReplayError if it is missing, damaged or of another version."""
    try:
        recording = _ADAPTER.validate_json(read_regular(path, limit=_MAX_BYTES))
    except (FormatError, ValidationError) as error:
        fault = str(error).splitlines()[0]
        raise ReplayError(f"the recording {path} is invalid: {fault}; export the agent again") from error
    if (recording.format, recording.version) != (FORMAT, VERSION):
        raise ReplayError(
            f"the recording {path} is {recording.format!r} version {recording.version}, "
            f"expected {FORMAT!r} version {VERSION}; export the agent again"
        )
    return recording.scenes


def write_packet(state: GameState, frame: int, inputs: Sequence[Controls], touches: Sequence[int | None]) -> Packet:
    """Return the packet that RLBot would send of a state: the inverse of `sense.Sense`.

    Players have the indices of their seats, pads the order of `FIELD`. `inputs` are the controls of each seat in the
    last tick, `touches` the tick of each seat's last touch of the ball.
    """
    ball = Physics(
        _short(mirrored(state.ball.position)),
        (0.0, 0.0, 0.0),
        _short(mirrored(state.ball.velocity)),
        _short(mirrored_spin(state.ball.spin)),
    )
    return Packet(
        frame_num=frame,
        seconds_elapsed=_shortest(frame / TICK_HZ),
        match_phase=MatchPhase.KICKOFF if state.kickoff and frame < _KICKOFF_PHASE_TICKS else MatchPhase.ACTIVE,
        game_time_remaining=_shortest(abs(state.clock_s)),
        is_overtime=state.clock_s < 0.0,
        is_unlimited_time=False,
        goals=state.goals,
        ball=ball,
        players=tuple(
            _player(car, held, None if touch is None else _shortest(touch / TICK_HZ))
            for car, held, touch in zip(state.cars, inputs, touches, strict=True)
        ),
        pads=tuple(
            None if ticks == 0 else _shortest(pad_kind(pad).back_s - ticks / TICK_HZ)
            for pad, ticks in enumerate(state.pad_ticks)
        ),
    )


def _player(car: CarState, held: Controls, touched_s: float | None) -> PlayerInfo:
    waits = car.jumped and not (car.on_ground or car.jumping or car.double_jumped or car.dodged)
    left_s = SECOND_JUMP_S - car.air_since_jump_s
    return PlayerInfo(
        physics=Physics(
            _short(mirrored(car.position)),
            _short(angles_of(car.rotation)),
            _short(mirrored(car.velocity)),
            _short(mirrored_spin(car.spin)),
        ),
        team=car.team,
        boost=_shortest(car.boost),
        air_state=_air_state(car),
        has_jumped=car.jumped,
        has_double_jumped=car.double_jumped,
        has_dodged=car.dodged,
        dodge_timeout=_shortest(left_s) if waits and left_s > 0.0 else -1.0,
        demolished_timeout=_shortest(car.demolished_s) if car.demolished_s > 0.0 else -1.0,
        is_supersonic=car.supersonic,
        touched_s=touched_s,
        last_input=held,
    )


def _air_state(car: CarState) -> AirState:
    if car.jumping:
        return AirState.JUMPING
    if car.on_ground:
        return AirState.ON_GROUND
    return AirState.DODGING if car.dodging else AirState.IN_AIR


def _shortest(value: float) -> float:
    """Return the shortest decimal number that rounds to this one in the 32 bits of a packet."""
    return float(str(np.float32(value)))


def _short(vector: Vector) -> Vector:
    x, y, z = map(_shortest, vector)
    return x, y, z


def record(agent: Agent, config: RocketConfig) -> tuple[Scene, ...]:
    """Play the scenes with an agent, in games with the settings that it was trained with."""
    return tuple(_play(agent, config, name, driven=driven) for name, driven in SCENES.items())


def _play(agent: Agent, config: RocketConfig, name: str, *, driven: bool) -> Scene:
    """Play one scene until its time is over or a goal is scored."""
    settings = {"actions": "continuous", "shuffle": False, "threads": 1, "setters": {name: 1.0}}
    env = RocketEnv(EnvRequest(seed=_SEED, config=config.model_dump() | settings))
    seen = env.reset()["vector"][0]
    goal = struct_views(env.matches, Match)["goal"]
    twin, seats = _Twin(env), _Seats(agent, config, driven=driven)
    packets, choices = [twin.packet()], list[Choice]()
    last_frame = math.ceil(_SCENE_S * TICK_HZ)
    while True:
        controls = seats.choose(seen, twin.frame, choices)
        if twin.frame >= last_frame:
            break
        result = env.step(torch.tensor([controls], dtype=torch.float32))
        if bool(result.terminated) or bool(result.truncated) or int(goal) >= 0:
            break
        packets += twin.advance(controls)
        seen = result.observations["vector"][0]
    twin.close()
    env.close()
    return Scene(name, driven, tuple(packets), tuple(choices))


class _Seats:
    """The agent in all seats of a game; the first seat of each team is recorded."""

    def __init__(self, agent: Agent, config: RocketConfig, *, driven: bool) -> None:
        self._deciders = [AgentDecider(agent, deterministic=True) for _ in range(config.seats)]
        self._recorded = {0, config.blue}
        self._decoder, self._driven = Decoder(config), driven
        self._keys, self._generator = action_table(), np.random.default_rng(_SEED)

    def choose(self, seen: Tensor, frame: int, choices: list[Choice]) -> list[Controls]:
        """Decide for all seats from observations `(seats, values)`; return the controls and append to `choices`."""
        held, first = [], frame == 0
        for seat, (decider, values) in enumerate(zip(self._deciders, seen, strict=True)):
            observation = values.numpy().copy()
            clear = decider.is_clear(observation, first=first)
            action = decider(observation, first=first)
            if seat in self._recorded:
                numbers = tuple(np.atleast_1d(action).tolist())
                choices.append(Choice(frame, seat, tuple(map(_shortest, observation)), numbers, clear))
            keys = self._keys[self._generator.integers(len(self._keys))].tolist()
            held.append(self._decoder.decode(action) if self._driven else Controls(*keys[:5], *map(bool, keys[5:])))
        return held


class _Twin:
    """The same game in single ticks, so that every tick has a packet."""

    def __init__(self, env: RocketEnv) -> None:
        config = env.config.model_dump() | {"ticks": 1, "input_delay_ticks": 0}
        self._env = RocketEnv(EnvRequest(seed=env.seed, config=config))
        self._env.restore(env.snapshot())
        self._ticks, self._delay_ticks = env.config.ticks, env.config.input_delay_ticks
        self._held = self._decided = [REST] * env.spec.seats
        self._touching = self._env.fields()["touching_ball"][0]
        self._touches: list[int | None] = [None] * env.spec.seats
        self.frame = 0

    def packet(self) -> Packet:
        """Return the packet of the current tick."""
        env = self._env
        state = GameState.of(env.cars[0], env.balls[0], env.matches[0], env.pads[0])
        touching = zip(self._touching.tolist(), self._touches, strict=True)
        self._touches = [self.frame if now else last for now, last in touching]
        return write_packet(state, self.frame, self._held, self._touches)

    def advance(self, controls: list[Controls]) -> Iterator[Packet]:
        """Play one decision, whose controls act after the input delay; yield the packet of each tick."""
        before, self._decided = self._decided, controls
        for tick in range(self._ticks):
            self._held = controls if tick >= self._delay_ticks else before
            self._env.step(torch.tensor([self._held], dtype=torch.float32))
            self.frame += 1
            yield self.packet()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What a self-test compared and found equal."""

    packets: int  # packets replayed, summed over the recorded players
    decisions: int  # observations compared
    actions: int  # actions compared; nearly tied ones are skipped
    difference: float  # largest difference between observation values


def run_self_test(agent: Agent, config: RocketConfig, scenes: Sequence[Scene]) -> SelfTest:
    """Replay all scenes to an agent; raise ReplayDivergedError if it decides differently, or nothing was compared."""
    packets, decisions, actions, difference = 0, 0, 0, 0.0
    for scene in scenes:
        for index in sorted({choice.index for choice in scene.choices}):
            expected = [choice for choice in scene.choices if choice.index == index]
            made, held = _replay(agent, config, scene, index)
            difference = max(difference, _compare(scene, expected, made))
            if scene.driven:
                _compare_controls(config, scene, expected, held)
            packets, decisions = packets + len(scene.packets), decisions + len(made)
            actions += sum(choice.clear for choice in expected)
    if not actions:
        raise ReplayDivergedError("the recording holds no clear action to compare; export the agent again")
    return SelfTest(packets, decisions, actions, difference)


def _replay(agent: Agent, config: RocketConfig, scene: Scene, index: int) -> tuple[list[Decision], list[Controls]]:
    """Return the decisions of one player, and the controls that answer each packet."""
    pilot = Pilot(config, AgentDecider(agent, deterministic=True), index, pad_order(FIELD), latency_ticks=0)
    made, held = list[Decision](), list[Controls]()
    for packet in scene.packets:
        held.append(pilot.controls(packet))
        made += [pilot.decision] if pilot.decision is not None else []
    return made, held


def _compare_controls(config: RocketConfig, scene: Scene, expected: Sequence[Choice], held: Sequence[Controls]) -> None:
    """Check that the controls appear in the packets that follow, except where the decision was nearly tied."""
    unclear = {choice.frame for choice in expected if not choice.clear}
    for controls, packet in zip(held, scene.packets[1:], strict=False):
        pressed = packet.players[expected[0].index].last_input
        decided = range(packet.frame_num - 2 * config.ticks, packet.frame_num)  # with the longest input delay
        same = np.allclose(np.array(controls, float), np.array(pressed, float), rtol=0.0, atol=ACTION_TOLERANCE)
        if not same and unclear.isdisjoint(decided):
            raise ReplayDivergedError(
                f"scene {scene.name!r}, frame {packet.frame_num}, player {expected[0].index}: the controls are "
                f"{controls}, but {pressed} were recorded; actions are decoded or held differently from training"
            )


def _compare(scene: Scene, expected: Sequence[Choice], made: Sequence[Decision]) -> float:
    """Check frames, observations and actions; return the largest difference between observation values."""
    frames, recorded_frames = [each.frame for each in made], [each.frame for each in expected]
    if frames != recorded_frames:
        raise ReplayDivergedError(
            f"scene {scene.name!r}: decisions at frames {frames} instead of {recorded_frames}; "
            "time is counted differently from training"
        )
    names, most = [field.name for field in LAYOUT.fields], 0.0
    for decision, choice in zip(made, expected, strict=True):
        place = f"scene {scene.name!r}, frame {choice.frame}, player {choice.index}"
        recorded = np.array(choice.observation, np.float32)
        if recorded.shape != decision.observation.shape:
            raise ReplayDivergedError(f"{place}: {len(decision.observation)} values, but {len(recorded)} were recorded")
        differences = np.nan_to_num(np.abs(decision.observation - recorded), nan=np.inf)
        worst = int(differences.argmax())
        if differences[worst] > OBSERVATION_TOLERANCE:
            raise ReplayDivergedError(
                f"{place}: {names[worst]} is {decision.observation[worst]:.6g}, but {recorded[worst]:.6g} was "
                "recorded; the observation differs from training: install the ludus version that exported this folder"
            )
        action = np.atleast_1d(decision.action).astype(float)
        close = action.shape == (len(choice.action),) and np.abs(action - choice.action).max() <= ACTION_TOLERANCE
        if choice.clear and not close:
            raise ReplayDivergedError(
                f"{place}: the action is {action.tolist()}, but {list(choice.action)} was recorded; "
                "the agent is not the exported one"
            )
        most = max(most, float(differences[worst]))
    return most
