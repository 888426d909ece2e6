"""Entries of a tournament: untrusted agent files are checked, and rejected with the reason."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from ludus.core.errors import AgentError, ConfigError, LudusError
from ludus.envs.base import BatchedEnv
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import bot_names, is_bot
from ludus.envs.registry import make_env, place_for
from ludus.evaluation.matches import check_two_sides, no_actions
from ludus.evaluation.players import (
    AgentPlayer,
    Player,
    check_no_duplicates,
    check_player_name,
    load_playable_agent,
    one_seat,
    short_name,
)
from ludus.policies.agent import Agent
from ludus.policies.cost import clocks, taken_s
from ludus.policies.policy import RecurrentState
from ludus.policies.shipped import find_agent_path

Pace: TypeAlias = Literal["in time", "late at times", "too slow"]

_WARM_UP = 10  # decisions that are not counted: memory is allocated and kernels are chosen
_DECISIONS = 200
_MIN_DECISIONS, _BUDGET_S = 5, 2.0  # a very slow agent is measured no longer than this


class ReactionTime(NamedTuple):
    """Latency of single decisions.

    Attributes:
        median_s: Median.
        p99_s: 99th percentile.
        frame_s: Duration of a frame of the world.
        decisions: How many were measured.
    """

    median_s: float
    p99_s: float
    frame_s: float
    decisions: int

    @property
    def pace(self) -> Pace:
        """Whether decisions are made within a frame: always, usually, or not."""
        if self.median_s > self.frame_s:
            return "too slow"
        return "late at times" if self.p99_s > self.frame_s else "in time"

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {**self._asdict(), "pace": self.pace}


@dataclass(frozen=True, slots=True)
class Entry:
    """A participant.

    Attributes:
        name: Unique display name.
        source: As given by the user.
        player: The player.
        reaction: Decision latency in a single game; None for bots, which are part of the world.
    """

    name: str
    source: str
    player: Player
    reaction: ReactionTime | None = None


class Rejection(NamedTuple):
    """An entry that was rejected, and the reason."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Entries:
    """Accepted and rejected entries of a tournament in a world."""

    world: str
    accepted: tuple[Entry, ...]
    rejected: tuple[Rejection, ...]
    device: str = "cpu"


def load_entries(
    names: Sequence[str],
    *,
    world: str | None = None,
    all_bots: bool = False,
    device: str = "cpu",
    config: Mapping[str, Any] | None = None,
) -> Entries:
    """Load and check all players of a tournament.

    An agent is rejected if its files are damaged or hostile, if it is for another world, version, observation or
    action space, and if it has NaN or Inf parameters. A name that is neither a bot nor an agent is an error.

    Args:
        names: Bots, and names, folders or files of agents.
        world: The world; if None, that of most of the agents.
        all_bots: Whether every bot of the world takes part too.
        device: Device of the agents; `auto` for a GPU if there is one and the world supports it.
        config: Settings of the world.

    Raises:
        ConfigError: A name is unknown or listed twice, nothing determines the world, or fewer than two are left.
    """
    loaded = {name: _load(name, "cpu") for name in names if find_agent_path(name) is not None}
    chosen = world or _most_common_world([agent for agent in loaded.values() if isinstance(agent, Agent)], loaded)
    place = place_for(device, chosen, config)
    if place != "cpu":
        loaded = {name: _load(name, place) for name in loaded}
    with make_env(chosen, 1, place, config=config) as env:
        check_two_sides(env.spec)
        for name in names:
            check_player_name(name, env)
        check_no_duplicates(names)
        wanted = list(dict.fromkeys((*names, *(bot_names(env.spec) if all_bots else ()))))
        labels = _labels(wanted, env)
        accepted: list[Entry] = []
        rejected: list[Rejection] = []
        for name in wanted:
            if is_bot(name, env.spec):
                BotRoster(env, [name])  # raises if the settings are wrong
                accepted.append(Entry(name, name, Player(name)))
                continue
            try:
                accepted.append(_check_agent(labels[name], name, loaded[name], env))
            # An untrusted network can be anything that the description allows, and fail anywhere.
            except (LudusError, RuntimeError, ValueError, IndexError) as error:
                rejected.append(Rejection(name, str(error).strip() or type(error).__name__))
        world_id = env.spec.id
    if len(accepted) < 2:
        reasons = "".join(f"\n  rejected: {each.source}: {each.reason}" for each in rejected)
        raise ConfigError(f"a tournament needs two players or more; {len(accepted)} can take part{reasons}")
    return Entries(world_id, tuple(accepted), tuple(rejected), place)


def _load(name: str, device: str) -> Agent | LudusError:
    try:
        return load_playable_agent(name, device)
    except LudusError as error:
        return error


def _most_common_world(agents: Sequence[Agent], loaded: Mapping[str, Agent | LudusError]) -> str:
    if not agents:
        reasons = "".join(f"\n  rejected: {name}: {error}" for name, error in loaded.items())
        raise ConfigError(f"no agent determines the world: name it with --world, or name an agent{reasons}")
    return Counter(agent.spec.id for agent in agents).most_common(1)[0][0]


def _labels(wanted: Sequence[str], env: BatchedEnv) -> dict[str, str]:
    """Return display names: bots as they are, paths shortened unless that makes two names equal."""
    short = {name: name if is_bot(name, env.spec) else short_name(name) for name in wanted}
    counts = Counter(short.values())
    labels = {name: label if counts[label] == 1 else name for name, label in short.items()}
    return labels if len(set(labels.values())) == len(labels) else {name: name for name in wanted}


def _check_agent(label: str, name: str, agent: Agent | LudusError, env: BatchedEnv) -> Entry:
    """Return an agent's entry; raise an error with the reason if it cannot take part."""
    if not isinstance(agent, Agent):
        raise agent
    agent.check_world(env.spec)
    player = AgentPlayer(env, one_seat(env, 0), agent.policy, name=label)
    player.act(env.reset(), no_actions(env), first=True)
    if player.fault is not None:
        raise AgentError(player.fault.reason)
    return Entry(label, name, Player(name, agent.policy), measure_reaction(agent, env))


def measure_reaction(agent: Agent, env: BatchedEnv) -> ReactionTime:
    """Measure the latency of an agent's decisions in the first seat of the first game.

    Args:
        agent: The agent, on the device of the games.
        env: A game without other players; it is reset.

    Raises:
        AgentError: A decision took longer than an agent from a file may take.
    """
    allowance = agent.policy.allowance
    limit_s = math.inf if allowance is None else allowance.decision_s(1)
    actions, observations = no_actions(env), env.reset()
    state: RecurrentState | None = None
    seconds: list[float] = []
    began_s = time.perf_counter()
    for number in range(_WARM_UP + _DECISIONS):
        seen = {name: tensor[0, 0] for name, tensor in observations.items()}
        _synchronize(agent.device)
        started_s, since = time.perf_counter(), clocks()
        chosen, state = agent.predict(seen, state)
        _synchronize(agent.device)
        seconds.append(time.perf_counter() - started_s)
        if taken_s(since) > limit_s:
            raise AgentError(f"it took {seconds[-1]:.1f} s over a decision, more than the limit of {limit_s:.1f} s")
        actions[0, 0] = chosen
        observations = env.step(actions).observations
        if number >= _MIN_DECISIONS and time.perf_counter() - began_s > _BUDGET_S:
            break
    counted = sorted(seconds[_WARM_UP:] or seconds[1:])
    rank = min(len(counted) - 1, round(0.99 * len(counted)))
    return ReactionTime(statistics.median(counted), counted[rank], 1.0 / env.spec.rate_hz, len(counted))


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
