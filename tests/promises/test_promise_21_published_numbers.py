"""Promise 21: every table of numbers in docs/ and the README is what its raw data gives; one command measures it."""

import importlib
import json
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKER = re.compile(r"<!-- (/?)results:([^ ]+) -->")
# Tables with figures that nobody measured: settings, weights and the like, by the first cell of their header.
SETTLED = ("term", "property", "preset of brawl", "option", "setting", "what", "column", "file", "function", "task")
# Tables that were published before their raw data was kept; each must be measured anew, and the list may only shrink.
WITHOUT_RAW_DATA = {"docs/research/brawl.md": ["before, 64 steps, batch 8,192, 4 epochs"]}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.tables.__main__")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_tables_are_what_the_raw_data_gives(page: Path, tables: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.filled(text) == text, "run: make results-tables"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_markers_come_in_pairs_and_have_a_maker_and_a_command(page: Path, tables: ModuleType) -> None:
    marks = MARKER.findall(page.read_text(encoding="utf-8"))
    assert [bool(slash) for slash, _ in marks] == [False, True] * (len(marks) // 2)
    names = [name for _, name in marks]
    assert names[::2] == names[1::2]
    assert set(names) <= set(tables.TABLES)


def test_every_table_has_a_command_that_writes_it(tables: ModuleType) -> None:
    log = (ROOT / "docs" / "research" / "strategy.md").read_text(encoding="utf-8")
    for command in {tables.command_of(name) for name in tables.TABLES}:
        if command in tables.REMOVED:
            assert f"`results-{command}`" in log or f"`make results-{command}`" in log
            assert f"at commit {tables.BEFORE_REMOVAL}" in log
            continue
        done = subprocess.run(
            ["make", "--dry-run", "--always-make", f"results-{command}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"-m benchmarks.tables {command}\n" in done.stdout
        scripts = re.findall(r"benchmarks/\w+\.py", done.stdout)
        assert all((ROOT / script).is_file() for script in scripts)
        assert scripts


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_table_of_numbers_is_without_a_marker(page: Path) -> None:
    text = re.sub(
        r"<!-- results:([^ ]+) -->.*?<!-- /results:\1 -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = block.splitlines()
        cells = [cell.strip() for cell in header.strip("|").split("|")]
        numbers = sum(
            bool(re.fullmatch(r"[-*]*[\d.,]+( ?[a-z%]+)?[*]*", cell.strip())) for row in rows for cell in row.split("|")
        )
        if numbers > 2 and cells[0] not in SETTLED:
            found.append(cells[1] if cells[0] == "" else cells[0])
    assert found == WITHOUT_RAW_DATA.get(page.relative_to(ROOT).as_posix(), [])


def test_a_changed_number_is_found_and_mended(tables: ModuleType) -> None:
    text = (ROOT / "docs" / "worlds" / "brawl.md").read_text(encoding="utf-8")
    wrong = re.sub(r"\| \d\.\d\d M \|", "| 0.01 M |", text)
    assert wrong != text
    assert tables.filled(wrong) == text
    assert tables.filled(wrong, ["brawl-bots"]) == wrong  # not one of that command's


def test_what_was_not_measured_is_not_published(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "<!-- results:mimic-walk -->\n| seed 0 |\n<!-- /results:mimic-walk -->\n"
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    assert tables.filled(page) == "<!-- results:mimic-walk -->\n<!-- /results:mimic-walk -->\n"


def test_the_makers_of_mimic(tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = {"trial": "walk", "opponent": "", "matches": 20, "speed_m_s": 1.25, "survived": 1.0, "imitation": 0.8123}
    other = trial | {"imitation": 0.8323}
    walk = {"seed": 3, "training_s": 321.4, "steps_to_convergence": None, "trials": [trial]}
    points = [{"env_steps": 9, "updates": 0, "seconds": 5.0, "imitation": 0.125}]
    points += [{"env_steps": 1000, "updates": 250, "seconds": 60.0, "imitation": 0.5}] * 2
    better = [point | {"imitation": 2 * point["imitation"]} for point in points]
    runs = [{"algorithm": "sac", "points": points}, {"algorithm": "sac", "points": better}]
    data: dict[str, Any] = {
        "mimic_walk": [walk, walk | {"seed": 4, "steps_to_convergence": 800_000, "trials": [other]}],
        "mimic_physics": [{"setting": "Euler 5 ms", "steps_per_s": 12345.6, "ratio": 0.987, "stray_deg": 0.123}],
        "mimic_learn": {"games": 512, "steps_per_s": 9e3, "peer_steps_per_s": 3e3, "ratio": 3.0, "update_share": 0.6},
        "mimic_algorithms": {"numbers": ["imitation"], "runs": runs},
    }
    for name, content in data.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    made = {name: tables.TABLES[name]().splitlines() for name in tables.TABLES if name in map_names(data)}
    assert made["mimic-walk"][0] == "| | seed 3 | seed 4 | mean (95 % over seeds) |"
    assert "| env steps to convergence | not reached | 800,000 | |" in made["mimic-walk"]
    # Two seeds 0.02 apart: Student's t with one degree of freedom is 12.706, so that the margin is 0.127.
    assert "| `imitation` | 0.812 | 0.832 | 0.822 (0.695 - 0.949) |" in made["mimic-walk"]
    assert made["mimic-physics"][2] == "| Euler 5 ms | 12,346 | 0.99 | 0.12 |"
    assert made["mimic-learn"][2] == "| 512 | 9,000 | 3,000 | 3.0 | 60% |"
    assert made["mimic-algorithms"][2] == "| SAC | 2 | 9 | 0 | 5 | 0.188 (0.125 to 0.25) |"
    assert made["mimic-algorithms"][3:] == ["| SAC | 2 | 1,000 | 250 | 60 | 0.75 (0.5 to 1) |"]


def test_the_makers_of_learners_in_turns(tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = {"together_cpu_s": 6.0, "sequence_cpu_s": 5.0, "commands_cpu_s": 60.0}
    rate = {"alone_steps_per_s": 250_400.0, "together_steps_per_s": 1_001_600.0, "ratio": 4.0}
    case = {"case": "brawl:quick", "env_steps": 65_536, "overrides": ["world.num_envs=64"]}
    machine = {"learners": 16, "cores": 2, "machine": "aarch64"}
    data = {
        "cpu": machine | {"device": "cpu", "rows": [case | cost]},
        "h200": machine | {"device": "H200", "rows": [case | rate]},
    }
    for name, content in data.items():
        (tmp_path / f"together_{name}.json").write_text(json.dumps(content))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    assert tables.TABLES["together"]().splitlines()[2] == "| brawl, quick | 65,536 | 6.0 | 5.0 | 60.0 | 1.20 | 0.10 |"
    assert tables.TABLES["together-cuda"]().splitlines() == [
        "| H200 | env steps/s of one learner | of 16 in turns | ratio |",
        "|---|---|---|---|",
        "| brawl, quick world.num_envs=64 | 250k | 1,002k | 4.00 |",
    ]


def test_the_makers_of_mimic_on_a_gpu(tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = {"joints_deg": 0.0123, "joints_deg_median": 4e-05, "hips_mm": 0.25, "hips_mm_median": 0.001}
    walked = {"stable_walks": 19.0, "rmse_deg": 1.906, "speed_m_s": 1.1124, "imitation": 0.95449}
    data: dict[str, Any] = {
        "mimic_gpu": [{"device": "H", "walkers": 8192, "steps_per_s": 4_567_890, "physics_steps_per_s": 6_200_000}],
        "mimic_parity": {
            "driven": {"MuJoCo Warp, MuJoCo": {"0.5": apart}},
            "walking": [{"agent": "walker", "physics": "warp", "scenario": "walk", **walked}],
        },
    }
    for name, content in data.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    names = ("mimic-gpu", "mimic-parity:driven", "mimic-parity:walking")
    assert [tables.TABLES[name]().splitlines()[2] for name in names] == [
        "| H | 8,192 | 4.57 | 6.20 |",
        "| MuJoCo Warp and MuJoCo | 0.5 s | 4e-05 | 0.012 | 0.001 | 0.25 |",
        "| `walker` | MuJoCo Warp | `walk` | 19 | 1.91 | 1.112 | 0.954 |",
    ]


def test_the_makers_of_the_peers(tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def side(rate: float, package: str, **about: int) -> dict[str, Any]:
        speed = {"steps_per_s": rate, "steps_per_s_low": 0.9 * rate, "steps_per_s_high": 1.1 * rate}
        return {**about, **speed, "packages": {package: "1.2.3"}}

    def row(peer: str, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
        ratio = ours["steps_per_s"] / theirs["steps_per_s"]
        processor = "GenuineIntel Intel(R) Xeon(R) Processor @ 2.50GHz"
        return {"peer": peer, "processor": processor, "ours": ours, "theirs": theirs, "ratio": ratio}

    bodies = side(3000, "mujoco", joints=13, physics_steps=10), side(400, "loco-mujoco", joints=13, physics_steps=10)
    data = {
        "pufferlib_vector": row("pufferlib", side(20_000, "torch"), side(40_000, "pufferlib")),
        "pufferlib_gymnasium": row("pufferlib", side(1000, "gymnasium"), side(2000, "gymnasium")),
        "loco_mujoco_same_steps": row("loco-mujoco", *bodies),
    }
    (tmp_path / "peers.json").write_text(json.dumps(data))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    header, _, vector, body = tables.TABLES["peers"]().splitlines()
    assert header.startswith("| on one core, Intel Xeon @ 2.50GHz |")
    assert vector.endswith("| 20,000 | PufferLib 1.2.3: 40,000 | 0.5 | `make results-peers` |")
    assert body.endswith("| 3,000 | loco-mujoco 1.2.3: 400 | 7.5 | `make results-peers` |")
    *_, bare, body = tables.TABLES["peers:details"]().splitlines()
    shown = "| Gymnasium 1.2.3: 1,000 (900 - 1,100) | Gymnasium 1.2.3: 2,000 (1,800 - 2,200) | 0.50 | | |"
    assert bare.endswith(shown)
    assert body.endswith("| 7.50 | 13, 13 | 30,000, 4,000 |")


def test_the_maker_of_the_ablation(tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for seed, (as_is, zeroed) in enumerate([(0.80, 0.82), (0.90, 0.86)]):
        scores = {"as is": as_is, "zeroed": zeroed, "shuffled": as_is}
        loss = {"estimate": as_is - zeroed, "low": as_is - zeroed - 0.03, "high": as_is - zeroed + 0.05}
        mean = {
            "scores": {name: {"estimate": score} for name, score in scores.items()},
            "losses": {"zeroed": loss, "shuffled": {"estimate": 0.0, "low": -0.01, "high": 0.02}},
        }
        analysis = {"ablation": {"mean": mean}}
        runs.append({"variant": "recognising", "budget": "samples", "seed": seed, "analysis": analysis})
    runs.append(runs[0] | {"variant": "lstm", "analysis": {"ablation": None}})  # without a latent
    (tmp_path / "strategy_results.json").write_text(json.dumps({"runs": runs}))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    first, second, both = tables.TABLES["strategy:ablation"]().splitlines()[2:]
    assert first.endswith("seed 0 | 80.0 | 82.0 | 80.0 | -2.0 (-5.0 to 3.0) | 0.0 (-1.0 to 2.0) |")
    assert second.endswith("seed 1 | 90.0 | 86.0 | 90.0 | 4.0 (1.0 to 9.0) | 0.0 (-1.0 to 2.0) |")
    # Two seeds: the margin is half their distance of 6 points times Student's 12.706.
    assert both.endswith("over seeds | 85.0 | 84.0 | 85.0 | 1.0 (-37.1 to 39.1) | 0.0 (0.0 to 0.0) |")


def test_a_seed_that_was_cut_off_is_in_the_curves_alone(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {"damage_ratio": 2.5, "knockouts": 2.0, "pickups": 1.5, "survival_s": 50.0}
    rates = {"constant": 1.0, "random": 0.9, "based": 0.8, "aerial": 0.5, "defensive": 0.3}
    rows = [
        {"opponent": name, "win_rate": rate, "win_rate_low": rate, "win_rate_high": rate} | numbers
        for name, rate in rates.items()
    ]
    whole = {"seed": 0, "opponents": rows, "own_snapshots": rows[:1]}
    curve = [{"env_steps": steps, "win_rates": rates} for steps in (2_500_000, 5_000_000)]
    runs = [whole | {"curve": curve}, {"seed": 1, "opponents": [], "own_snapshots": [], "curve": curve[:1]}]
    later = [{"env_steps": 10_027_008, "win_rates": rates | {"based": 1.0}}]
    unmet = whole | {"seed": 2, "own_snapshots": [], "curve": later}  # was not played against past selves
    (tmp_path / "brawl_competition.json").write_text(json.dumps(runs))
    (tmp_path / "brawl_competition_first.json").write_text(json.dumps([unmet]))
    (tmp_path / "brawl_competition_first_long.json").write_text(json.dumps([]))
    monkeypatch.setattr(importlib.import_module("benchmarks.tables.markdown"), "DATA", tmp_path)
    goals = tables.TABLES["brawl-competition:goals"]().splitlines()
    assert goals[0] == "| number | goal | `competition`, seed 0 | first, 10 M, seed 2 |"
    assert "| lowest style | 85% | 30.0% (defensive) | 30.0% (defensive) |" in goals
    assert "| own snapshots | 60% | 100.0% | |" in goals
    opponents = tables.TABLES["brawl-competition:opponents"]().splitlines()
    assert opponents[0].startswith("| opponent | seed 0 | interval |")
    assert tables.TABLES["brawl-competition:curves"]().splitlines()[2:] == [
        "| 2.5 M | 70% (30%) | 70% (30%) | |",
        "| 5.0 M | 70% (30%) | | |",
        "| 10.0 M | | | 74% (30%) |",
    ]


def map_names(data: dict[str, Any]) -> set[str]:
    return {name.replace("_", "-") for name in data}


def test_the_runs_of_the_search_can_be_trained_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from ludus.training.api import _read

    monkeypatch.syspath_prepend(str(ROOT))
    tuning = importlib.import_module("benchmarks.brawl_tuning")
    shown = importlib.import_module("benchmarks.tables.tuning")
    named = {*shown.MEMORY.values(), *shown.RECIPES.values(), shown.LONG, shown.SMALL}
    named |= set(shown.LONG_RUNS.values())
    three = {*shown.WEAPONS.values(), *shown.WAITING.values()}
    named |= {f"{run}-s{seed}" for run in three for seed in shown.SEEDS}
    assert named <= set(tuning.SHOWN)
    for run in sorted(named):
        batch, name = run.split("/")
        document = json.loads(
            (ROOT / "docs" / "data" / (tuning.SEARCH if batch == "search" else tuning.TUNING)).read_text()
        )
        part = document if batch == "search" else document["batches"][batch]
        assert _read(tuning.resolved(part["configs"][name], document), None, ()).world.name == "brawl"
