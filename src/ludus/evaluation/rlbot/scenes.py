"""Plays the scenes of a recording: packets of our own simulator, with what an agent saw and chose there.

Two scenes: a kickoff that the agent plays in all seats, so that its controls come back in the packets, and cars thrown
about the field that random keys drive, so that packets hold jumps, dodges, landings and powerslides.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ludus.envs.base import EnvRequest
from ludus.envs.rocket.actions import action_table
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.decoder import REST, Controls, Decoder
from ludus.envs.rocket.env import RocketEnv
from ludus.envs.rocket.kernels.structs import Match
from ludus.envs.rocket.observer import GameState
from ludus.envs.rocket.rlbot.packet import Packet
from ludus.envs.rocket.rlbot.scribe import shortest, write_packet
from ludus.envs.rocket.rules import TICK_HZ
from ludus.envs.warp_tools import struct_views
from ludus.evaluation.rlbot.deciding import AgentDecider
from ludus.evaluation.rlbot.recording import Choice, Scene
from ludus.policies.agent import Agent

SCENES = {"kickoff": True, "random": False}  # state setters; whether the agent drives
_SCENE_S = 2.5
_SEED = 5


def record(agent: Agent, config: RocketConfig) -> tuple[Scene, ...]:
    """Plays the scenes with an agent, in games with the settings that it was trained with."""
    return tuple(_play(agent, config, name, driven=driven) for name, driven in SCENES.items())


def _play(agent: Agent, config: RocketConfig, name: str, *, driven: bool) -> Scene:
    """Plays one scene until its time is over or a goal is scored."""
    settings = {"actions": "continuous", "shuffle": False, "threads": 1, "setters": {name: 1.0}}
    env = RocketEnv(EnvRequest(seed=_SEED, config=config.model_dump() | settings))
    seen = env.reset()["vector"][0]
    goal = struct_views(env.matches, Match)["goal"]
    twin, seats = _Twin(env), _Seats(agent, config, driven=driven)
    packets, choices = [twin.packet()], list[Choice]()
    last_frame = math.ceil(_SCENE_S * TICK_HZ)
    while True:
        controls = seats.choose(seen, twin.frame, first=twin.frame == 0)
        choices += seats.watched()
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
    """The agent in all seats of a game; the first of each team is watched."""

    def __init__(self, agent: Agent, config: RocketConfig, *, driven: bool) -> None:
        self._deciders = [AgentDecider(agent, deterministic=True) for _ in range(config.seats)]
        self._watched = {0, config.blue}
        self._choices: list[Choice] = []
        self._decoder, self._driven = Decoder(config), driven
        self._keys, self._generator = action_table(), np.random.default_rng(_SEED)

    def choose(self, seen: Tensor, frame: int, *, first: bool) -> list[Controls]:
        """Lets all seats decide by what they see `(seats, values)`, and returns the controls that are to be held."""
        held = []
        self._choices.clear()
        for seat, (decider, values) in enumerate(zip(self._deciders, seen, strict=True)):
            observation = values.numpy().copy()
            clear = decider.is_clear(observation, first=first)
            action = decider(observation, first=first)
            if seat in self._watched:
                numbers = tuple(np.atleast_1d(action).tolist())
                self._choices.append(Choice(frame, seat, tuple(map(shortest, observation)), numbers, clear))
            keys = self._keys[self._generator.integers(len(self._keys))].tolist()
            held.append(self._decoder.decode(action) if self._driven else Controls(*keys[:5], *map(bool, keys[5:])))
        return held

    def watched(self) -> list[Choice]:
        """Returns what the watched seats chose last."""
        return list(self._choices)


class _Twin:
    """The same game in single ticks, so that there is a packet of each."""

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
        """Returns the packet of the present tick."""
        env = self._env
        state = GameState.of(env.cars[0], env.balls[0], env.matches[0], env.pads[0])
        touching = zip(self._touching.tolist(), self._touches, strict=True)
        self._touches = [self.frame if now else last for now, last in touching]
        return write_packet(state, self.frame, self._held, self._touches)

    def advance(self, controls: list[Controls]) -> Iterator[Packet]:
        """Plays a decision, whose controls act after the input delay, and gives the packet of each tick."""
        before, self._decided = self._decided, controls
        for tick in range(self._ticks):
            self._held = controls if tick >= self._delay_ticks else before
            self._env.step(torch.tensor([self._held], dtype=torch.float32))
            self.frame += 1
            yield self.packet()

    def close(self) -> None:
        """Ends the game."""
        self._env.close()
