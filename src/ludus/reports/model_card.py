"""The model card in Markdown: what an agent is, how it was trained, its results and how to reproduce them.

Every number comes from the run's own files; what is not in them is called not measured. Names and texts of files are
escaped, and cut where they are long or many.
"""

import hashlib
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.core.files import MAX_DOCUMENT_BYTES, read_if_possible
from ludus.core.tables import Table
from ludus.core.text import markdown_code, markdown_text, plain_text, short_text
from ludus.reports.run_data import CONFIG, RUN, RunData, read_run

MISSING = "not measured"

_MOST_LISTED = 40  # names in a sentence
_MOST_ROWS = 100  # of the results
_LONGEST_LINE = 2000  # letters of a command, or of all settings
_OUTCOMES = ("win_rate", "mean_return", "mean_length")
_TITLES = {"win_rate": "won", "mean_return": "mean return", "mean_length": "mean length in steps"}


@dataclass(frozen=True, slots=True)
class CardSubject:
    """The agent that a card is about."""

    title: str
    path: str  # its file, or the path by which it is used
    sha256: str  # hash of that file; empty if it is not a file
    description: Mapping[str, Any]  # the policy's description as JSON: world, spaces, settings
    parameters: int
    checkpoint: str  # checkpoint of its run
    env_steps: int | None  # env steps at that checkpoint; None if unknown


def run_folder_of(agent: Path) -> Path | None:
    """Return the folder of the run that an agent's path belongs to; None if there is none."""
    for folder in (agent, agent.absolute().parent.parent):
        if (folder / RUN).is_file() and (folder / CONFIG).is_file():
            return folder
    return None


def write_model_card(subject: CardSubject, run_folder: Path | None) -> str:
    """Return the card of an agent; without the folder of its run, training and results are unknown.

    Raises:
        ConfigError: The folder is not a run folder.
    """
    run = None if run_folder is None else read_run(run_folder)
    evaluated = _evaluation(subject, run)
    sections = [
        f"# {markdown_text(subject.title)}",
        f"An agent that plays {markdown_code(subject.description['world'])}, trained with Ludus.",
        "## What it is\n\n" + _table(("", ""), _identity(subject)),
        "## Training\n\n" + _table(("", ""), _training(subject, run)),
        "## Results\n\n" + _results(subject, run, evaluated),
        f"## Use\n\n{_shell(['ludus', 'eval', subject.path], ['ludus', 'demo', subject.path])}",
        "## Limitations\n\n" + "\n".join(f"- {line}" for line in _limitations(subject, run, evaluated)),
    ]
    return "\n\n".join(sections) + "\n"


def _identity(subject: CardSubject) -> list[tuple[str, str]]:
    said = subject.description
    entries = [f"{name} {tuple(space['shape']) or ''}".strip() for name, space in said["observation_space"]]
    settings = ", ".join(f"{short_text(name)}={short_text(str(value))}" for name, value in said["settings"].items())
    return [
        ("world", f"{markdown_code(said['world'])}, {said['rate_hz']:g} decisions per second"),
        ("settings of the world", markdown_code(settings, _LONGEST_LINE) if settings else "defaults"),
        ("observations", _listed(entries)),
        ("actions", _actions(said["action_space"])),
        ("policy", _policy(said["config"])),
        ("parameters", f"{subject.parameters:,}"),
        ("file", markdown_code(subject.path) + (f", SHA-256 `{subject.sha256}`" if subject.sha256 else "")),
    ]


def _actions(space: Mapping[str, Any]) -> str:
    kinds = {"box": "continuous", "discrete": "one choice", "multi_discrete": "choices", "multi_binary": "buttons"}
    return f"{kinds[space['kind']]} {tuple(space['counts'] or space['shape'])}"


