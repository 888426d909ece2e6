"""PettingZoo parallel environments as batched environments: seats, teams, and a space that all agents share."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from pydantic import Field

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters.game_batch import RANDOM, GameBatch, GymnasiumSettings
from ludus.envs.adapters.games import Entry, Maker, Plan, Seat, Source
from ludus.envs.adapters.gymnasium_factory import action_form, make_batch, memory_slots, observation_entries
from ludus.envs.adapters.pettingzoo_games import (
    AGENT,
    MASK,
    RESULTS,
    ParallelGames,
    choice_counts,
    common_actions,
    corner,
)
from ludus.envs.base import ActionKinds, EnvRequest, EnvSpec

# Games of PettingZoo's own whose teams their agents' names do not tell: all agents are on one side, or the role on the
# left is on the side of the role on the right. Their documentation says so.
_COOPERATIVE = re.compile(
    r"(cooperative_pong|pistonball|knights_archers_zombies|multiwalker|pursuit|waterworld|simple_spread"
    r"|simple_reference|simple_speaker_listener|simple)_v\d+"
)
_ALLIES = {"alice": "bob", "leadadversary": "adversary"}  # of simple_crypto and simple_world_comm
_PARTS = ("observation",)  # PettingZoo's name of what is seen, where a mask comes with it


class OwnGameSettings(GymnasiumSettings):
    """Settings of games of your own, and of `pettingzoo:MODULE`.

    Attributes:
        env_kwargs: Arguments of the class or function that makes the game; JSON values if there are workers.
        teams: Team of each agent of a PettingZoo game, by its name; `{}` goes by the names, see `teams_of`.
        agent_id: Whether agents see which agent they are; None for those whose spaces or roles differ.
    """

    teams: dict[str, int | str] = Field(default_factory=dict, max_length=1024)
    agent_id: bool | None = None


class ParallelForm(NamedTuple):
    """How a parallel environment looks from outside."""

    spec: EnvSpec
    entries: tuple[Entry, ...]
    seats: tuple[Seat, ...]
    action_dtype: str


def is_parallel(env: object) -> bool:
    """Return whether an object follows PettingZoo's parallel API."""
    return all(hasattr(env, name) for name in ("reset", "step", "action_space", "observation_space")) and (
        hasattr(env, "possible_agents") and not is_turn_based(env)
    )


def is_turn_based(env: object) -> bool:
    """Return whether an object follows PettingZoo's AEC API, in which agents act one after another."""
    return hasattr(env, "agent_iter") and hasattr(env, "last")


def make_parallel(
    env: Any,  # noqa: ANN401 - a game of others
    name: tuple[str, int],
    source: Source,
    settings: OwnGameSettings,
    request: EnvRequest,
    make: Maker,
) -> GameBatch:
    """Make a batch of games like `env`, which is closed.

    Raises:
        ConfigError: A setting is wrong.
        EnvFaultError: The game cannot be constructed.
        UnsupportedError: Its agents have spaces that are not known, or that do not mix.
    """
    form = parallel_form(env, *name, settings)
    plan = Plan(
        source=source,
        env_kwargs=settings.env_kwargs,
        num_envs=request.num_envs,
        slots=memory_slots(settings),
        entries=form.entries,
        action_shape=tuple(form.spec.action_space.shape or ()),
        action_dtype=form.action_dtype,
        events=form.spec.events,
        seats=form.seats,
    )
    return make_batch(form.spec, plan, request, settings, ParallelGames, make)


def parallel_form(env: Any, name: str, version: int, settings: OwnGameSettings) -> ParallelForm:  # noqa: ANN401
    """Return how an environment looks from outside; it is reset once, to see whether it gives masks."""
    infos = _first_infos(env, name)
    agents = [str(agent) for agent in env.possible_agents]
    teams = teams_of(env, agents, settings.teams, name)
    seen = {agent: _entries(env.observation_space(agent)) for agent in agents}
    played = [env.action_space(agent) for agent in agents]
    common = common_actions([action_form(space)[0] for space in played])
    if common is None:
        raise UnsupportedError(
            f"{name}: the agents' action spaces do not mix: {', '.join(dict.fromkeys(map(str, played)))}; valid: all "
            "Discrete, all MultiDiscrete, all MultiBinary, or all Box of as many axes; wrap the game so that they are"
        )
    boxes = _padded(seen.values())
    is_mixed = len({str(space) for space in played}) > 1 or any(own != seen[agents[0]] for own in seen.values())
    has_roles = is_mixed or len({role_of(agent) for agent in agents}) > 1
    if settings.agent_id if settings.agent_id is not None else has_roles:
        boxes[AGENT] = spaces.Box(0.0, 1.0, (len(agents),), np.float32)
    has_mask = choice_counts(common) and (
        len({choice_counts(space) for space in played}) > 1 or any(_gives_mask(env, agent, infos) for agent in agents)
    )
    if has_mask:
        boxes[MASK] = spaces.Box(0.0, 1.0, (sum(choice_counts(common)),), np.float32)
    seats = tuple(
        Seat(
            agent, team, tuple(entry for _, entry in seen[agent].values()), _allowed(space, common) if has_mask else ()
        )
        for agent, team, space in zip(agents, teams, played, strict=True)
    )
    entries = tuple(Entry(entry, None, box.shape, str(box.dtype)) for entry, box in boxes.items())
    has_sides = len(set(teams)) > 1
    metadata: Mapping[str, Any] = getattr(env, "metadata", None) or {}
    spec = EnvSpec(
        name=name,
        version=version,
        teams=teams,
        observation_space=spaces.Dict(boxes),  # type: ignore[arg-type]
        action_space=common,
        rate_hz=float(metadata.get("render_fps") or 30.0),
        step_limit=None,
        events=("reward", *RESULTS) if has_sides else ("reward",),
        bots=(RANDOM,) if has_sides else (),
        device_types=("cpu",),
        actions=ActionKinds(mask=MASK if has_mask else None),
    )
    return ParallelForm(spec, entries, seats, action_form(common)[1])


