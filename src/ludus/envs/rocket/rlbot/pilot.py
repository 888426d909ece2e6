"""Plays a car by packets: decides as often as in training, and holds the controls in between."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.decoder import REST, Controls, Decoder
from ludus.envs.rocket.observer import Observer
from ludus.envs.rocket.rlbot.packet import Packet
from ludus.envs.rocket.rlbot.sense import Sense

# Between a packet and the first tick with the controls that answer it, RLBot lets one tick pass with those before.
LATENCY_TICKS = 1


class Decide(Protocol):
    """Chooses actions."""

    def __call__(self, observation: NDArray[np.float32], *, first: bool) -> Any:  # noqa: ANN401 - of any action space
        """Returns the action for an observation `(values,)`; `first` says that an episode begins with it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was seen and chosen at a frame: an observation `(values,)` and an action."""

    frame: int
    observation: NDArray[np.float32]
    action: Any


class Pilot:
    """Plays the car of one player.

    Attributes:
        decision: What was decided at the last packet; None if controls were held.
    """

    def __init__(
        self,
        config: RocketConfig,
        decide: Decide,
        index: int,
        pad_order: Sequence[int],
        *,
        latency_ticks: int = LATENCY_TICKS,
    ) -> None:
        """Takes a seat.

        Args:
            config: Settings that the agent was trained with.
            decide: The agent.
            index: Of the player whose car it is.
            pad_order: That of `flat.pad_order`.
            latency_ticks: That pass anyway before an answer acts; the rest of the input delay of training is waited.
        """
        self.decision: Decision | None = None
        self._decide, self._index, self._ticks = decide, index, config.ticks
        self._wait_ticks = max(config.input_delay_ticks - latency_ticks, 0)
        self._sense, self._observer = Sense(config, pad_order), Observer(config.observation)
        self._decoder = Decoder(config)
        self._held, self._next = REST, REST
        self._next_frame = self._due_frame = 0  # in which `_next` is held; of the next decision
        self._start_frame, self._episode = -1, -1

    def controls(self, packet: Packet) -> Controls:
        """Returns the controls that answer a packet; at rest while nobody can drive.

        Raises:
            UnsupportedError: The match is of a kind that agents cannot play.
        """
        self.decision = None
        self._sense.follow(packet)
        if not self._sense.playing or self._index >= len(packet.players):
            return REST
        frame = packet.frame_num
        if self._sense.start_frame != self._start_frame:
            self._start_frame = self._due_frame = self._sense.start_frame
            self._held = self._next = REST
        if frame >= self._next_frame:
            self._held = self._next
        if frame >= self._due_frame:
            self._decide_at(packet)
            late = frame - self._due_frame
            self._due_frame += self._ticks if late < self._ticks else late + self._ticks
        return self._held

    def _decide_at(self, packet: Packet) -> None:
        observation = self._observer.observe(self._sense.state(packet), self._sense.seat(packet, self._index))
        first, self._episode = self._sense.episode != self._episode, self._sense.episode
        action = self._decide(observation, first=first)
        self.decision = Decision(packet.frame_num, observation, action)
        self._next, self._next_frame = self._decoder.decode(action), packet.frame_num + self._wait_ticks
        if self._wait_ticks == 0:
            self._held = self._next
