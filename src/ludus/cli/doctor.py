"""`ludus doctor`: name what is wrong with a run, or with the installation."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from ludus.cli.console import echo, print_json, print_table
from ludus.cli.options import RunFolder, find_latest
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.reports.doctor import Examination, Finding

EXIT_FOUND = 1


def doctor(
    run: RunFolder = None,
    installation: Annotated[
        bool, Option("--installation", help="Check the installation instead; also done if there is no run yet.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print a list of findings, or of checks, as JSON.")] = False,
) -> None:
    """Name what is wrong with a run and the setting to change, or check the installation.

    Exit code 0: nothing found. 1: something is wrong. 2: there is no such run.
    """
    if installation and run is not None:
        raise ConfigError(f"--installation examines no run; leave {run} or --installation out")
    folder = None if installation else run or find_latest()
    found = _check_installation(as_json) if folder is None else examine_run(Path(folder), as_json)
    if found:
        raise Exit(EXIT_FOUND)


def examine_run(run: Path, as_json: bool = False) -> bool:
    """Print what is wrong with a run; return whether anything is."""
    from ludus.reports.doctor import examine
    from ludus.reports.run_data import read_run

    data = read_run(run)
    examination = examine(data)
    if as_json:
        print_json(examination.as_json())
    else:
        _show(run, str(data.setting("world.name", "")), examination)
    return bool(examination.findings)


def _show(run: Path, world: str, examination: "Examination") -> None:
    for name, finding in examination.findings:
        _show_finding(name, finding)
        if finding.changes and world:
            echo(f"       try: ludus train {world} --config {run}/config.yaml {finding.overrides()}")
    healthy, unknown = examination.healthy, examination.unknown
    if healthy:
        echo(f"[OK] no sign of {', '.join(healthy)}")
    if unknown:
        echo("[OK] too little to judge by:")
        print_table(("  diagnosis", "what is missing"), [(f"  {name}", reason) for name, reason in unknown.items()])
    count = len(examination.findings)
    echo(f"[OK] {run}: nothing found" if not count else f"[WARN] {run}: {count} found")


def _show_finding(name: str, finding: "Finding") -> None:
    lines = [f"[WARN] {name}: {finding.what}"]
    lines += [f"       evidence: {text}" for text in finding.evidence]
    lines += [f"       remedy: {finding.remedy}"]
    lines += [f"       change: {change.line}" for change in finding.changes]
    echo("\n".join(lines))


def _check_installation(as_json: bool) -> bool:
    from ludus.cli.installation import check_installation

    checks = list(check_installation(Path.cwd()))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            echo(f"{f'[{check.level}]':7} {check.name}: {check.text}")
        counts = Counter(check.level for check in checks)
        echo(f"{counts['OK']} ok, {counts['WARN']} warnings, {counts['ERROR']} errors")
    return any(check.level == "ERROR" for check in checks)
