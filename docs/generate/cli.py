"""The command reference: every command, argument and option, read from the Typer application itself."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from docs.generate.markdown import code, plain, table
from typer import Context

from ludus.cli.main import command_line

_HEAD = """# Command line

Generated from the commands themselves: `ludus COMMAND --help` prints the same. Settings of a run are `key=value`
arguments and go through [the same schema](configuration.md) as a file. A command that expects a run or an agent takes
`runs/latest` if you name none; an agent may also be the name of a [shipped one](../howto/shipped-agents.md). Exit
codes: 0 success, 1 a check failed or a defect, 2 a wrong argument or setting, 3 a run stopped by a limit, 130 and 143
interrupted.
"""
_SKIPPED = {"--help", "--install-completion", "--show-completion"}


def cli_page() -> str:
    """Return the page: an overview by group, then one section per command."""
    root = command_line()
    listed = list(_commands(root, "ludus"))
    groups: dict[str, list[tuple[str, str]]] = {}
    for path, command in listed:
        if path.count(" ") == 1:
            panel = getattr(command, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Other"
            link = f"[`{path}`](#{_anchor(path)})"
            groups.setdefault(title, []).append((link, plain(command.get_short_help_str(1000))))
    parts = [_HEAD]
    parts += [f"**{title}**\n\n{table(('command', 'what it does'), rows)}" for title, rows in groups.items()]
    parts += [_section(path, command) for path, command in listed]
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - Click's, which Typer may hold inside
    """Yield every command below one, with its path; a group comes before its own commands."""
    for name, inner in getattr(command, "commands", {}).items():
        if inner.hidden:
            continue
        yield f"{path} {name}", inner
        yield from _commands(inner, f"{path} {name}")


def _section(path: str, command: Any) -> str:  # noqa: ANN401 - as above
    level = "##" if path.count(" ") == 1 else "###"
    title = path.removeprefix("ludus ")
    parts = [f"{level} {title} {{ #{_anchor(path)} }}", _help(command.help or "")]
    if getattr(command, "commands", None):
        return "\n\n".join(parts)
    context = Context(command, info_name=path)
    parts.append(f"```text\n{path} {_usage(context, command)}\n```")
    for kind, header in (("argument", "argument"), ("option", "option")):
        rows = [_row(context, parameter) for parameter in command.params if _kind(parameter) == kind]
        if rows:
            parts.append(table((header, "meaning", "default"), rows))
    shown = _examples(command.epilog or "")
    if shown:
        parts.append(f"```sh\n{shown}\n```")
    return "\n\n".join(parts)


def _kind(parameter: Any) -> str:  # noqa: ANN401 - as above
    return "" if parameter.opts[0] in _SKIPPED or getattr(parameter, "hidden", False) else parameter.param_type_name


def _usage(context: Any, command: Any) -> str:  # noqa: ANN401 - as above
    return " ".join(command.collect_usage_pieces(context))


def _row(context: Any, parameter: Any) -> tuple[str, str, str]:  # noqa: ANN401 - as above
    """Return what the help of a command says: name, meaning and default."""
    name, said = parameter.get_help_record(context)
    meaning, _, rest = said.partition("  [")
    found = re.search(r"default: (.*?)(?:;|\]$|$)", rest)
    return code(name.replace("|", " or ")), plain(meaning), _plain_default(found[1]) if found else ""


def _plain_default(text: str) -> str:
    text = text.strip()
    is_described = text.startswith("(") and text.endswith(")")
    return text[1:-1] if is_described else code(text)


def _help(text: str) -> str:
    """Return a help text as paragraphs."""
    cleaned = inspect.cleandoc(text.replace("\b", ""))
    return "\n\n".join(plain(part) for part in cleaned.split("\n\n"))


def _examples(epilog: str) -> str:
    """Return the examples, a command per line, with what they show as a comment."""
    lines = [line.strip() for line in epilog.splitlines() if line.strip().startswith("ludus ")]
    split = [line.partition("  ") for line in lines]
    width = max((len(command) for command, _, _ in split), default=0)
    return "\n".join(f"{command:<{width}}  # {said.strip()}" if said.strip() else command for command, _, said in split)


def _anchor(path: str) -> str:
    return path.replace(" ", "-")
