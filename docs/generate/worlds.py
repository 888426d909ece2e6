"""What pages about worlds take from the code: facts, observations, settings, rewards, presets, events and metrics.

Events and metrics have names in the code and meanings in `meanings.yaml`; a name without a meaning, or a meaning
without a name, fails the build.
"""

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from docs.generate.configuration import anchor, null_for_none
from docs.generate.markdown import code, table
from docs.generate.schema import sections, settings_table, summary
from gymnasium import spaces
from ruamel.yaml import YAML

from ludus import make_env
from ludus.config import PresetDirectory
from ludus.envs.base import EnvSpec, action_dtypes
from ludus.envs.world import find_world, resolve
from ludus.envs.world_parts import metrics_of, reward_sets
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import terms_of
from ludus.training.presets import load_run_config
from ludus.worlds.brawl.observation import FIELDS as BRAWL_FIELDS
from ludus.worlds.rocket.observation import LAYOUT

WORLDS = ("brawl", "rocket", "mimic", "city", "roshambo")
_MEANINGS = Path(__file__).with_name("meanings.yaml")
_DASH = "\u2011"  # a hyphen at which no line breaks
_MANY = 5  # neighbours in a row of the observation table that are written as a range
_UNLISTED = ("debug",)  # presets for tests


class MeaningError(Exception):
    """`meanings.yaml` and the code disagree."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one batch of a world says about itself."""

    spec: EnvSpec
    metrics: tuple[str, ...]


@cache
def seen(world: str) -> Seen:
    """Return the spec of a world with its default settings, and the names of its episode metrics."""
    with make_env(world) as env:
        env.reset()
        spec = env.spec
        action = torch.as_tensor(np.zeros_like(spec.action_space.sample())).to(action_dtypes(spec.action_space)[0])
        result = env.step(action.expand(1, spec.seats, *action.shape).clone())
        measured = metrics_of(world)
        step = measured.per_step(StepInfo(result.events, result.state_metrics, 1.0 / spec.rate_hz))
        sums = {name: tensor.double().cpu().numpy().reshape(-1) for name, tensor in step.items()}
        named = measured.per_episode(sums, np.ones(spec.seats, np.int64), spec.rate_hz)
    return Seen(spec, (*named, *measured.extremes))


def facts(world: str) -> str:
    """Return the spec of a world in a table."""
    spec = seen(world).spec
    record = find_world(world)
    observed = ", ".join(f"`{name}` {space_name(space)}" for name, space in spec.observation_space.items())
    rows = [
        ("id", f"`{spec.id}`" + (f", in Gymnasium `ludus/{world.title()}-v{spec.version}`")),
        ("seats", f"{spec.seats}" + (f" in {len(set(spec.teams))} teams" if len(set(spec.teams)) > 1 else "")),
        ("action space", f"`{space_name(spec.action_space)}`"),
        ("observation", observed),
        ("decisions per second of game time", f"{spec.rate_hz:g}"),
        ("longest episode", f"{spec.step_limit:,} steps" if spec.step_limit else "no limit"),
        ("devices", ", ".join(name.upper() if name == "cpu" else "CUDA" for name in spec.device_types)),
        ("default preset", f"`{record.default_preset}`"),
        ("default reward", f"set `{record.default_reward}`" if record.default_reward else "event `reward`"),
    ]
    return table(("", "with default settings"), rows)


def space_name(space: spaces.Space[Any]) -> str:
    """Return a space as Gymnasium users write it."""
    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete([{', '.join(map(str, space.nvec))}])"
    if isinstance(space, spaces.MultiBinary):
        return f"MultiBinary({space.n})"
    if isinstance(space, spaces.Box):
        shape = ", ".join(map(str, space.shape))
        return f"Box(({shape}{',' if len(space.shape) == 1 else ''}), {space.dtype})"
    return str(space)


def observation(layout: str) -> str:
    """Return the table of an observation vector: `brawl` or `rocket`.

    Neighbours with equal range and meaning share a row; of equal slots, and of the opponent's copy of the player's own
    block, only the first is shown.
    """
    fields: Sequence[Any] = BRAWL_FIELDS if layout == "brawl" else LAYOUT.fields
    rows = []
    for group in _grouped(fields):
        block, _, name = fields[group[0]].name.partition(".")
        if block == "opponent" or block in {"far_spawn", "own_drop", "opponent_drop"}:
            continue
        if block[-1].isdigit() and not block.endswith("_0"):
            continue
        names = [fields[place].name.partition(".")[2] for place in group]
        listed = f"{code(name)} ... {code(names[-1])}" if len(group) > _MANY else ", ".join(map(code, names))
        place = f"{group[0]}" if len(group) == 1 else f"{group[0]}{_DASH}{group[-1]}"
        first = fields[group[0]]
        meaning = f"one-hot: the current {name.partition('_')[0]}" if _is_one_hot(name) else first.meaning
        rows.append((place, block, listed, f"{first.low:g} ... {first.high:g}", meaning))
    return table(("index", "block", "name", "range", "meaning"), rows)


