"""The distribution that holds the package: its name, what it requires, and how to install one of its extras.

The package and the command are called `ludus`; on PyPI that name belongs to an unrelated library. So no command
that is printed may install Ludus by name: in a checkout it names the folder, elsewhere the libraries themselves.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

DISTRIBUTION = "ludus-rl"

_DEVELOPMENT = "dev"  # the extra for those who change Ludus


@dataclass(frozen=True, slots=True)
class Required:
    """What the package requires."""

    python: SpecifierSet  # versions of Python
    libraries: tuple[Requirement, ...]  # libraries that it cannot do without
    extras: Mapping[str, tuple[Requirement, ...]]  # name of an extra -> libraries that it needs


def read_required() -> Required | None:
    """Read the requirements from `pyproject.toml` in a checkout, else from the metadata; None without either."""
    project = _read_project(_root())
    if project is not None:
        extras = {name: _requirements(lines) for name, lines in project["optional-dependencies"].items()}
        extras.pop(_DEVELOPMENT, None)
        return Required(SpecifierSet(project["requires-python"]), _requirements(project["dependencies"]), extras)
    try:
        description, lines = metadata(DISTRIBUTION), requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return None
    names = [name for name in description.get_all("Provides-Extra") or () if name != _DEVELOPMENT]
    # A line of an extra ends with its condition: `wandb>=0.20; extra == "wandb"`.
    extras = {name: _requirements(line for line in lines if f'extra == "{name}"' in line) for name in names}
    core = _requirements(line for line in lines if "extra ==" not in line)
    return Required(SpecifierSet(description["Requires-Python"] or ""), core, extras)


def install_command(extra: str) -> str:
    """Return the command that installs an extra here."""
    root = _root()
    if _read_project(root) is not None:
        return f'pip install -e "{"." if root == Path.cwd() else root}[{extra}]"'
    required = read_required()
    libraries = required.extras.get(extra, ()) if required is not None else ()
    return " ".join(["pip install", *(f'"{library.name}{library.specifier}"' for library in libraries)])


def _root() -> Path:
    return Path(__file__).parents[3]


def _read_project(root: Path) -> Mapping[str, Any] | None:
    """Return the table `project` of the checkout's `pyproject.toml`; None outside a checkout."""
    file = root / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}) if file.is_file() else {}
    return project if project.get("name") == DISTRIBUTION else None


def _requirements(lines: Iterable[str]) -> tuple[Requirement, ...]:
    found = (Requirement(line) for line in lines)
    return tuple(requirement for requirement in found if requirement.name != DISTRIBUTION)