def role_of(agent: str) -> str:
    """Return the name of an agent without its number: `archer_0` is an `archer`."""
    return re.sub(r"[_-]?\d+$", "", agent) or agent


def teams_of(env: Any, agents: Sequence[str], named: Mapping[str, int | str], name: str) -> tuple[int, ...]:  # noqa: ANN401
    """Return the team of each agent, counted from 0 in the order of the agents.

    What the settings say counts first, then what the game itself says in `metadata["teams"]`, a mapping of the same
    form. Without either, the cooperative games of PettingZoo's own are one team. In any other game agents whose names
    differ in more than a number are in different teams (`adversary_0` and `agent_0`), and where all names are alike
    every agent plays for itself: `player_0` and `player_1` are opponents.

    Raises:
        ConfigError: Teams are given for other agents than the game has.
    """
    metadata: Mapping[str, Any] = getattr(env, "metadata", None) or {}
    said: Mapping[str, Any] = named or metadata.get("teams") or {}
    if said:
        wrong = sorted({*agents} ^ {*said})
        if wrong:
            fault = f"no team for {wrong[0]!r}" if wrong[0] in agents else f"an unknown agent {wrong[0]!r}"
            raise ConfigError(f"{name}: teams has {fault}; give every agent one: {', '.join(agents)}")
        labels: list[Any] = [said[agent] for agent in agents]
    elif _COOPERATIVE.fullmatch(str(metadata.get("name", ""))):
        labels = [""] * len(agents)
    else:
        labels = [role_of(agent) for agent in agents]
        labels = [_ALLIES[role] if _ALLIES.get(role) in labels else role for role in labels]
        labels = list(agents) if len(set(labels)) == 1 else labels
    order = list(dict.fromkeys(labels))
    return tuple(order.index(label) for label in labels)


def _first_infos(env: Any, name: str) -> Mapping[str, Any]:  # noqa: ANN401 - a game of others
    """Return the infos of a first reset; what it returns in all is checked when games are played."""
    agents = list(env.possible_agents)
    if not agents or not all(isinstance(agent, str) for agent in agents):
        raise UnsupportedError(f"{name}: possible_agents is {agents!r}; it must be a list of names, one per agent")
    result = env.reset(seed=0)
    infos = result[1] if isinstance(result, tuple) and len(result) == 2 else {}
    return infos if isinstance(infos, Mapping) else {}


Part = tuple[spaces.Box, Entry]


def _entries(space: spaces.Space[Any]) -> dict[str, Part]:
    """Return the parts of an agent's observation by the names that they get; a mask among them is left out."""
    if isinstance(space, spaces.Dict) and MASK in space.spaces:
        rest = {key: part for key, part in space.spaces.items() if key != MASK}
        if tuple(rest) == _PARTS:
            boxes, entries = observation_entries(rest[_PARTS[0]])
            keyed = [Entry(entry.name, _PARTS[0], entry.shape, entry.dtype, entry.one_hot_start) for entry in entries]
            if all(entry.key is None for entry in entries):
                return _by_name(boxes, keyed)
        space = spaces.Dict(rest)
    return _by_name(*observation_entries(space))


def _by_name(boxes: spaces.Dict, entries: Iterable[Entry]) -> dict[str, Part]:
    return {entry.name: (boxes[entry.name], entry) for entry in entries}  # type: ignore[misc]


def _padded(seen: Iterable[Mapping[str, Part]]) -> dict[str, spaces.Box]:
    """Return the observation space that holds those of all agents, and zeros for agents that are not there."""
    parts: dict[str, list[spaces.Box]] = {}
    for own in seen:
        for name, (box, _) in own.items():
            parts.setdefault(name, []).append(box)
    for name in (AGENT, MASK):
        if name in parts:
            raise UnsupportedError(f"an observation entry is called {name!r}, a name that is taken; rename it")
    return {name: _common_box(boxes) for name, boxes in parts.items()}


def _common_box(boxes: Sequence[spaces.Box]) -> spaces.Box:
    """Return the smallest box that holds all in its corner, flat where they have different numbers of axes."""
    if len({len(box.shape) for box in boxes}) > 1:
        boxes = [spaces.Box(box.low.ravel(), box.high.ravel(), dtype=box.dtype.type) for box in boxes]
    shape = tuple(max(sizes) for sizes in zip(*(box.shape for box in boxes), strict=True))
    dtype = np.uint8 if all(box.dtype == np.uint8 for box in boxes) else np.float32
    low, high = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for box in boxes:
        part = corner(box.shape)
        low[part], high[part] = np.minimum(low[part], box.low), np.maximum(high[part], box.high)
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)


def _gives_mask(env: Any, agent: str, infos: Mapping[str, Any]) -> bool:  # noqa: ANN401 - a game of others
    space, info = env.observation_space(agent), infos.get(agent)
    return (isinstance(space, spaces.Dict) and MASK in space.spaces) or (isinstance(info, Mapping) and MASK in info)


def _allowed(own: spaces.Space[Any], common: spaces.Space[Any]) -> tuple[int, ...]:
    """Return 1 for every alternative of the common space that an agent's own has, else 0."""
    counts = [*choice_counts(own), *[1] * len(choice_counts(common))]
    return tuple(
        int(choice < counts[factor]) for factor, most in enumerate(choice_counts(common)) for choice in range(most)
    )