def _grouped(fields: Sequence[Any]) -> list[list[int]]:
    groups: list[list[int]] = []
    for place, field in enumerate(fields):
        before = fields[groups[-1][-1]] if groups else None
        if before is not None and _likeness(before) == _likeness(field):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _likeness(field: Any) -> tuple[object, ...]:  # noqa: ANN401 - a field of either world
    block, _, name = field.name.partition(".")
    meaning = name.partition("_")[0] if _is_one_hot(name) else field.meaning
    return block, field.low, field.high, meaning


def _is_one_hot(name: str) -> bool:
    return name.startswith(("state_", "move_")) and name != "move_progress"


def settings(world: str) -> str:
    """Return the tables of a world's own settings."""
    model = resolve(find_world(world).config or "")
    inside = dict(sections(model))
    parts = [
        null_for_none(settings_table(model, link=lambda name: f"#settings-{anchor(name)}" if name in inside else ""))
    ]
    for key, inner in inside.items():
        parts += [f"### `{key}` {{ #settings-{anchor(key)} }}", null_for_none(summary(inner))]
        parts.append(null_for_none(settings_table(inner)))
    return "\n\n".join(parts)


def rewards(world: str) -> str:
    """Return the reward terms of a world, with their weight in every set."""
    sets = reward_sets(world)
    rows = []
    for name, term in terms_of(world).items():
        meaning = (term.__doc__ or "").strip().splitlines()[0]
        weights = [f"{weights[name]:g}" if name in weights else "" for weights in sets.values()]
        rows.append((code(name), meaning, *weights))
    return table(("term", "value at weight 1", *(f"`{name}`" for name in sets)), rows)


def presets(world: str) -> str:
    """Return the presets of a world that people run."""
    directory = PresetDirectory(find_world(world).package)
    rows = []
    for name in directory.names():
        if name.endswith(_UNLISTED):
            continue
        run = load_run_config(world, name)
        size = f"{run.total_env_steps / 1e6:g} M" if run.total_env_steps >= 1e6 else f"{run.total_env_steps:,}"
        rows.append((code(name), directory.about(name), run.algorithm.upper(), f"{run.world.num_envs:,}", size))
    return table(("preset", "what it trains", "algorithm", "games", "env steps"), rows)


def kinds(world: str) -> str:
    """Return the kinds of action of a world, a line of names."""
    return ", ".join(code(name) for name in seen(world).spec.actions.names)


def bots(world: str) -> str:
    """Return the names of a world's bots."""
    return ", ".join(code(name) for name in seen(world).spec.bots)


def events(world: str) -> str:
    """Return the events of a world."""
    return _named_table("event", world, "events", seen(world).spec.events)


def state_metrics(world: str) -> str:
    """Return the state metrics of a world."""
    return _named_table("state metric", world, "state_metrics", seen(world).spec.state_metrics)


def metrics(world: str) -> str:
    """Return the episode metrics of a world."""
    return _named_table("episode metric", world, "metrics", seen(world).metrics)


def _named_table(title: str, world: str, kind: str, names: Iterable[str]) -> str:
    """Return names with their meanings; names of one pattern share a row."""
    known = _meanings()[world][kind]
    rows: dict[str, str] = {}
    used = set()
    for name in names:
        key = name if name in known else next((key for key in known if fnmatch.fnmatchcase(name, key)), None)
        if key is None:
            raise MeaningError(f"docs/generate/meanings.yaml has no meaning for {world}.{kind}.{name}")
        used.add(key)
        shown = code(key.replace("*", "NAME"))
        rows[shown] = known[key]
    unused = sorted(set(known) - used)
    if unused:
        raise MeaningError(f"docs/generate/meanings.yaml: {world} has no {kind} named {', '.join(unused)}")
    return table((title, "meaning"), rows.items())


@cache
def _meanings() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    loaded: Mapping[str, Mapping[str, Mapping[str, str]]] = YAML(typ="safe").load(_MEANINGS)
    return loaded


def events_page() -> str:
    """Return the reference page about the events and metrics of all worlds."""
    parts = [_EVENTS_HEAD]
    for world in WORLDS:
        record = find_world(world)
        parts += [f"## {world.title()} {{ #{world} }}", f"`{record.id}`, with default settings."]
        parts += [events(world), state_metrics(world), metrics(world)]
    return "\n\n".join(parts) + "\n"


_EVENTS_HEAD = """# Events and metrics

What each world reports, generated from its `EnvSpec`.

- **Events** (`StepResult.events`) say what happened in a step: one `(envs, seats)` float32 tensor per name. Every event
  is also a reward term of the same name.
- **State metrics** (`StepResult.state_metrics`) say where things stand after a step, before any restart, in the same
  shape.
- **Episode metrics** summarize how a seat played an episode: `behavior_metrics.csv`, `ludus eval --json`, benchmark
  suites and `evaluation.score` use these names.

All values are from the point of view of the seat. Reward terms are on the page of each [world](../worlds/index.md)."""

DIRECTIVES: Mapping[str, Callable[[str], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (facts, observation, settings, rewards, presets, kinds, bots, events, state_metrics, metrics)
}