def _policy(config: Mapping[str, Any]) -> str:
    parts = [f"network {markdown_code(config['module'])} (needs its plugin), "] if config.get("module") else []
    if config["strategy"]:
        strategy = config["strategy"]
        parts.append(f"{strategy['kind']} strategy encoder, {strategy['layers']} layers of {strategy['width']}, ")
    if config["recurrent"]:
        parts.append(f"{config['recurrent']['kind'].upper()} {config['recurrent']['size']}, ")
    hidden = "x".join(map(str, config["net_arch"]["pi"])) or "linear"
    return f"{''.join(parts)}actor {hidden}, {config['activation']}"


def _training(subject: CardSubject, run: RunData | None) -> list[tuple[str, str]]:
    steps = MISSING if subject.env_steps is None else f"{subject.env_steps:,}"
    rows = [("env steps of this agent", f"{steps} (checkpoint {markdown_code(subject.checkpoint)})")]
    if run is None:
        return [*rows, ("budget, time, seed, settings, hardware", f"{MISSING}: the agent has no run folder")]
    listed = run.run.get("sessions")
    sessions = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    budget = run.setting("total_env_steps")
    settings = read_if_possible(run.folder / CONFIG, limit=MAX_DOCUMENT_BYTES)
    digest = MISSING if settings is None else hashlib.sha256(settings).hexdigest()
    parent = run.run.get("parent")
    if isinstance(parent, Mapping):
        folder, reached = str(parent.get("folder")), str(parent.get("env_steps"))
        rows.append(("forked from", f"{markdown_code(folder)}, after {markdown_text(reached)} env steps"))
    return [
        *rows,
        ("budget of the run", markdown_text(f"{budget:,} env steps") if isinstance(budget, int) else MISSING),
        ("wall time of the run", _seconds(sessions, "wall_s")),
        ("training time, a part of it", _seconds(sessions, "training_s")),
        ("algorithm", markdown_text(str(run.setting("algorithm", MISSING)))),
        ("seed", markdown_text(str(run.setting("seed", MISSING)))),
        (f"`{CONFIG}`, SHA-256", f"`{digest}`"),
        ("command", _each(sessions, lambda session: markdown_code(_typed(session["command"]), _LONGEST_LINE))),
        ("hardware", _each(sessions, _machine)),
        ("versions", _each(sessions, lambda session: _listed([f"{k} {v}" for k, v in session["versions"].items()]))),
        ("code", _each(sessions, _code)),
    ]


def _seconds(sessions: Sequence[Mapping[str, Any]], name: str) -> str:
    known = [session[name] for session in sessions if isinstance(session.get(name), int | float)]
    if not known:
        return MISSING
    cut_off = len(sessions) - len(known)
    return f"{sum(known):,.1f} s" + (f", and {cut_off} interrupted sessions, {MISSING}" if cut_off else "")


def _each(sessions: Sequence[Mapping[str, Any]], say: Any) -> str:  # noqa: ANN401 - a function of a session
    """Return what the sessions of a run report, each distinct answer once."""
    said: dict[str, None] = {}
    for session in sessions:
        try:
            said[say(session)] = None
        except (KeyError, TypeError, AttributeError):
            said[MISSING] = None
    more = [f"and {len(said) - _MOST_LISTED} more"] if len(said) > _MOST_LISTED else []
    return "; ".join([*list(said)[:_MOST_LISTED], *more]) or MISSING


