"""One page per example: the files of `examples/`, shown as they are."""

import ast
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
_LANGUAGES = {".py": "python", ".xml": "xml", ".toml": "toml", ".yaml": "yaml", ".md": "markdown"}


def example_pages() -> dict[str, str]:
    """Return all pages by their path inside the site's source: `examples/own_bot.md`."""
    pages = {f"examples/{file.stem}.md": _page(file) for file in sorted(EXAMPLES.glob("*.py"))}
    pages["examples/own_body_xml.md"] = f"# own_body.xml\n\n{_shown(EXAMPLES / 'own_body.xml')}\n"
    package = EXAMPLES / "own_world"
    files = [file for file in sorted(package.rglob("*")) if file.suffix in _LANGUAGES]
    shown = [f"## {file.relative_to(package)}\n\n{_shown(file)}" for file in files]
    pages["examples/own_world_package.md"] = (
        "# The package own_world\n\nA world in a package of its own, found through an entry point.\n\n"
        + "\n\n".join(shown)
        + "\n"
    )
    return pages


def page_of(target: str) -> str:
    """Return the page of a path below the repository, such as `examples/own_bot.py`."""
    name = target.removeprefix("examples/").rstrip("/")
    special = {"own_body.xml": "own_body_xml", "own_world": "own_world_package"}
    return f"examples/{special.get(name, name.removesuffix('.py'))}.md"


def _page(file: Path) -> str:
    about = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = about.strip().splitlines()[0] if about.strip() else ""
    return f"# {file.name}\n\n{first}\n\n```sh\npython examples/{file.name}\n```\n\n{_shown(file)}\n"


def _shown(file: Path) -> str:
    return f"````{_LANGUAGES[file.suffix]}\n{file.read_text(encoding='utf-8').rstrip()}\n````"
