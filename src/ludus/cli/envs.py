"""`ludus envs`: lists the worlds, or tells everything about one."""

from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import print_table, print_warning
from ludus.core.errors import LudusError

if TYPE_CHECKING:
    from ludus.envs.base import EnvSpec


def envs(world: Annotated[str | None, typer.Argument(help="Tell everything about this world.")] = None) -> None:
    """List the worlds with their seats, rate, sizes and bots; or the events, rewards and presets of one."""
    from ludus.envs.registry import make_env, registered_envs

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
    rows = [
        (
            spec.id,
            str(spec.seats),
            f"{spec.rate_hz:g}",
            str(spec.step_limit or "none"),
            _describe(spec.action_space),
            ", ".join(f"{key} {_describe(space)}" for key, space in spec.observation_space.spaces.items()),
        )
        for spec in specs
    ]
    print_table(("world", "seats", "rate_hz", "steps", "action", "observation"), rows)
    for spec in specs:
        if spec.bots:
            typer.echo(f"\nbots of {spec.id}: {', '.join(spec.bots)}")


def _tell(spec: "EnvSpec") -> None:
    from ludus.config import Shelf
    from ludus.envs.registry import preset_package
    from ludus.envs.reward_sets import reward_sets
    from ludus.envs.trials import trials_of
    from ludus.rewards.terms import terms_of

    world = f"{spec.name}-v{spec.version}" if not spec.name.startswith("gym:") else spec.name
    sets = reward_sets(world)
    lines = {
        "world": spec.id,
        "events": ", ".join(spec.events),
        "measures": ", ".join(spec.measures),
        "bots": ", ".join(spec.bots),
        "trials": ", ".join(trials_of(world)),
        "presets": ", ".join(Shelf(preset_package(world)).names()),
    }
    for key, text in lines.items():
        typer.echo(f"{key}: {text or 'none'}")
    for name, weights in sets.items():
        typer.echo(f"rewards {name}: " + ", ".join(f"{term} {weight}" for term, weight in weights.items()))
    terms = [(name, (term.__doc__ or "").strip().splitlines()[0]) for name, term in terms_of(spec.name).items()]
    if terms:
        typer.echo("")
        print_table(("reward term", "at weight 1"), terms)


def _describe(space: object) -> str:
    """Names a space in a few characters, such as `MultiBinary(10)`."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete({', '.join(str(n) for n in space.nvec.flat)})"
    shape = getattr(space, "shape", None) or ()
    return f"{type(space).__name__}({', '.join(str(size) for size in shape)})"