def _listed(names: Sequence[str]) -> str:
    """Return names of files in a row, the first ones if they are many."""
    more = [f"and {len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []
    return ", ".join([*map(markdown_text, names[:_MOST_LISTED]), *more])


def _typed(words: Sequence[object]) -> str:
    """Return a command as it was typed: where the program is installed is of no use on another machine."""
    program, arguments = Path(*map(str, words[:1])), map(str, words[1:])
    name = program.parent.name if program.name == "__main__.py" else program.name  # of `python -m ludus`
    return shlex.join([name, *arguments])


def _machine(session: Mapping[str, Any]) -> str:
    machine = session["machine"]
    return markdown_text(f"{machine['system']}, {machine['cores']} cores, device {machine.get('device', MISSING)}")


def _code(session: Mapping[str, Any]) -> str:
    git = session["git"]
    if git is None:
        return markdown_text(f"Ludus {session['versions']['ludus']}, not run from a git checkout")
    return f"commit {markdown_code(str(git['commit']))}" + ("" if git["clean"] else " with uncommitted changes")


def _evaluation(subject: CardSubject, run: RunData | None) -> Table | None:
    """Return the rows of the evaluation of this checkpoint, if there was one."""
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
    cells = []
    for row in range(min(len(rows), _MOST_ROWS)):
        who, *texts = (markdown_text(str(rows.texts(column)[row])) for column in (name, *modal, "matches"))
        cells.append((who or "alone", *texts, *(_cell(rows, outcome, row) for outcome in shown)))
    left_out = len(rows) - len(cells)
    more = f"There are {left_out:,} more rows. " if left_out else ""
    return (
        f"{_table(header, cells)}\n\n{more}"
        "These rows of `evaluation_results.csv` were measured during training, on separate games and seeds. This "
        "command reproduces them: the same numbers on a CPU, if the run was trained on one, elsewhere numbers within "
        f"the intervals.\n\n{_shell(_command(subject, run))}"
    )


def _cell(rows: Table, outcome: str, row: int) -> str:
    value, low, high = (float(rows.numbers(f"{outcome}{end}")[row]) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return MISSING
    form = ".1%" if outcome == "win_rate" else ".2f"
    ends = " to ".join(format(end, form) if math.isfinite(end) else MISSING for end in (low, high))
    return f"{value:{form}} ({ends})"


def _command(subject: CardSubject, run: RunData) -> list[str]:
    """Return the command that repeats the run's own evaluation."""
    if run.setting("evaluation.scenarios") == []:  # the world with the run's settings, without any scenario
        options = ("matches", "seed", "deterministic")
        said = ", ".join(f"{name}={run.setting(f'evaluation.{name}')!r}" for name in options)
        code = f"import ludus; print(ludus.evaluate({subject.path!r}, scenarios=[], {said}).rows)"
        return ["python", "-c", code]
    words = ["ludus", "eval", subject.path]
    for option, key in (("--against", "opponents"), ("--scenario", "scenarios")):
        names = run.setting(f"evaluation.{key}")
        for name in names[:_MOST_LISTED] if isinstance(names, list) else ():
            words += [option, str(name)]
    words += ["--matches", str(run.setting("evaluation.matches")), "--seed", str(run.setting("evaluation.seed"))]
    return [*words, "--deterministic"] if run.setting("evaluation.deterministic") else words


def _shell(*commands: Sequence[str]) -> str:
    """Return commands as code; none has a line feed in it, so nothing can end the code."""
    lines = (plain_text(shlex.join(words)).replace("\n", "\\n") for words in commands)
    return "\n".join(["```sh", *(line[:_LONGEST_LINE] for line in lines), "```"])


def _limitations(subject: CardSubject, run: RunData | None, rows: Table | None) -> list[str]:
    world = subject.description["world"]
    rejects = "with these observations and actions; another version of the world rejects it."
    lines = [f"It plays only {markdown_code(world)} {rejects}"]
    if rows is None:
        lines.append("Its strength is unknown: evaluate it with the command above before relying on it.")
    else:
        met = rows.texts("trial" if "trial" in rows else "opponent").tolist()
        against = _listed(list(dict.fromkeys(name for name in met if name)))
        lines.append(f"It was measured {f'with {against}' if against else 'alone'}, and not elsewhere.")
    if run is not None:
        seed = run.setting("seed", MISSING)
        lines.append(f"It is a single run with seed {markdown_text(str(seed))}: other seeds may do better or worse.")
    if run is not None and rows is not None and not run.setting("evaluation.deterministic"):
        lines.append("The numbers are those of sampled actions; deterministic ones (`--deterministic`) may differ.")
    return lines


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
