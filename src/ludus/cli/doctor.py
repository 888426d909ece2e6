"""`ludus doctor`: names what is wrong with a run, or with the installation."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ludus.cli.console import print_table

if TYPE_CHECKING:
    from ludus.reports.doctor import Examination, Finding

EXIT_FOUND = 1


def doctor(
    run: Annotated[
        Path | None, typer.Argument(help="Run folder to examine; without one the installation is checked.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of findings, or of checks, as JSON.")] = False,
) -> None:
    """Name what is wrong with a run and the setting to change, or check the installation.

    Exit code 0: nothing found. 1: something is wrong. 2: there is no such run.
    """
    found = _check_installation(as_json) if run is None else _examine(run, as_json)
    if found:
        raise typer.Exit(EXIT_FOUND)


def _examine(run: Path, as_json: bool) -> bool:
    from ludus.reports.doctor import examine
    from ludus.reports.run_data import read_run

    data = read_run(run)
    examination = examine(data)
    if as_json:
        typer.echo(json.dumps(examination.as_json(), indent=2))
    else:
        _show(run, str(data.setting("world.name", "")), examination)
    return bool(examination.findings)


def _show(run: Path, world: str, examination: "Examination") -> None:
    for name, finding in examination.findings:
        _show_finding(name, finding)
        if finding.changes and world:
            typer.echo(_plain(f"       try: ludus train {world} --config {run}/config.yaml {finding.overrides()}"))
    healthy, unknown = examination.healthy, examination.unknown
    if healthy:
        typer.echo(f"[OK] no sign of {', '.join(healthy)}")
    if unknown:
        typer.echo("[OK] too little to judge by:")
        print_table(("  diagnosis", "what is missing"), [(f"  {name}", reason) for name, reason in unknown.items()])
    count = len(examination.findings)
    typer.echo(f"[OK] {run}: nothing found" if not count else f"[WARN] {run}: {count} found")


def _show_finding(name: str, finding: "Finding") -> None:
    lines = [f"[WARN] {name}: {finding.what}"]
    lines += [f"       evidence: {text}" for text in finding.evidence]
    lines += [f"       remedy: {finding.remedy}"]
    lines += [f"       change: {change.line}" for change in finding.changes]
    typer.echo(_plain("\n".join(lines)))


def _check_installation(as_json: bool) -> bool:
    from ludus.cli.installation import check_installation

    checks = list(check_installation(Path.cwd()))
    if as_json:
        typer.echo(json.dumps([check.as_json() for check in checks], indent=2))
    else:
        for check in checks:
            typer.echo(_plain(f"{f'[{check.level}]':7} {check.name}: {check.text}"))
        counts = Counter(check.level for check in checks)
        typer.echo(f"{counts['OK']} fine, {counts['WARN']} to know of, {counts['ERROR']} to mend")
    return any(check.level == "ERROR" for check in checks)


def _plain(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
