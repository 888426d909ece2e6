"""Who may enter a tournament: files of strangers are looked at closely, and refused with the reason, never trusted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ludus.core.errors import ConfigError, LudusError, StateError, did_you_mean
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env, place_for
from ludus.evaluation.contenders import Contender, is_bot, load_agent, short_name
from ludus.evaluation.pairings import check_two_sides
from ludus.evaluation.reaction import ReactionTime, measure_reaction
from ludus.policies.agent import Agent


@dataclass(frozen=True, slots=True)
class Entrant:
    """Who takes part.

    Attributes:
        name: What tables show; each has another one.
        source: As it was asked for.
        contender: Who plays.
        reaction: How fast it decides in a single game; None for bots, which are part of the world.
    """

    name: str
    source: str
    contender: Contender
    reaction: ReactionTime | None = None


class Refusal(NamedTuple):
    """Who was refused, and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Entries:
    """Who takes part where, and who does not."""

    world: str
    entrants: tuple[Entrant, ...]
    refusals: tuple[Refusal, ...]
    device: str = "cpu"


def admit(
    names: Sequence[str],
    *,
    world: str | None = None,
    all_bots: bool = False,
    device: str = "cpu",
    config: Mapping[str, Any] | None = None,
) -> Entries:
    """Loads and checks everybody who wants to take part.

    An agent is refused if its files are damaged or hostile, if it is for another world or version or sees or does
    something else than the world has, and if its numbers are not finite. A name that is neither a bot nor a file is
    the caller's mistake, and an error.

    Args:
        names: Bots, and folders or files of agents.
        world: Where; if None, where most of the agents come from.
        all_bots: Whether every bot of the world takes part too.
        device: Where the agents shall live; `auto` for a GPU if there is one and the world can live on it.
        config: Settings of the world.

    Raises:
        ConfigError: A name is unknown or comes twice, nobody says which world is meant, or fewer than two are left.
    """
    loaded = {name: _load(name, "cpu") for name in names if Path(name).exists()}
    chosen = world or _most_common_world([agent for agent in loaded.values() if isinstance(agent, Agent)], loaded)
    place = place_for(device, chosen, config)
    if place != "cpu":
        loaded = {name: _load(name, place) for name in loaded}
    with make_env(chosen, 1, place, config=config) as env:
        check_two_sides(env.spec)
        wanted = _wanted(names, env, all_bots=all_bots)
        labels = _labels(wanted, env)
        entrants: list[Entrant] = []
        refusals: list[Refusal] = []
        for name in wanted:
            if is_bot(name, env):
                env.bots([name])  # knows best whether the settings are right
                entrants.append(Entrant(name, name, Contender(name)))
                continue
            try:
                entrants.append(_examine(labels[name], name, loaded[name], env))
            # A stranger's networks can be built of anything that the description allows, and fail anywhere.
            except (LudusError, RuntimeError, ValueError, IndexError) as error:
                refusals.append(Refusal(name, str(error).strip() or type(error).__name__))
        world_id = env.spec.id
    if len(entrants) < 2:
        reasons = "".join(f"\n  refused: {each.source}: {each.reason}" for each in refusals)
        raise ConfigError(f"a tournament needs two players or more; {len(entrants)} can take part{reasons}")
    return Entries(world_id, tuple(entrants), tuple(refusals), place)


def _load(name: str, device: str) -> Agent | LudusError:
    try:
        return load_agent(name, device)
    except LudusError as error:
        return error


def _most_common_world(agents: Sequence[Agent], loaded: Mapping[str, Agent | LudusError]) -> str:
    if not agents:
        reasons = "".join(f"\n  refused: {name}: {error}" for name, error in loaded.items())
        raise ConfigError(f"no agent says which world is meant: name it with --world, or name an agent{reasons}")
    return Counter(agent.spec.id for agent in agents).most_common(1)[0][0]


def _wanted(names: Sequence[str], env: BatchedEnv, *, all_bots: bool) -> list[str]:
    """Returns everybody's name once; raises ConfigError if one is unknown, or comes twice."""
    bots = env.spec.bots
    for name in names:
        if not is_bot(name, env) and not Path(name).exists():
            raise ConfigError(
                f"unknown player {name!r}{did_you_mean(name.partition(':')[0], bots)}: it is no bot of {env.spec.id}, "
                f"and there is no folder or file {Path(name).absolute()}; bots: {', '.join(bots) or 'none'}"
            )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ConfigError(f"named more than once: {', '.join(twice)}; name every player once")
    return list(dict.fromkeys((*names, *(bots if all_bots else ()))))


def _labels(wanted: Sequence[str], env: BatchedEnv) -> dict[str, str]:
    """Returns what tables show of each player: bots as they are, paths short unless that is another one's name too."""
    short = {name: name if is_bot(name, env) else short_name(name) for name in wanted}
    counts = Counter(short.values())
    labels = {name: label if counts[label] == 1 else name for name, label in short.items()}
    return labels if len(set(labels.values())) == len(labels) else {name: name for name in wanted}


def _examine(label: str, name: str, agent: Agent | LudusError, env: BatchedEnv) -> Entrant:
    """Raises an error with the reason if an agent cannot take part."""
    if not isinstance(agent, Agent):
        raise agent
    agent.check_world(env.spec)
    for part, tensor in agent.policy.state().items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise StateError(f"its {part} has values that are not finite; train it again or use an earlier checkpoint")
    seen = {entry: tensor[:, 0] for entry, tensor in env.reset().items()}
    starts = torch.ones(env.num_games, dtype=torch.bool, device=env.device)
    noise = agent.policy.draw_noise(1, env.num_games, torch.Generator(agent.device).manual_seed(0))[0]
    step = agent.policy.step(seen, agent.policy.initial(env.num_games), starts, noise)
    if not all(bool(torch.isfinite(tensor).all()) for tensor in (step.log_probs, step.values)):
        raise StateError("its first decision is not finite, though its weights are: they are far too large")
    return Entrant(label, name, Contender(name, agent.policy), measure_reaction(agent, env))
