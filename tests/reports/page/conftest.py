"""Runs to report on, and a real browser."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.browser import Browser, open_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests of a file; where there is none they are skipped."""
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def write_table(path: Path, header: str, rows: Iterable[Sequence[object]]) -> None:
    """Writes a CSV file as a run does."""
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Makes the folder of a run that played rocks and its past selves: `make_run("quick-0", seed=0)`.

    Iteration i ends at 100 * i env steps; its return is i + seed; the win rate against rock grows from 0 to 1.
    """

    def make(name: str, *, seed: int = 0, iterations: int = 8, config: str = "") -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        total = 100 * iterations
        settings = f"world: {{name: duel, num_envs: 4}}\ntotal_env_steps: {total}\nseed: {seed}\nppo: {{steps: 8}}\n"
        (folder / "config.yaml").write_text(settings + config)
        session = {"started": "2026-01-01T00:00:00+0000", "ended": "2026-01-01T00:01:00+0000", "command": ["ludus"],
                   "env_steps": total, "wall_s": 5.0, "training_s": 4.0, "versions": {"ludus": "0.1.0"},
                   "git": {"commit": "ab" * 20}}  # fmt: skip
        (folder / "run.json").write_text(json.dumps({"world": "duel", "seed": seed, "sessions": [session]}))
        steps = [100 * (i + 1) for i in range(iterations)]
        lines = [
            {"iteration": i + 1, "env_steps": at, "updates": i, "episode_return": None if i == 0 else i + seed,
             "entropy": 1.0 / (i + 1), "rollbacks": 0, "stage": "easy" if i < 4 else "hard"}
            for i, at in enumerate(steps)
        ]  # fmt: skip
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        write_table(folder / "behavior_metrics.csv", "iteration,env_steps,episodes,hits",
                    [(i, at, 3, i * 2) for i, at in enumerate(steps, 1)])  # fmt: skip
        write_table(folder / "reward_breakdown.csv", "iteration,env_steps,total,hit,fall",
                    [(i, at, 10 - i, 10, -i) for i, at in enumerate(steps, 1)])  # fmt: skip
        write_table(
            folder / "evaluation_results.csv",
            "iteration,env_steps,opponent,matches,wins,draws,losses,win_rate,hits,score",
            [(i, at, who, 10, wins, 0, 10 - wins, wins / 10, i, i / 10)
             for i, at, wins in ((4, 400, 5), (8, 800, 9)) for who, wins in (("rock", wins), ("paper", wins - 4))],
        )  # fmt: skip
        write_table(
            folder / "opponents.csv",
            "iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses",
            [row for i, at in enumerate(steps, 1) for row in (
                (i, at, f"self-{i}", "rock", "rock", 40, 5 * i, 0, 40 - 5 * i),
                (i, at, f"self-{i}", f"self-{max(i - 1, 1)}", "self", 10, 6, 2, 2))],
        )  # fmt: skip
        return folder

    return make
