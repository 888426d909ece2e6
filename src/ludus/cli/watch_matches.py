"""The program that plays matches for `ludus watch`; see `ludus.watch.matches`.

It runs at the lowest priority and in one thread: where a run trains on the same cores, the run comes first.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ludus.cli.options import load_plugins
from ludus.core.errors import LudusError
from ludus.core.text import blame
from ludus.reports.run_data import read_json


def main() -> None:
    """Answer one request per line of the input until it ends; the arguments are plugins to load first."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like an answer
    _yield_cores()
    load_plugins(sys.argv[1:])
    for line in sys.stdin:
        before_s = time.process_time()
        try:
            answer = _play(**json.loads(line))
        except LudusError as error:
            answer = {"error": str(error)}
        except Exception as error:  # a damaged file or a plugin can raise anything; the page shows it
            answer = {"error": blame(error)}
        answers.write(json.dumps(answer | {"cpu_s": time.process_time() - before_s}) + "\n")
        answers.flush()


def _yield_cores() -> None:
    if hasattr(os, "nice"):
        os.nice(19)
    if hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _play(run: str, name: str, source: str, seed: int) -> dict[str, Any]:
    import torch

    from ludus.cli.report_matches import drawn_note, hardest_opponents, play_matches
    from ludus.evaluation.trajectory import replay_trajectory, replay_view_of
    from ludus.reports.page.document import read_groups

    torch.set_num_threads(1)
    folder = Path(run)
    if source.startswith("replays/"):
        strip = replay_trajectory(folder / source)
        if strip is None:
            return {"error": drawn_note()}
        strip["title"] = f"{name}: {Path(source).name}"
    else:
        opponents = hardest_opponents(read_groups([folder])[0])
        chosen = [opponents[seed % len(opponents)]] if opponents else []
        strip = _renamed(
            next(play_matches(_title(name, folder / source), folder / source, chosen, [seed])), name, source
        )
    view = replay_view_of(str(strip["world"]))
    return {"strip": strip, "painter": "" if view is None else view.source()}


def _renamed(strip: dict[str, Any], name: str, source: str) -> dict[str, Any]:
    """Name the agent after its run alone, which fits into the picture; the title says which checkpoint it is."""
    known = next((player for player in strip["players"] if str(player).endswith(Path(source).name)), None)
    if known is None:
        return strip
    short = Path(name).name
    players = [short if player == known else player for player in strip["players"]]
    return strip | {"players": players, "result": str(strip["result"]).replace(str(known), short)}


def _title(name: str, checkpoint: Path) -> str:
    step = read_json(checkpoint / "manifest.json").get("step")
    return f"{name} at {step:,} steps" if isinstance(step, int) else name


if __name__ == "__main__":
    main()
