"""Speedruns: the seconds from the start of the process until an agent reaches its world's target score, and the board.

The clock stops after the first evaluation of the run that reaches the target. An evaluation that reaches a target by
luck is no record, so another one with as many matches on seeds of its own has to reach it too; it is not part of the
time, and training continues if it does not. How an agent is judged is the world's own: settings that would change that
are refused.

A board is a Markdown page with one table, and the raw data of its rows in a JSON file: in the folder `data` beside the
page if there is one, else beside it.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ludus.core.errors import ConfigError, FormatError, TargetNotReachedError, UnknownNameError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object, read_regular_text, write_text_atomic
from ludus.core.random import stream_hash
from ludus.envs.world import find_world, registered_worlds, resolve
from ludus.envs.world_parts import Speedrun
from ludus.training.callbacks import BaseCallback, Evaluated
from ludus.training.config import TrainConfig
from ludus.training.evaluation_callback import EvaluationCallback
from ludus.training.presets import load_run_config
from ludus.training.run_folder import RUN_FILE

BOARD = Path("docs") / "speedrun.md"
BEGIN, END = "<!-- results:speedrun -->", "<!-- /results:speedrun -->"
_NEW_PAGE = f"# Speedruns\n\nSeconds from the start of `ludus speedrun WORLD` to its target score.\n\n{BEGIN}\n{END}\n"
_HEADER = ("world", "target", "seconds", "confirmed", "env steps", "hardware", "seed", "settings", "commit", "date")
# Of `evaluation`: everything else says how good an agent is, which a record may not change.
_FREE = frozenset({"every_env_steps", "sooner", "max_share", "tolerance", "converged"})
_STREAM_CONFIRM = 0xC0F1

Entry = dict[str, Any]


def speedrun_of(world: str, overrides: Sequence[str] = ()) -> Speedrun:
    """Return the speedrun of a world, with the recipe for the device that overrides ask for.

    Raises:
        UnknownNameError: The world has none.
    """
    declared = find_world(world).speedrun
    if declared is None:
        raise UnknownNameError(
            "speedrun of a world", world, [each.name for each in registered_worlds() if each.speedrun is not None]
        )
    speedrun = resolve(declared)
    on_gpu = any(word.startswith("world.device=cuda") for word in overrides)
    return replace(speedrun, preset=speedrun.gpu_preset) if on_gpu and speedrun.gpu_preset is not None else speedrun


def speedrun_config(world: str, overrides: Sequence[str]) -> TrainConfig:
    """Return the settings of a speedrun: those of its recipe, with changes that do not change what the score means.

    Raises:
        UnknownNameError: The world has no speedrun.
        ConfigError: An override would change how the agent is judged.
    """
    speedrun = speedrun_of(world, overrides)
    fixed = (*speedrun.overrides, f"evaluation.score={speedrun.score}")
    recipe = load_run_config(world, speedrun.preset, None, fixed)
    changed = load_run_config(world, speedrun.preset, None, (*fixed, *overrides))
    before, after = _judged(recipe), _judged(changed)
    refused = [name for name, value in before.items() if after.get(name) != value]
    if refused or before.keys() != after.keys():
        raise ConfigError(
            f"a speedrun of {world} is judged as its recipe says, so {', '.join(refused) or 'evaluation'} cannot be "
            f"changed; of evaluation, valid: {', '.join(sorted(_FREE))}"
        )
    return changed


def _judged(config: TrainConfig) -> dict[str, object]:
    """Return all settings that say how good an agent is, by key."""
    if config.evaluation is None:
        return {}
    evaluation = {name: value for name, value in config.evaluation if name not in _FREE}
    return {f"evaluation.{name}": value for name, value in evaluation.items()} | {
        "world.settings": config.world.settings,
    }


class SpeedrunCallback(BaseCallback):
    """Stops a run once an evaluation has reached the target and another one has confirmed it.

    Attributes:
        entry: What was reached: `seconds`, the rows of both evaluations, and so on; None until then.
        best: The highest score so far.
        refuted: Evaluations that reached the target and were not confirmed.
    """

    def __init__(self, config: TrainConfig, speedrun: Speedrun, started_s: float) -> None:
        """Begin to wait for the target; the clock of `time.time` was at `started_s` when the process started."""
        assert config.evaluation is not None  # noqa: S101 - `speedrun_config` sets its score
        seed = stream_hash(config.evaluation.seed, config.seed, _STREAM_CONFIRM)
        again = config.evaluation.model_copy(update={"seed": seed})
        self._confirmer = EvaluationCallback(config.model_copy(update={"evaluation": again}))
        self._speedrun, self._started_s = speedrun, started_s
        self.entry: Entry | None = None
        self.best, self.refuted = float("-inf"), 0

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """Look at the clock, and let another evaluation confirm a score that reaches the target."""
        seconds = time.time() - self._started_s
        self.best = max(self.best, evaluated.score)
        if self.entry is not None or not evaluated.score >= self._speedrun.target:
            return
        components = self.trainer.components
        confirmed = self._confirmer.evaluate(components.policy, evaluated.counters, components.settings)
        if not confirmed.score >= self._speedrun.target:
            self.refuted += 1
            return
        self.entry = {
            "seconds": round(seconds, 2),
            "env_steps": evaluated.counters.env_steps,
            "score": evaluated.score,
            "rows": [dict(row) for row in evaluated.rows],
            "confirmed_score": confirmed.score,
            "confirmed_rows": [dict(row) for row in confirmed.rows],
            "refuted": self.refuted,
        }
        self.trainer.stop(f"the target {self._speedrun.goal} is reached")

    def finish(self, world: str, overrides: Sequence[str], config: TrainConfig, folder: Path) -> Entry:
        """Return the whole entry of the run in a folder, which has ended.

        Raises:
            TargetNotReachedError: It did not reach the target.
        """
        speedrun = self._speedrun
        if self.entry is None:
            best = f"its best score is {self.best:.4g}" if self.best > float("-inf") else "it was never evaluated"
            more = f"; {self.refuted} evaluations reached it and were not confirmed" if self.refuted else ""
            raise TargetNotReachedError(
                f"the speedrun of {world} did not reach {speedrun.target:g} ({speedrun.goal}): {best}{more}; nothing "
                f"is added to a board; the run is in {folder}; try another --seed, or more steps by total_env_steps=N"
            )
        session = read_json_object(folder / RUN_FILE, limit=MAX_DOCUMENT_BYTES)["sessions"][-1]
        return {
            "world": find_world(world).id,
            "preset": speedrun.preset,
            "overrides": list(overrides),
            "seed": config.seed,
            "goal": speedrun.goal,
            "target": speedrun.target,
            **self.entry,
            **{name: session[name] for name in ("started", "machine", "versions", "git")},
        }


def read_board(board: Path) -> tuple[str, list[Entry]]:
    """Return the page of a board and its entries; a new page without any if there is none.

    Raises:
        ConfigError: The page has no place for the table.
        FormatError: A file cannot be read.
    """
    page = read_regular_text(board, limit=MAX_DOCUMENT_BYTES) if board.exists() else _NEW_PAGE
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ConfigError(f"{board} is no board: it needs the lines {BEGIN} and {END}; name a new file, or add them")
    data = _data_file(board)
    try:
        entries = json.loads(read_regular_text(data, limit=MAX_DOCUMENT_BYTES)) if data.exists() else []
        board_table(entries)
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(f"{data} is not the data of a board: {error!r}; repair it, or move it away") from error
    return page, entries


def add_to_board(board: Path, entry: Entry) -> None:
    """Append an entry to the data of a board, and rewrite its table.

    Raises:
        ConfigError: The page has no place for the table.
        FormatError: A file cannot be read.
        StoreError: A file cannot be written.
    """
    page, entries = read_board(board)
    entries.append(entry)
    write_text_atomic(_data_file(board), json.dumps(entries, indent=1) + "\n")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    write_text_atomic(board, f"{before}{BEGIN}\n{board_table(entries)}\n{END}{after}")


def _data_file(board: Path) -> Path:
    folder = board.parent / "data"
    return (folder if folder.is_dir() else board.parent) / f"{board.stem}.json"


def board_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the entries as a table in Markdown, by world, the fastest first."""
    ranked = sorted(entries, key=lambda entry: (entry["world"], entry["target"], entry["seconds"]))
    lines = [_HEADER, ("---",) * len(_HEADER), *map(_cells, ranked)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    git, machine = entry["git"], entry["machine"]
    commit = "" if git is None else f"`{git['commit'][:9]}`{'' if git['clean'] else ' with changes'}"
    device = machine["device"]
    hardware = f"{machine['cores']} CPU cores" if device == "cpu" else device.partition("(")[2].strip(")") or device
    matches = sum(row["matches"] for row in entry["confirmed_rows"])
    return (
        str(entry["world"]),
        str(entry["goal"]),
        f"{entry['seconds']:,.1f}",
        f"{entry['confirmed_score']:.4g} in {matches:,} matches",
        f"{entry['env_steps']:,}",
        hardware,
        str(entry["seed"]),
        " ".join([entry["preset"] or "", *(f"`{word}`" for word in entry["overrides"])]).strip(),
        commit,
        entry["started"][:10],
    )
