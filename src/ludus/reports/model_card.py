"""The model card: what an agent is, how it was trained, what was measured of it and by which command, in Markdown.

Every number comes from the run's own files; what they do not say is called not measured.
"""

import hashlib
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.reports.run_data import CONFIG, RUN, RunData, Table, read_run

MISSING = "not measured"

_OUTCOMES = ("win_rate", "mean_return", "mean_length")
_TITLES = {"win_rate": "won", "mean_return": "mean return", "mean_length": "mean length in steps"}


@dataclass(frozen=True, slots=True)
class CardSubject:
    """The agent that a card is about.

    Attributes:
        title: What it is called.
        path: Its file, or whatever else people shall name to use it.
        sha256: Of that file; empty if it is no file.
        description: The policy's description as JSON: world, spaces, settings.
        parameters: How many numbers were learned.
        checkpoint: Of its run.
        env_steps: At which it was taken; None if nobody knows.
    """

    title: str
    path: str
    sha256: str
    description: Mapping[str, Any]
    parameters: int
    checkpoint: str
    env_steps: int | None


def run_folder_of(agent: Path) -> Path | None:
    """Returns the folder of the run that an agent's path belongs to; None if it lies alone."""
    for folder in (agent, agent.absolute().parent.parent):
        if (folder / RUN).is_file() and (folder / CONFIG).is_file():
            return folder
    return None


def write_model_card(subject: CardSubject, run_folder: Path | None) -> str:
    """Returns the card.

    Args:
        subject: The agent.
        run_folder: Of the run that it comes from; without one, nothing is known of training and results.

    Raises:
        ConfigError: The folder is no run folder.
    """
    run = None if run_folder is None else read_run(run_folder)
    evaluated = _evaluation(subject, run)
    sections = [
        f"# {subject.title}",
        f"An agent that plays `{subject.description['world']}`, trained with Ludus.",
        "## What it is\n\n" + _table(("", ""), _identity(subject)),
        "## Training\n\n" + _table(("", ""), _training(subject, run)),
        "## Results\n\n" + _results(subject, run, evaluated),
        f"## Use\n\n```sh\nludus eval {shlex.quote(subject.path)}\nludus demo {shlex.quote(subject.path)}\n```",
        "## Limitations\n\n" + "\n".join(f"- {line}" for line in _limitations(subject, run, evaluated)),
    ]
    return "\n\n".join(sections) + "\n"


def _identity(subject: CardSubject) -> list[tuple[str, str]]:
    said = subject.description
    entries = ", ".join(f"{name} {tuple(space['shape']) or ''}".strip() for name, space in said["observation_space"])
    settings = ", ".join(f"{name}={value}" for name, value in said["settings"].items())
    return [
        ("world", f"`{said['world']}`, {said['rate_hz']:g} decisions a second"),
        ("settings of the world", f"`{settings}`" if settings else "the world's own"),
        ("sees", entries),
        ("acts by", _actions(said["action_space"])),
        ("policy", _policy(said["config"])),
        ("parameters", f"{subject.parameters:,}"),
        ("file", f"`{subject.path}`" + (f", SHA-256 `{subject.sha256}`" if subject.sha256 else "")),
    ]


def _actions(space: Mapping[str, Any]) -> str:
    kinds = {"box": "continuous", "discrete": "one choice", "multi_discrete": "choices", "multi_binary": "buttons"}
    return f"{kinds[space['kind']]} {tuple(space['counts'] or space['shape'])}"


def _policy(config: Mapping[str, Any]) -> str:
    parts = []
    if config["strategy"]:
        strategy = config["strategy"]
        parts.append(f"{strategy['kind']} strategy encoder, {strategy['layers']} layers of {strategy['width']}, ")
    if config["recurrent"]:
        parts.append(f"{config['recurrent']['kind'].upper()} {config['recurrent']['size']}, ")
    hidden = "x".join(map(str, config["net_arch"]["pi"])) or "linear"
    return f"{''.join(parts)}actor {hidden}, {config['activation']}"


def _training(subject: CardSubject, run: RunData | None) -> list[tuple[str, str]]:
    steps = MISSING if subject.env_steps is None else f"{subject.env_steps:,}"
    rows = [("env steps of this agent", f"{steps} (checkpoint `{subject.checkpoint}`)")]
    if run is None:
        return [*rows, ("budget, time, seed, settings, hardware", f"{MISSING}: the agent came without its run")]
    sessions = [session for session in run.run.get("sessions", []) if isinstance(session, Mapping)]
    budget = run.setting("total_env_steps")
    config_file = run.folder / CONFIG
    digest = hashlib.sha256(config_file.read_bytes()).hexdigest() if config_file.is_file() else MISSING
    return [
        *rows,
        ("budget of the run", f"{budget:,} env steps" if isinstance(budget, int) else MISSING),
        ("training time of the run", _seconds(sessions)),
        ("algorithm", str(run.setting("algorithm", MISSING))),
        ("seed", str(run.setting("seed", MISSING))),
        (f"`{CONFIG}`, SHA-256", f"`{digest}`"),
        ("command", _each(sessions, lambda session: f"`{shlex.join(map(str, session['command']))}`")),
        ("hardware", _each(sessions, _machine) + f"; device `{run.setting('world.device', MISSING)}`"),
        ("versions", _each(sessions, lambda session: ", ".join(f"{k} {v}" for k, v in session["versions"].items()))),
        ("code", _each(sessions, _code)),
    ]


