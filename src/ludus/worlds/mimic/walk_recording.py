"""Walks of an agent for analysis: undisturbed ones, sample by sample, and ones that are pushed once."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from ludus.core.errors import ConfigError
from ludus.core.intervals import Interval, wilson_interval
from ludus.envs.base import EnvRequest
from ludus.evaluation.matches import play_steps
from ludus.evaluation.players import AgentPlayer, one_seat
from ludus.policies.agent import Agent
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.env import MimicEnv
from ludus.worlds.mimic.model import POINTS
from ludus.worlds.mimic.observation import euler_angles
from ludus.worlds.mimic.rendering.figure import StickFigure
from ludus.worlds.mimic.steering import PUSH_S, SteeredEnv
from ludus.worlds.mimic.walk_analysis import WalkRecord

WARM_UP_S = 2.0  # left out of a record: walkers begin on the reference
BEFORE_PUSH_S, AFTER_PUSH_S = 3.0, 4.0
DIRECTIONS: Mapping[str, float] = (
    MappingProxyType(  # where pushes come from, and where to, rad from forward to the left
        {"from behind": 0.0, "from its right": 0.5 * np.pi, "from ahead": np.pi, "from its left": 1.5 * np.pi}
    )
)
IMPULSES_NS = (10.0, 20.0, 30.0, 45.0, 60.0, 80.0)
_UNDISTURBED: Mapping[str, Any] = MappingProxyType(
    {"starts": "fixed", "start_noise": 0.01, "speed_change_s": 0.0, "pushes": {"impulse_ns": 0.0}, "physics": "mujoco"}
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """How many walks survive pushes of growing impulse from one direction.

    Attributes:
        direction: One of `DIRECTIONS`.
        impulses_ns: Impulses of the pushes.
        survived: Share of walks that were on their feet `AFTER_PUSH_S` later, with Wilson's intervals.
        walks: How many walks were pushed with each impulse; those that had fallen before are not among them.
    """

    direction: str
    impulses_ns: tuple[float, ...]
    survived: tuple[Interval, ...]
    walks: tuple[int, ...]

    @property
    def half_ns(self) -> float | None:
        """Impulse that half of the walks survive, between two that were tried; None if it is not among them."""
        shares = [each.estimate for each in self.survived]
        for place in range(1, len(shares)):
            before, after = shares[place - 1], shares[place]
            if before >= 0.5 > after:
                low, high = self.impulses_ns[place - 1], self.impulses_ns[place]
                return low + (high - low) * (before - 0.5) / (before - after)
        return None


def record_walks(
    agent: Agent,
    *,
    walks: int = 20,
    seconds: float = 15.0,
    speed_m_s: float | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> list[WalkRecord]:
    """Let an agent walk, without noise in its actions, and return each walk after `WARM_UP_S`, up to a fall.

    Args:
        agent: An agent of this world.
        walks: Number of walks, each from a phase of its own.
        seconds: Length of a walk.
        speed_m_s: Desired speed; None spreads the walks over the speeds of the agent's training.
        seed: Seed of the starts.
        progress: Called with the share that is done.

    Raises:
        ConfigError: Walks are too short for anything to be recorded.
    """
    if seconds <= WARM_UP_S:
        raise ConfigError(f"the first {WARM_UP_S:g} s of a walk are left out; walks of {seconds:g} s are too short")
    settings = {**agent.settings, **_UNDISTURBED, "episode_s": seconds}
    settings |= {} if speed_m_s is None else {"speed": speed_m_s}
    env = MimicEnv(EnvRequest(walks, "cpu", seed, 0, settings))
    figure = StickFigure(env.walker)
    rows: list[list[tuple[Any, ...]]] = [[] for _ in range(walks)]

    def note(number: int, events: Mapping[str, torch.Tensor], alive: torch.Tensor) -> None:
        if number < WARM_UP_S * env.spec.rate_hz:
            return
        struck = torch.stack([events[f"strikes_{side}"][:, 0] for side in SIDES], dim=1) > 0.5
        down, energy = env.feet_down(), events["energy"][:, 0]
        for game in alive.nonzero().squeeze(1).tolist():
            positions = env.positions(game)
            feet = (down[game].tolist(), struck[game].tolist())
            rows[game].append((positions, *feet, figure.points(positions), float(energy[game])))

    _walk(env, agent, env.spec.step_limit or 0, note, progress)
    records = [_record(env, each) for each in rows if each]
    env.close()
    return records


def _record(env: MimicEnv, rows: Sequence[tuple[Any, ...]]) -> WalkRecord:
    positions, down, strikes, points, energy = (np.array(column) for column in zip(*rows, strict=True))
    leans = euler_angles(torch.from_numpy(positions[:, 3:7]))[:, 1]
    at = [[StickFigure.names.index(f"{side}_{point}") for side in SIDES] for point in POINTS]
    return WalkRecord(
        rate_hz=env.spec.rate_hz,
        joints=tuple(joint.name for joint in env.walker.joints),
        angles_deg=np.rad2deg(positions[:, 7:]),
        down=down.astype(bool),
        strikes=strikes.astype(bool),
        heels_m=points[:, at[0]],
        toes_m=points[:, at[1]],
        hips_m=points[:, StickFigure.names.index("hip")],
        energy_j=energy,
        mass_kg=env.walker.mass_kg,
        trunk_lean_deg=float(np.rad2deg(leans.mean())),
    )


def push_recovery(
    agent: Agent,
    *,
    walks: int = 20,
    impulses_ns: Sequence[float] = IMPULSES_NS,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> tuple[Recovery, ...]:
    """Push walks once, after `BEFORE_PUSH_S`, and count who survives, by direction and impulse.

    All of them are one batch; walks are spread over phases, and over the speeds of the agent's training.
    """
    shape = (len(DIRECTIONS), len(impulses_ns), walks)
    count = int(np.prod(shape))
    settings = {**agent.settings, **_UNDISTURBED, "episode_s": BEFORE_PUSH_S + PUSH_S + AFTER_PUSH_S + 1.0}
    env = SteeredEnv(EnvRequest(count, "cpu", seed, 0, settings))
    directions = torch.tensor(list(DIRECTIONS.values())).reshape(-1, 1, 1).expand(shape).reshape(-1)
    impulses = torch.tensor(list(impulses_ns)).reshape(1, -1, 1).expand(shape).reshape(-1)
    pushed = torch.zeros(count, dtype=torch.bool)

    def push(number: int, _: Mapping[str, torch.Tensor], alive: torch.Tensor) -> None:
        if number == round(BEFORE_PUSH_S * env.spec.rate_hz):
            pushed.copy_(alive)
            env.push(directions, impulses)

    steps = round((BEFORE_PUSH_S + PUSH_S + AFTER_PUSH_S) * env.spec.rate_hz)
    alive = _walk(env, agent, steps, push, progress) & pushed
    env.close()
    survivors, tried = alive.reshape(shape).sum(-1).tolist(), pushed.reshape(shape).sum(-1).tolist()
    return tuple(
        Recovery(
            name,
            tuple(impulses_ns),
            tuple(wilson_interval(left, of) for left, of in zip(survivors[row], tried[row], strict=True)),
            tuple(tried[row]),
        )
        for row, name in enumerate(DIRECTIONS)
    )


def _walk(
    env: MimicEnv,
    agent: Agent,
    steps: int,
    on_step: Callable[[int, Mapping[str, torch.Tensor], torch.Tensor], None],
    progress: Callable[[float], None] | None,
) -> torch.Tensor:
    """Let an agent play so many steps; return `(games,)` bool, walkers that have not fallen.

    `on_step` gets the index of the step, its events, and which walkers are still in their first walk.
    """
    agent.check_world(env.spec)
    player = AgentPlayer(env, one_seat(env, 0), agent.policy, deterministic=True)
    alive = torch.ones(env.num_envs, dtype=torch.bool)
    stands = alive.clone()
    for number, (_, result) in enumerate(itertools.islice(play_steps(env, [player], env.reset()), steps)):
        stands &= ~result.terminated
        alive &= ~result.ended
        on_step(number, result.events, alive)
        if progress is not None and number % 50 == 0:
            progress(number / steps)
    return stands
