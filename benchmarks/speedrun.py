"""Trains a world's recipe to its target score, and adds the seconds since the start of the process to a board.

    python benchmarks/speedrun.py brawl                       # 95 % of matches won over all bots, into docs/speedrun.md
    python benchmarks/speedrun.py mimic --seed 3 --board board.md ppo.n_epochs=6

The clock stops after the first evaluation of the run that reaches the target. An evaluation that reaches a target by
luck is no record, so another one with as many matches on seeds of its own has to reach it too; it is not part of the
time, and training continues if it does not. How an agent is judged is the world's own: settings that would change that
are refused.

A board is a Markdown page with one table, and the raw data of its rows in a JSON file: in the folder `data` beside the
page if there is one, else beside it.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from ludus.core.errors import ConfigError, FormatError, LudusError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object, read_regular_text, write_text_atomic
from ludus.core.random import stream_hash
from ludus.envs.world import find_world
from ludus.training.callbacks import BaseCallback, Evaluated
from ludus.training.config import TrainConfig
from ludus.training.evaluation_callback import EvaluationCallback
from ludus.training.preflight import verify
from ludus.training.presets import load_run_config
from ludus.training.resolve import resolve
from ludus.training.run_folder import RUN_FILE, new_run_folder
from ludus.training.session import ended_by_signals, run_training

BOARD = Path(__file__).parents[1] / "docs" / "speedrun.md"
BEGIN, END = "<!-- results:speedrun -->", "<!-- /results:speedrun -->"
_NEW_PAGE = f"# Speedruns\n\nSeconds from the start of a process to its world's target score.\n\n{BEGIN}\n{END}\n"
_HEADER = ("world", "target", "seconds", "confirmed", "env steps", "hardware", "seed", "settings", "commit", "date")
# Of `evaluation`: everything else says how good an agent is, which a record may not change.
_FREE = frozenset({"every_env_steps", "sooner", "tolerance", "converged"})
_STREAM_CONFIRM = 0xC0F1

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Speedrun:
    """A score to reach as fast as possible."""

    score: str  # `evaluation.score`, such as `mean_win_rate`
    target: float  # at least
    goal: str  # the same in words, such as `95 % over all bots`
    preset: str | None = None  # the recipe; None for the preset of `ludus train`
    overrides: tuple[str, ...] = ()  # settings of evaluations that the preset does not have, as `key=value`
    gpu_preset: str | None = None  # the recipe where a CUDA device is asked for; None for the same


# In rocket every row is a pair of one scripted player; matches are whole ones from a kickoff.
SPEEDRUNS = {
    "brawl": Speedrun("mean_win_rate", 0.95, "95 % over all bots", "quick", gpu_preset="competition"),
    "mimic": Speedrun("stable", 1.0, "20 of 20 stable walks", "walk", gpu_preset="walk-gpu"),
    "rocket": Speedrun(
        "lowest_win_rate", 0.95, "95 % against every pair", "1v1-2v2", ("evaluation.modes={2v2: {mode: 2v2}}",)
    ),
}


class TargetNotReachedError(LudusError):
    """A speedrun ended before its agent reached the target score."""


def main() -> None:
    """Train to the target and add the result to the board; nothing is added if the target is not reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", choices=tuple(SPEEDRUNS))
    parser.add_argument("overrides", nargs="*", help="settings as key=value")
    parser.add_argument("--board", type=Path, default=BOARD, help="page to add the result to")
    parser.add_argument("--run-dir", type=Path, help="new run folder; one under runs/ by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    words = [*options.overrides, f"seed={options.seed}", f"world.device={options.device}"]
    run_dir = options.run_dir or new_run_folder(Path("runs"), f"{options.world}-speedrun")
    try:
        entry = run_speedrun(options.world, words, options.board, run_dir)
    except LudusError as error:
        sys.exit(f"[ERROR] {error}")
    goal = SPEEDRUNS[options.world].goal
    print(
        f"[OK] {goal} after {entry['seconds']:,.1f} s, confirmed with {entry['confirmed_score']:.4g}: {options.board}"
    )


def run_speedrun(world: str, overrides: Sequence[str], board: Path, run_dir: Path) -> Entry:
    """Train to the target in a new run folder, and add the entry that is returned to a board.

    Raises:
        ConfigError: The run folder is not empty, or an override would change how the agent is judged.
        TargetNotReachedError: The run ended before the target was reached.
    """
    started_s = psutil.Process().create_time()
    read_board(board)  # before anyone waits for a result that cannot be added
    if run_dir.exists() and any(run_dir.iterdir()):
        raise ConfigError(f"{run_dir} is not empty, and a speedrun starts from scratch; choose another --run-dir")
    config, target = speedrun_config(world, overrides), speedrun_of(world, overrides)
    run = resolve(config)
    callback = SpeedrunCallback(config, target, started_s)
    with ended_by_signals() as received:
        list(verify(run))
        run_training(run, run_dir, received, title=f"{world}-speedrun", callbacks=[callback])
    shown = [word for word in overrides if not word.startswith(("seed=", "world.device=", "monitoring."))]
    entry = callback.finish(world, shown, config, run_dir)
    add_to_board(board, entry)
    return entry


def speedrun_of(world: str, overrides: Sequence[str] = ()) -> Speedrun:
    """Return the speedrun of a world, with the recipe for the device that overrides ask for."""
    speedrun = SPEEDRUNS[world]
    on_gpu = any(word.startswith("world.device=cuda") for word in overrides)
    return replace(speedrun, preset=speedrun.gpu_preset) if on_gpu and speedrun.gpu_preset is not None else speedrun


def speedrun_config(world: str, overrides: Sequence[str]) -> TrainConfig:
    """Return the settings of a speedrun: those of its recipe, with changes that do not change what the score means.

    Raises:
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
        assert config.evaluation is not None  # `speedrun_config` sets its score
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


if __name__ == "__main__":
    main()
