"""`ludus share`: one HTML file in which anyone plays against an agent."""

from pathlib import Path
from typing import Annotated

from typer import Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import print_json, print_ok, print_warning
from ludus.cli.options import AgentName, AsJson, Names, Plugin, latest_run, load_plugins


def share(
    agent: AgentName = None,
    out: Annotated[Path | None, Option(help="Page to write, ending in .html.", show_default="NAME.html")] = None,
    against: Annotated[
        Names,
        Option(
            help="Another agent to choose as opponent: name, folder or file; may be repeated. All bots are included.",
            autocompletion=complete_agent,
        ),
    ] = None,
    snapshots: Annotated[
        int, Option(min=0, max=20, help="Earlier selves of the agent's run to choose as easier opponents.")
    ] = 4,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the page if it exists.")] = False,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Write one HTML file in which anyone plays against the agent: in any browser, without a server."""
    load_plugins(plugin)
    from ludus.evaluation.players import short_name
    from ludus.share.page import PAGE_SUFFIX, share_agent

    agent = agent or latest_run()
    file = out or Path(short_name(agent).replace("/", "-") + PAGE_SUFFIX)
    page = share_agent(agent, file, against=against or (), snapshots=snapshots, overwrite=overwrite)
    for name in page.left_out:
        print_warning(f"the earlier self {name} is left out: the page would be too large")
    if json:
        print_json(page.describe())
        return
    agents = sum(bool(player.data) for player in page.players)
    bots = len(page.players) - agents
    said = f"{agents} agent{'s' if agents > 1 else ''} {f'and {bots} bots to play against' if bots else 'to watch'}"
    print_ok(f"{page.file} ({page.size_bytes / 1e6:.2f} MB): {page.world}, {said}; open it in a browser")
