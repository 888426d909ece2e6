"""Options that several commands share, so that they are named, bounded and explained alike; plugins; the newest run."""

import math
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, BadParameter, Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import echo
from ludus.core.errors import ConfigError
from ludus.core.files import LATEST, RUNS_FOLDER

if TYPE_CHECKING:
    from ludus.policies.agent import Agent
    from ludus.training.callbacks import BaseCallback

Names = list[str] | None  # of an option or argument that may be repeated
ONE_BOT = "one of the world's bots"  # who plays if no one is named
AgentName = Annotated[
    str | None,
    Argument(
        help="Run folder (its best agent), checkpoint, exported file, or name of a shipped agent.",
        show_default="runs/latest",
        autocompletion=complete_agent,
    ),
]
RunFolder = Annotated[str | None, Argument(help="Run folder.", show_default="runs/latest")]
Seed = Annotated[int, Option(min=0, help="Seed of all matches.")]
Device = Annotated[str, Option(help="Device: auto, cpu, cuda or cuda:N.")]
Games = Annotated[int, Option(min=1, help="Most games in one batch.")]
OnRay = Annotated[
    bool, Option("--ray", help="Spread the batches over workers on Ray; the results are those of one process.")
]
Address = Annotated[str | None, Option(help="With --ray: address of a Ray cluster; this machine alone by default.")]
Deterministic = Annotated[
    bool, Option("--deterministic", help="Agents take their most likely action instead of drawing one.")
]
View = Annotated[
    str | None, Option(help="Camera view, in a world that has several; rocket: top, side, chase, ball, chase-2 ...")
]
Fps = Annotated[
    float, Option(min=1, max=120, help="Frames per second of a video, if the world can be drawn that often.")
]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]

Plugin = Annotated[
    Names,
    Option(
        help="Your own Python file or module with bots, networks, reward terms, worlds or environments; it is executed."
    ),
]


Callback = Annotated[
    Names,
    Option(
        "--callback",
        metavar="FILE:CLASS",
        help="Your own callback, such as my_file.py:MyCallback; may be repeated; the file is executed.",
    ),
]


def refuse_infinite(command: Any) -> None:  # noqa: ANN401 - Click's, which Typer may hold inside
    """Let a command and those below it refuse numbers that are not finite: NaN passes any bounds, and breaks much."""
    for parameter in command.params:
        parameter.callback = _finite(parameter.callback)
    for below in getattr(command, "commands", {}).values():
        refuse_infinite(below)


def _finite(then: Callable[..., Any] | None) -> Callable[..., Any]:
    def check(ctx: Any, param: Any, value: Any) -> Any:  # noqa: ANN401
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, float) and not math.isfinite(each):
                raise BadParameter(f"{each} is not a finite number.", ctx=ctx, param=param)
        return value if then is None else then(ctx, param, value)

    return check


def find_latest() -> Path | None:
    """Return the link to the newest run, and print it to stderr; None if there is no run yet."""
    from ludus.config import read_user_defaults

    link = (read_user_defaults().runs_folder or RUNS_FOLDER) / LATEST
    if not link.is_dir():
        return None
    echo(f"[OK] no run is named: using {link} ({link.resolve().name})", err=True)
    return link


def latest_run() -> str:
    """Return the link to the newest run, and print it to stderr.

    Raises:
        ConfigError: There is no run yet.
    """
    link = find_latest()
    if link is None:
        raise ConfigError(
            f"no run is named, and there is no {RUNS_FOLDER / LATEST} here; name the folder of a run or an agent "
            "that `ludus agents` lists, or train one: ludus train brawl"
        )
    return str(link)


def load_agent_on(agent: str | None, device: str) -> "tuple[str, Agent, str]":
    """Load an agent, by default that of the newest run; return its name, the agent, and the device it is on."""
    import torch

    from ludus.envs.registry import AUTO, place_for
    from ludus.evaluation.players import load_playable_agent

    agent = agent or latest_run()
    # First where it is likely to stay: a network of the user's own may run on a GPU alone.
    is_cuda = torch.cuda.is_available() and (device == AUTO or device.startswith("cuda"))
    first = device.replace(AUTO, "cuda") if is_cuda else "cpu"
    loaded = load_playable_agent(agent, first)
    place = place_for(device, loaded.spec.id)
    return agent, loaded if place == first else load_playable_agent(agent, place), place


def load_plugins(plugins: list[str] | None, world: str = "") -> str:
    """Load what the user has typed, in order: plugins, and the module of a world such as `gym:module:ID`.

    Returns:
        The options that load the same in another command, each after a space.
    """
    from ludus.rewards.plugins import load_plugin

    named = list(plugins or ())
    if ":" in world:
        from ludus.envs.registry import imported_module  # imports torch, which other commands do without

        named += filter(None, [imported_module(world)])
    if named:
        _find_modules_here()
    for plugin in named:
        load_plugin(plugin)
    return "".join(f" --plugin {shlex.quote(plugin)}" for plugin in named)


def plugin_paths(plugins: list[str] | None) -> list[str]:
    """Return plugins as other processes find them: files by their whole paths."""
    return [str(Path(each).resolve()) if Path(each).is_file() else each for each in plugins or ()]


def check_address(address: str | None, on_ray: bool) -> None:
    """Raise ConfigError if an address is given to a command that does not use Ray."""
    if address is not None and not on_ray:
        raise ConfigError(f"--address {address} is that of a Ray cluster: add --ray, or leave it out")


def _find_modules_here() -> None:
    """Let modules in the current folder be imported."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last, so that no file that happens to lie here replaces an installed module


class Loaded(NamedTuple):
    """What a command that trains was given to load."""

    callbacks: "list[BaseCallback]"
    plugins: str  # the options that load the same plugins in another command, each after a space
    all: str  # the same with the callbacks, for a command that trains too


def load_for_training(plugins: list[str] | None, callbacks: list[str] | None, world: str = "") -> Loaded:
    """Load plugins as `load_plugins` does, and make the callbacks that the user has typed; see `make_callback`."""
    options = load_plugins(plugins, world)
    if not callbacks:
        return Loaded([], options, options)
    from ludus.training.callbacks import make_callback

    _find_modules_here()
    made = [*map(make_callback, callbacks)]
    return Loaded(made, options, options + "".join(f" --callback {shlex.quote(name)}" for name in callbacks))
