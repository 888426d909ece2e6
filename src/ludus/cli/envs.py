"""`ludus envs`: list the worlds, or show everything about one."""

from typing import TYPE_CHECKING, Annotated

from typer import Argument

from ludus.cli.console import echo, print_table, print_warning
from ludus.cli.options import Plugin, load_plugins
from ludus.core.errors import LudusError

if TYPE_CHECKING:
    from ludus.envs.base import EnvSpec


def envs(
    world: Annotated[str | None, Argument(help="Show everything about this world.")] = None, plugin: Plugin = None
) -> None:
    """List the worlds with their seats, rate, sizes and bots; or the events, rewards, agents and presets of one."""
    load_plugins(plugin, world or "")
    from ludus.envs.bots import bot_names
    from ludus.envs.registry import make_env
    from ludus.envs.world import registered_envs

    if world is not None:
        with make_env(world) as env:
            _tell(env.spec)
        return
    specs: list[EnvSpec] = []
    for name in registered_envs():
        try:
            with make_env(name) as env:
                specs.append(env.spec)
        except LudusError as error:
            print_warning(f"{name} cannot be made here: {error}")
    rows = []
    for spec in specs:
        seen = ", ".join(f"{key} {_describe(space)}" for key, space in spec.observation_space.spaces.items())
        limit, action = str(spec.step_limit or "none"), _describe(spec.action_space)
        rows.append((spec.id, str(spec.seats), f"{spec.rate_hz:g}", limit, action, seen))
    print_table(("world", "seats", "rate_hz", "steps", "action", "observation"), rows)
    for spec in specs:
        if bot_names(spec):
            echo(f"\nbots of {spec.id}: {', '.join(bot_names(spec))}")


def _tell(spec: "EnvSpec") -> None:
    from ludus.config import PresetDirectory
    from ludus.envs.bots import bot_names
    from ludus.envs.world import find_world
    from ludus.envs.world_parts import reward_sets, scenarios_of
    from ludus.policies.shipped import agent_names
    from ludus.rewards.terms import terms_of

    world = spec.id
    lines = {
        "world": world,
        "events": ", ".join(spec.events),
        "state_metrics": ", ".join(spec.state_metrics),
        "bots": ", ".join(bot_names(spec)),
        "agents": ", ".join(agent_names(world)),
        "scenarios": ", ".join(scenarios_of(world)),
        "presets": ", ".join(PresetDirectory(find_world(world).package).names()),
    }
    for key, text in lines.items():
        echo(f"{key}: {text or 'none'}")
    for name, weights in reward_sets(world).items():
        echo(f"rewards {name}: " + ", ".join(f"{term} {weight}" for term, weight in weights.items()))
    terms = [(name, (term.__doc__ or "").strip().splitlines()[0]) for name, term in terms_of(spec.name).items()]
    if terms:
        echo()
        print_table(("reward term", "at weight 1"), terms)


def _describe(space: object) -> str:
    """Name a space in a few characters, such as `MultiBinary(10)`."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete({', '.join(str(n) for n in space.nvec.flat)})"
    shape = getattr(space, "shape", None) or ()
    return f"{type(space).__name__}({', '.join(str(size) for size in shape)})"
