"""`ludus agents`: the agents that come with Ludus, or the model card of one."""

from typing import Annotated, Any

from typer import Argument

from ludus.cli.completion import complete_agent_name
from ludus.cli.console import echo, print_json, print_ok, print_table
from ludus.cli.options import AsJson


def agents(
    name: Annotated[
        str | None, Argument(help="Print the model card of this agent.", autocompletion=complete_agent_name)
    ] = None,
    json: AsJson = False,
) -> None:
    """List the agents that come with Ludus, with their measured strength; or print the model card of one."""
    from ludus.policies.shipped import agent_card, agent_names

    if name is not None:
        facts = _facts(name)
        card = agent_card(name)
        if json:
            print_json(facts | {"card": card})
            return
        for key, value in facts.items():
            echo(f"{key}: {value}")
        echo(f"\n{card.rstrip()}")
        return
    listed = [_facts(each) for each in agent_names()]
    if json:
        print_json({"agents": listed})
        return
    rows = [
        (each["name"], each["world"], each["summary"], each["result"], f"{each['bytes'] / 1e3:.0f} kB", each["command"])
        for each in listed
    ]
    print_table(("name", "world", "what it is", "measured", "size", "trained with"), rows)
    print_ok(f"{len(rows)} agents; use a name wherever a command takes an agent: ludus demo NAME")


def _facts(name: str) -> dict[str, Any]:
    """Return what is known of an agent, as JSON values."""
    from ludus.policies.shipped import agent_path, describe_agent

    path = agent_path(name)
    return {"name": name, **describe_agent(name).model_dump(), "bytes": path.stat().st_size, "path": str(path)}
