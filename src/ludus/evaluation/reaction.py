"""How long an agent takes to decide in a single game, and whether that is fast enough to play in real time."""

import statistics
import time
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from ludus.envs.base import BatchedEnv, action_dtypes
from ludus.policies.agent import Agent
from ludus.policies.memory import Memory

Pace: TypeAlias = Literal["in time", "late at times", "too slow"]

_WARM_UP = 10  # decisions that are not counted: memory is taken and kernels are chosen in them
_DECISIONS = 200
_FEWEST, _BUDGET_S = 5, 2.0  # a very slow agent is measured no longer than this


class ReactionTime(NamedTuple):
    """How long single decisions took.

    Attributes:
        median_s: Half of them took longer.
        p99_s: One of a hundred took longer.
        frame_s: Time that a frame of the world takes.
        decisions: How many were measured.
    """

    median_s: float
    p99_s: float
    frame_s: float
    decisions: int

    @property
    def pace(self) -> Pace:
        """Whether decisions come within a frame: always, usually, or not."""
        if self.median_s > self.frame_s:
            return "too slow"
        return "late at times" if self.p99_s > self.frame_s else "in time"

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {**self._asdict(), "pace": self.pace}


def measure_reaction(agent: Agent, env: BatchedEnv) -> ReactionTime:
    """Lets an agent decide frame by frame in the first seat of the first game, and measures each decision.

    Args:
        agent: Who decides, on the device of the games.
        env: A game that nobody else plays; it is started anew.
    """
    space = env.spec.action_space
    shape = (env.num_games, env.spec.seats, *(space.shape or ()))
    actions = torch.zeros(shape, dtype=action_dtypes(space)[0], device=env.device)
    observations = env.reset()
    state: Memory | None = None
    taken_s: list[float] = []
    began_s = time.perf_counter()
    for number in range(_WARM_UP + _DECISIONS):
        seen = {name: tensor[0, 0] for name, tensor in observations.items()}
        _wait(agent.device)
        started_s = time.perf_counter()
        chosen, state = agent.predict(seen, state)
        _wait(agent.device)
        taken_s.append(time.perf_counter() - started_s)
        actions[0, 0] = chosen
        observations = env.step(actions).observations
        if number >= _FEWEST and time.perf_counter() - began_s > _BUDGET_S:
            break
    counted = sorted(taken_s[_WARM_UP:] or taken_s[1:])
    place = min(len(counted) - 1, round(0.99 * len(counted)))
    return ReactionTime(statistics.median(counted), counted[place], 1.0 / env.spec.rate_hz, len(counted))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