def _seconds(sessions: Sequence[Mapping[str, Any]]) -> str:
    known = [session["training_s"] for session in sessions if isinstance(session.get("training_s"), int | float)]
    if not known:
        return MISSING
    cut_off = len(sessions) - len(known)
    return f"{sum(known):,.1f} s" + (f", and {cut_off} sessions that were cut off, {MISSING}" if cut_off else "")


def _each(sessions: Sequence[Mapping[str, Any]], say: Any) -> str:  # noqa: ANN401 - a function of a session
    """Returns what the sessions of a run say, each different answer once."""
    said: dict[str, None] = {}
    for session in sessions:
        try:
            said[say(session)] = None
        except (KeyError, TypeError, AttributeError):
            said[MISSING] = None
    return "; ".join(said) or MISSING


def _machine(session: Mapping[str, Any]) -> str:
    return f"{session['machine']['system']}, {session['machine']['cores']} cores"


def _code(session: Mapping[str, Any]) -> str:
    git = session["git"]
    return f"commit `{git['commit']}`" + ("" if git["clean"] else " with changes")


def _evaluation(subject: CardSubject, run: RunData | None) -> Table | None:
    """Returns the rows of the evaluation of this very checkpoint, if there was one."""
    if run is None or subject.env_steps is None or not len(run.evaluations):
        return None
    rows = run.evaluations.rows(run.evaluations.numbers("env_steps") == subject.env_steps)
    return rows if len(rows) else None


def _results(subject: CardSubject, run: RunData | None, rows: Table | None) -> str:
    if run is None or rows is None:
        return f"{MISSING}: there is no evaluation of this checkpoint in the run's `evaluation_results.csv`."
    name = "trial" if "trial" in rows else "opponent"
    shown = [outcome for outcome in _OUTCOMES if outcome in rows]
    modal = [column for column in ("mode", "side") if column in rows]
    header = (name, *modal, "matches", *(f"{_TITLES[outcome]} (95 % interval)" for outcome in shown))
    cells = [
        (
            rows.texts(name)[row] or "alone",
            *(rows.texts(column)[row] for column in modal),
            rows.texts("matches")[row],
            *(_cell(rows, outcome, row) for outcome in shown),
        )
        for row in range(len(rows))
    ]
    return (
        f"{_table(header, cells)}\n\n"
        "These rows of `evaluation_results.csv` were measured in training, on games and seeds of their own. This "
        "measures them again: on a CPU, if the run was trained on one, it gives the same numbers, elsewhere such as "
        f"lie within the intervals.\n\n```sh\n{_command(subject, run)}\n```"
    )


def _cell(rows: Table, outcome: str, row: int) -> str:
    value, low, high = (float(rows.numbers(f"{outcome}{end}")[row]) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return MISSING
    form = ".1%" if outcome == "win_rate" else ".2f"
    ends = " to ".join(format(end, form) if math.isfinite(end) else MISSING for end in (low, high))
    return f"{value:{form}} ({ends})"


def _command(subject: CardSubject, run: RunData) -> str:
    """Returns the command that repeats the run's own evaluation."""
    if run.setting("evaluation.trials") == []:  # the world as the run had it, without any trial
        options = {name: run.setting(f"evaluation.{name}") for name in ("matches", "seed", "deterministic")}
        said = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return shlex.join(
            ["python", "-c", f"import ludus; print(ludus.evaluate({subject.path!r}, trials=[], {said}).rows)"]
        )
    words = ["ludus", "eval", subject.path]
    for option, key in (("--against", "opponents"), ("--trial", "trials")):
        for name in run.setting(f"evaluation.{key}") or ():
            words += [option, str(name)]
    words += ["--matches", str(run.setting("evaluation.matches")), "--seed", str(run.setting("evaluation.seed"))]
    words += ["--deterministic"] if run.setting("evaluation.deterministic") else []
    return shlex.join(words)


def _limitations(subject: CardSubject, run: RunData | None, rows: Table | None) -> list[str]:
    world = subject.description["world"]
    lines = [f"It fits `{world}` with these observations and actions alone; another version of the world refuses it."]
    if rows is None:
        lines.append("Nothing is known of its strength: measure it with the command above before relying on it.")
    else:
        met = rows.texts("trial" if "trial" in rows else "opponent").tolist()
        against = ", ".join(dict.fromkeys(name for name in met if name))
        lines.append(f"It was measured {f'with {against}' if against else 'alone'}, and nowhere else.")
    if run is not None:
        lines.append(f"It is one run with seed {run.setting('seed', MISSING)}: other seeds may do better or worse.")
    drawn = run is not None and rows is not None and not run.setting("evaluation.deterministic")
    if drawn:
        lines.append("The numbers are those of drawn actions; the most likely ones (`--deterministic`) may differ.")
    return lines


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
