"""Rocket's own command `ludus rocket rlbot`: an agent as a bot for RLBot v5."""

from pathlib import Path
from typing import Annotated

import typer

from ludus.cli.console import print_json, print_ok
from ludus.cli.options import AgentName, AsJson, Plugin, latest_run, load_plugins


def rlbot(
    agent: AgentName = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder to write.", show_default="NAME-rlbot")
    ] = None,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Write an agent of rocket as a bot for RLBot v5, for offline play."""
    from ludus.evaluation.players import short_name
    from ludus.worlds.rocket.rlbot.folder import export_rlbot

    load_plugins(plugin)
    agent = agent or latest_run()
    target = folder or Path(f"{short_name(agent).replace('/', '-')}-rlbot")
    bot = export_rlbot(agent, target, plugin or ())
    if json:
        file = {"file": str(bot.exported.path), "bytes": bot.exported.size_bytes, "sha256": bot.exported.sha256}
        print_json({"folder": str(bot.path), "packets": bot.tested.packets, "actions": bot.tested.actions} | file)
        return
    print_ok(
        f"{bot.path}: a bot for RLBot v5, offline; {bot.tested.packets} packets replayed, "
        f"{bot.tested.decisions} observations and {bot.tested.actions} actions equal; see {bot.path}/README.md"
    )
