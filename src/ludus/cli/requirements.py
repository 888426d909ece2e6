"""Compares the versions of Python and of all libraries with what the package asks for."""

import platform
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import ludus

_PACKAGE = "ludus"
_DEVELOPMENT = "dev"  # the extra of those who change Ludus


@dataclass(frozen=True, slots=True)
class Check:
    """What one look gave.

    Attributes:
        name: Of what was looked at.
        level: OK; WARN if something optional or a convenience is missing; ERROR if training will fail.
        text: What was found, and what to do about it.
    """

    name: str
    level: Literal["OK", "WARN", "ERROR"]
    text: str

    def as_json(self) -> dict[str, Any]:
        """Returns it as JSON."""
        return asdict(self)


def check_versions() -> Iterator[Check]:
    """Compares Python and all libraries with what the package asks for."""
    asked = read_asked()
    if asked is None:
        yield Check("versions", "WARN", f"{_PACKAGE} is not installed as a package; use: pip install -e .")
        return
    here = platform.python_version()
    yield _judge("Python", here, asked.python, missing="ERROR", install="install a Python of that version")
    for requirement in asked.libraries:
        yield check_requirement(requirement)
    for extra, requirements in asked.extras.items():
        for requirement in requirements:
            yield check_requirement(requirement, extra)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the package asks for.

    Attributes:
        python: Versions of Python.
        libraries: What it cannot do without.
        extras: Name of an extra -> what that needs.
    """

    python: SpecifierSet
    libraries: tuple[Requirement, ...]
    extras: Mapping[str, tuple[Requirement, ...]]


def read_asked() -> Asked | None:
    """Reads what is asked for: from `pyproject.toml` in a checkout, else from the installed package's description."""
    file = Path(ludus.__file__).parents[2] / "pyproject.toml"
    if file.is_file():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        if project["name"] == _PACKAGE:
            extras = {name: _requirements(lines) for name, lines in project["optional-dependencies"].items()}
            extras.pop(_DEVELOPMENT, None)
            return Asked(SpecifierSet(project["requires-python"]), _requirements(project["dependencies"]), extras)
    try:
        description, lines = metadata(_PACKAGE), requires(_PACKAGE) or []
    except PackageNotFoundError:
        return None
    names = [name for name in description.get_all("Provides-Extra") or () if name != _DEVELOPMENT]
    # A line of an extra ends with its condition: `wandb>=0.20; extra == "wandb"`.
    extras = {name: _requirements(line for line in lines if f'extra == "{name}"' in line) for name in names}
    core = _requirements(line for line in lines if "extra ==" not in line)
    return Asked(SpecifierSet(description["Requires-Python"] or ""), core, extras)


def _requirements(lines: Iterable[str]) -> tuple[Requirement, ...]:
    found = (Requirement(line) for line in lines)
    return tuple(requirement for requirement in found if requirement.name != _PACKAGE)


def check_requirement(requirement: Requirement, extra: str = "") -> Check:
    """Compares one library with what is asked for; one of an extra may be missing."""
    try:
        here = version(requirement.name)
    except PackageNotFoundError:
        here = ""
    install = (
        f'pip install "{_PACKAGE}[{extra}]"' if extra else f'pip install "{requirement.name}{requirement.specifier}"'
    )
    name = f"{requirement.name} (extra {extra})" if extra else requirement.name
    return _judge(name, here, requirement.specifier, missing="WARN" if extra else "ERROR", install=install)


def _judge(name: str, here: str, asked: SpecifierSet, *, missing: Literal["WARN", "ERROR"], install: str) -> Check:
    if not here:
        return Check(name, missing, f"not installed; use: {install}")
    if not asked.contains(here, prereleases=True):
        return Check(name, "ERROR", f"{here}, but {asked} is needed; use: {install}")
    return Check(name, "OK", f"{here} (needed: {asked or 'any'})")
