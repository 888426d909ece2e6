"""Turn packets into game states, and track between packets what none of them carries.

Tracked are: how far each handbrake is drawn (by its key, at the rates of the simulator), how long ago each car jumped,
whether the ball was touched since the kickoff, and when the episode began. See docs/howto/rlbot.md for the
approximations.
"""

from collections.abc import Sequence

import numpy as np
import torch
import warp as wp

from ludus.core.errors import UnsupportedError
from ludus.envs.warp_tools import load_kernels
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.kernels import car as car_kernels
from ludus.worlds.rocket.layout import PAD_COUNT, pad_kind
from ludus.worlds.rocket.rlbot.observer import BallState, CarState, GameState
from ludus.worlds.rocket.rlbot.packet import (
    AirState,
    MatchPhase,
    Packet,
    Physics,
    PlayerInfo,
    mirrored,
    mirrored_spin,
    rotation_of,
)
from ludus.worlds.rocket.rules import CLOCK_S, DT, HANDBRAKE_FALL, HANDBRAKE_RISE, MAX_TEAM, SECOND_JUMP_S, TICK_HZ
from ludus.worlds.rocket.view import Quaternion, Vector

# In the simulator, wheels still touch the surface for about 5 ticks after a jump began, whereas packets report at once
# that the car is jumping. For this many ticks contact is computed from where the car was.
JUMP_CONTACT_TICKS = 12
MOVED = 5.0  # uu and uu/s to the side; beyond it the ball of a kickoff was touched
_LONGEST_GAP_TICKS = 120  # after a longer gap the tracked state is reset
_PLAYING = (MatchPhase.KICKOFF, MatchPhase.ACTIVE)


class Footing:
    """Counts wheels in contact with the simulator's own kernel; packets do not tell while a car jumps off."""

    def __init__(self) -> None:
        self._position, self._rotation = torch.zeros((1, 3)), torch.zeros((1, 4))
        self._wheels = torch.zeros(1, dtype=torch.int32)
        self._inputs = [
            wp.from_torch(self._position, dtype=wp.vec3f),
            wp.from_torch(self._rotation, dtype=wp.quatf),
            wp.from_torch(self._wheels),
        ]
        load_kernels(car_kernels, self._position.device)

    def wheels(self, position: Vector, rotation: Quaternion) -> int:
        """Return how many wheels are in contact in a tick that begins with a car at this pose, in our coordinates."""
        self._position[0], self._rotation[0] = torch.tensor(position), torch.tensor(rotation)
        wp.launch(car_kernels.footing_kernel, 1, inputs=self._inputs, device="cpu")
        return int(self._wheels)


class _TrackedCar:
    """Tracked state of one car."""

    def __init__(self) -> None:
        self.handbrake_value = np.float32(0.0)
        self.jump_frame: int | None = None  # frame in which its last jump began
        self.was_jumping = self.was_demolished = False
        self.before: Physics | None = None  # in the packet before the last one
        self._last: Physics | None = None

    def follow(self, player: PlayerInfo, frame: int, ticks: int) -> None:
        """Advance by some ticks, in all of which the keys of the last one count as held."""
        demolished = player.demolished_timeout > 0.0
        if self.was_demolished and not demolished:  # a new car
            self.handbrake_value, self.jump_frame = np.float32(0.0), None
        elif not demolished:
            rate = HANDBRAKE_RISE if player.last_input.handbrake else -HANDBRAKE_FALL
            for _ in range(ticks):  # sums of 32 bits, as in the simulator
                self.handbrake_value = np.clip(self.handbrake_value + np.float32(rate * DT), 0.0, 1.0)
        jumping = player.air_state is AirState.JUMPING
        if jumping and not self.was_jumping:
            self.jump_frame = frame
        self.was_jumping, self.was_demolished = jumping, demolished
        self.before, self._last = self._last, player.physics


