"""`ludus envs`: lists the worlds."""

import typer

from ludus.cli.console import print_table, print_warning
from ludus.core.errors import LudusError


def envs() -> None:
    """List the worlds with their seats, rate, sizes and bots."""
    from ludus.envs.base import EnvSpec
    from ludus.envs.registry import make_env, registered_envs

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


def _describe(space: object) -> str:
    """Names a space in a few characters, such as `MultiBinary(10)`."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete({', '.join(str(n) for n in space.nvec.flat)})"
    shape = getattr(space, "shape", None) or ()
    return f"{type(space).__name__}({', '.join(str(size) for size in shape)})"
