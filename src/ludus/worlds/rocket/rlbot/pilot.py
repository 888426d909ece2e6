"""Drive a car from RLBot's packets: decide at the rate of training and hold the controls in between."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, StateError, UnsupportedError
from ludus.envs.settings import read_settings
from ludus.policies.agent import Agent
from ludus.policies.policy import RecurrentState
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.env import rocket_spec
from ludus.worlds.rocket.rlbot.observer import REST, Controls, Decoder, Observer
from ludus.worlds.rocket.rlbot.packet import Packet
from ludus.worlds.rocket.rlbot.sense import Sense

# RLBot plays one more tick with the old controls before those that answer a packet take effect.
LATENCY_TICKS = 1
VECTOR = "vector"  # the only entry of Rocket's observations
ACTION_TOLERANCE = 1e-3  # of continuous actions; all others are integers
_JITTER = 1e-5  # relative noise on observations, to see whether a choice is clear
_JITTERED = 8  # noisy observations that are tried


class Decide(Protocol):
    """Chooses actions."""

    def __call__(self, observation: NDArray[np.float32], *, first: bool) -> Any:  # noqa: ANN401 - of any action space
        """Return the action for an observation `(values,)`; `first` marks the first one of an episode."""


class AgentDecider:
    """An agent that decides one observation at a time and keeps its recurrent state until the next episode."""

    def __init__(self, agent: Agent, *, deterministic: bool) -> None:
        self._agent, self._deterministic = agent, deterministic
        self._memory: RecurrentState | None = None

    def __call__(self, observation: NDArray[np.float32], *, first: bool) -> Any:  # noqa: ANN401 - of any action space
        """Return the action; see `Decide`."""
        memory = None if first else self._memory
        action, self._memory = self._agent.predict({VECTOR: observation}, memory, deterministic=self._deterministic)
        return action

    def is_clear(self, observation: NDArray[np.float32], *, first: bool) -> bool:
        """Return whether the next action would stay the same if the observation changed a little.

        Otherwise two actions are nearly tied, and rounding on another machine may decide differently.
        """
        shares = np.random.default_rng(0).uniform(-_JITTER, _JITTER, (_JITTERED, len(observation)))
        shares[0] = 0.0
        rows = (observation * (1.0 + shares)).astype(np.float32)
        memory = None
        if not first and self._memory is not None:
            memory = {name: tensor.repeat_interleave(_JITTERED, dim=0) for name, tensor in self._memory.items()}
        actions, _ = self._agent.predict({VECTOR: rows}, memory, deterministic=True)
        return bool((np.abs(actions - actions[:1]) <= ACTION_TOLERANCE / 2).all())


def rocket_settings(agent: Agent, name: str | Path) -> RocketConfig:
    """Return the settings that an agent was trained with; raise UnsupportedError unless packets suffice for it."""
    if agent.spec.name != "rocket":
        raise UnsupportedError(
            f"{str(name)!r} was trained in {agent.spec.id}; RLBot needs an agent of rocket: "
            "train one with `ludus train rocket`"
        )
    if set(agent.spec.observation_space) != {VECTOR}:
        entries = ", ".join(agent.spec.observation_space)
        raise UnsupportedError(f"{str(name)!r} observes {entries}; packets of RLBot provide only {VECTOR!r}")
    try:
        config = read_settings(RocketConfig, agent.settings, agent.spec.id)
        agent.check_world(rocket_spec(config))
    except (ConfigError, StateError) as error:
        raise UnsupportedError(f"{str(name)!r} does not fit the rocket of this version: {error}") from error
    return config


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision at a frame: an observation `(values,)` and an action."""

    frame: int
    observation: NDArray[np.float32]
    action: Any


class Pilot:
    """Drives the car of one player; `decision` is the one made at the last packet, None if controls were held."""

    def __init__(
        self,
        config: RocketConfig,
        decide: Decide,
        index: int,
        pad_order: Sequence[int],
        *,
        latency_ticks: int = LATENCY_TICKS,
    ) -> None:
        """Take a seat, with the settings that the agent was trained with and the result of `packet.pad_order`.

        Of training's input delay, `latency_ticks` pass before an answer acts; the pilot waits for the rest.
        """
        self.decision: Decision | None = None
        self._decide, self._index, self._ticks = decide, index, config.ticks
        self._wait_ticks = max(config.input_delay_ticks - latency_ticks, 0)
        self._sense, self._observer = Sense(config, pad_order), Observer()
        self._decoder = Decoder(config)
        self._held, self._next = REST, REST
        self._next_frame = self._due_frame = 0  # frame from which `_next` is held; frame of the next decision
        self._start_frame, self._episode = -1, -1

    def controls(self, packet: Packet) -> Controls:
        """Return the answer to a packet, at rest while cars cannot drive; raise UnsupportedError in other matches."""
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