class Sense:
    """Tracks a match packet by packet.

    Attributes:
        playing: Whether the cars of the last packet can drive.
        episode: Number of the episode as in training: it ends with a goal, or lasts a whole match.
        start_frame: Frame in which play last began: a kickoff, or the first packet.
    """

    def __init__(self, config: RocketConfig, pad_order: Sequence[int]) -> None:
        """Start tracking; `pad_order` is the result of `packet.pad_order`."""
        self.playing, self.episode, self.start_frame = False, -1, 0
        self._config, self._pad_order = config, tuple(pad_order)
        self._cars: dict[int, _TrackedCar] = {}
        self._frame: int | None = None
        self._goals = 0
        self._kickoff, self._start_s = False, 0.0
        self._footing = Footing()

    def follow(self, packet: Packet) -> None:
        """Process the next packet; every packet must pass here, including those without a decision."""
        ticks = packet.frame_num - self._frame if self._frame is not None else 0
        new_match = self._frame is None or ticks < 0 or sum(packet.goals) < self._goals
        self._frame, self._goals = packet.frame_num, sum(packet.goals)
        if not new_match and packet.match_phase is MatchPhase.PAUSED:
            return
        playing = packet.match_phase in _PLAYING and packet.ball is not None
        begins = playing and (new_match or not self.playing)
        self.playing = playing
        if begins or ticks > _LONGEST_GAP_TICKS:
            self._cars.clear()
        if begins:
            self.start_frame, self._start_s = packet.frame_num, packet.seconds_elapsed
            self._kickoff = packet.match_phase is MatchPhase.KICKOFF
        if begins and (self.episode < 0 or new_match or self._config.episode == "goal"):
            self.episode += 1
        for index, player in enumerate(packet.players):
            self._cars.setdefault(index, _TrackedCar()).follow(player, packet.frame_num, 0 if begins else ticks)
        self._kickoff = self._kickoff and not _is_touched(packet, self._start_s)

    def seat(self, packet: Packet, index: int) -> int:
        """Return the seat of a player; blue's come first."""
        return self._order(packet).index(index)

    def state(self, packet: Packet) -> GameState:
        """Return the state of the packet processed last; raise UnsupportedError if Rocket has no such match."""
        if packet.ball is None or len(packet.pads) != PAD_COUNT:
            raise UnsupportedError(
                f"the packet has {len(packet.pads)} boost pads and {'a' if packet.ball else 'no'} ball; agents need "
                f"a field with {PAD_COUNT} pads and a ball: play soccar on a standard map"
            )
        ball = packet.ball
        return GameState(
            cars=tuple(self._car(packet, index) for index in self._order(packet)),
            ball=BallState(
                mirrored(ball.location),
                mirrored(ball.velocity),
                mirrored_spin(ball.angular_velocity),
                asleep=not any(ball.velocity) and not any(ball.angular_velocity),
            ),
            pad_ticks=tuple(_wait_ticks(pad, packet.pads[there]) for pad, there in enumerate(self._pad_order)),
            clock_s=self._clock_s(packet),
            kickoff=self._kickoff,
            # An agent whose episodes ended with a goal never saw a lead in training.
            goals=(0, 0) if self._config.episode == "goal" else packet.goals,
        )

    def _order(self, packet: Packet) -> list[int]:
        """Return the indices of the players by seat."""
        teams = [player.team for player in packet.players]
        most = max(teams.count(0), teams.count(1))
        if most > MAX_TEAM:
            raise UnsupportedError(f"a team has {most} cars; agents play in teams of 1 to {MAX_TEAM}")
        return sorted(range(len(teams)), key=lambda index: teams[index])

    def _car(self, packet: Packet, index: int) -> CarState:
        player, followed = packet.players[index], self._cars[index]
        jumping = player.air_state is AirState.JUMPING
        airborne = player.air_state is not AirState.ON_GROUND
        left_s = player.dodge_timeout if player.dodge_timeout >= 0.0 else 0.0
        counts = player.has_jumped and airborne and not jumping
        return CarState(
            position=mirrored(player.physics.location),
            velocity=mirrored(player.physics.velocity),
            spin=mirrored_spin(player.physics.angular_velocity),
            rotation=rotation_of(player.physics.rotation),
            team=player.team,
            boost=player.boost,
            supersonic=player.is_supersonic,
            on_ground=not airborne or self._still_touches(followed, packet.frame_num),
            jumping=jumping,
            jumped=player.has_jumped,
            double_jumped=player.has_double_jumped,
            dodged=player.has_dodged,
            dodging=player.air_state is AirState.DODGING,
            air_since_jump_s=max(SECOND_JUMP_S - left_s, 0.0) if counts else 0.0,
            jump_before=player.last_input.jump,
            handbrake_value=float(followed.handbrake_value),
            demolished_s=max(player.demolished_timeout, 0.0),
        )

    def _still_touches(self, car: _TrackedCar, frame: int) -> bool:
        """Return whether the wheels of a jumping car still touched the surface in the tick that ended here."""
        if car.jump_frame is None or frame - car.jump_frame >= JUMP_CONTACT_TICKS or car.before is None:
            return False
        return self._footing.wheels(mirrored(car.before.location), rotation_of(car.before.rotation)) >= 3

    def _clock_s(self, packet: Packet) -> float:
        """Return the clock as in training: of the episode if it ends with a goal, else of the match."""
        if self._config.episode == "goal":
            played_s = (packet.frame_num - self.start_frame) * DT
            return max(self._config.episode_s - played_s, 0.0) if self._config.episode_s is not None else 0.0
        if packet.is_overtime:
            return -packet.game_time_remaining
        return CLOCK_S if packet.is_unlimited_time else packet.game_time_remaining


def _wait_ticks(pad: int, taken_s: float | None) -> int:
    """Return the ticks until a pad is back that was taken `taken_s` ago."""
    return 0 if taken_s is None else max(round((pad_kind(pad).back_s - taken_s) * TICK_HZ), 0)


def _is_touched(packet: Packet, start_s: float) -> bool:
    """Return whether a kickoff is over: the ball was touched, or moved sideways (it may settle up and down)."""
    ball = packet.ball
    moved = ball is not None and any(abs(value) > MOVED for value in (*ball.location[:2], *ball.velocity[:2]))
    return moved or any(player.touched_s is not None and player.touched_s > start_s for player in packet.players)
