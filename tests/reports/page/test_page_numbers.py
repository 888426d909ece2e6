"""Evaluations, payoffs, ratings, times, panels, notices and latents of a report, against numbers computed by hand."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ludus.core.intervals import wilson_interval
from ludus.core.tables import phase_starts
from ludus.reports.doctor import Change, Examination, Finding
from ludus.reports.page import document as page_document
from ludus.reports.page.curves import make_panels, read_times, title_of
from ludus.reports.page.document import notices_of
from ludus.reports.page.evaluations import read_evaluations, read_latents, read_payoffs
from ludus.reports.page.runs import Group, group_runs, read_runs

MakeRun = Callable[..., Path]


def _group(*folders: Path) -> Group:
    [group] = group_runs(read_runs(folders))
    return group


def test_matches_of_all_seeds_are_pooled(make_run: MakeRun) -> None:
    found = read_evaluations(_group(make_run("a-0", seed=0), make_run("a-1", seed=1)))
    assert found is not None
    assert (found.kind, found.labels, found.numbers) == ("opponent", ("rock", "paper"), ("win_rate", "hits"))
    line = found.lines["win_rate"]["rock"]
    assert (line.env_steps.tolist(), line.value.tolist()) == ([400, 800], [0.5, 0.9])
    assert (line.low[1], line.high[1]) == wilson_interval(18, 20)[1:]
    assert found.lines["win_rate"]["paper"].value.tolist() == [0.1, 0.5]
    assert (found.score.env_steps.tolist(), found.score.value.tolist()) == ([400, 800], [0.4, 0.8])


def test_trials_come_with_the_number_that_the_best_agent_is_kept_by_first(make_run: MakeRun) -> None:
    folder = make_run("walker", config="evaluation: {score: mean_distance_m}\n")
    (folder / "evaluation_results.csv").write_text(
        "iteration,env_steps,trial,matches,speed,speed_low,speed_high,distance_m,score\n"
        "1,100,walk,20,0.5,0.4,0.6,7,7\n1,100,pushes,20,0.25,0.2,0.3,3,7\n"
    )
    found = read_evaluations(_group(folder))
    assert found is not None
    assert (found.kind, found.labels, found.numbers) == ("trial", ("walk", "pushes"), ("distance_m", "speed"))
    speed = found.lines["speed"]["pushes"]
    assert (speed.value.tolist(), speed.low.tolist(), speed.high.tolist()) == ([0.25], [0.2], [0.3])
    assert math.isnan(found.lines["distance_m"]["walk"].low[0])


def test_modes_and_sides_have_lines_of_their_own(make_run: MakeRun) -> None:
    folder = make_run("teams")
    (folder / "evaluation_results.csv").write_text(
        "iteration,env_steps,opponent,mode,side,matches,wins,draws,losses,win_rate,score\n"
        "1,100,keeper,1v1,,4,2,0,2,0.5,0.5\n1,100,keeper,1v2,1v2,2,0,0,2,0,0.5\n1,100,keeper,1v2,2v1,2,2,0,0,1,0.5\n"
    )
    found = read_evaluations(_group(folder))
    assert found is not None
    assert found.numbers == ("win_rate",)
    rates = {label: found.lines["win_rate"][label].value.tolist() for label in found.labels}
    assert rates == {"1v1 keeper": [0.5], "1v2 keeper": [0.0], "2v1 keeper": [1.0]}
    assert set(found.opponents.values()) == {"keeper"}


def test_rows_that_do_not_say_when_they_were_are_left_out(make_run: MakeRun) -> None:
    folder = make_run("run")
    with (folder / "evaluation_results.csv").open("a") as file:
        file.write("9,,rock,10,1,0,9,0.1,1,0.1\n9,1e999,rock,10,1,0,9,0.1,1,inf\n")
    group = _group(folder)
    found = read_evaluations(group)
    assert found is not None
    assert found.lines["win_rate"]["rock"].env_steps.tolist() == [400, 800]
    assert (group.runs[0].env_steps, group.runs[0].best_score) == (800, 0.8)


def test_payoffs_by_phase_and_ratings_that_grow(make_run: MakeRun) -> None:
    [found] = read_payoffs(_group(make_run("run")))
    assert found.mode == ""
    assert found.ends.tolist() == [100, 200, 300, 400, 500, 600, 700, 800]
    assert found.opponents[0] == "rock"
    np.testing.assert_allclose(found.score[0], [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])
    assert found.matches[0].tolist() == [40] * 8
    # The snapshot of iteration 3 is met in iteration 4 alone, and gives 6 wins and 2 draws in 10 matches.
    row = found.opponents.index("self at 300")
    assert np.flatnonzero(found.matches[row]).tolist() == [3]
    assert found.score[row, 3] == 0.7
    ratings = [rating.estimate for rating in found.learner if rating is not None]
    assert len(ratings) == 8
    assert ratings == sorted(ratings)
    assert ratings[0] < found.rated["rock"].estimate < ratings[-1]


def test_few_matches_are_few_phases(make_run: MakeRun) -> None:
    folder = make_run("run")
    header = "iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses"
    rows = [f"{i},{100 * i},self-1,rock,rock,12,6,0,6" for i in range(1, 9)]
    (folder / "opponents.csv").write_text("\n".join([header, *rows]) + "\n")
    [found] = read_payoffs(_group(folder))
    assert (found.ends.tolist(), found.matches.tolist()) == ([400, 800], [[48, 48]])  # 96 matches, 40 a phase
    assert all(rating is not None for rating in found.learner)


def test_the_best_agent_is_rated_by_its_evaluation_alone(make_run: MakeRun) -> None:
    folder = make_run("run")
    best = folder / "checkpoints" / "best"
    best.mkdir(parents=True)
    (best / "manifest.json").write_text('{"step": 400}')  # where it won 5 of 10 and 1 of 10
    [found] = read_payoffs(_group(folder))
    ratings = {name: rating.estimate for name, rating in found.agent.items()}
    assert list(ratings) == ["best agent", "rock", "paper"]
    assert ratings["paper"] - ratings["best agent"] == pytest.approx(400 * math.log10(9), rel=0.1)  # the prior: less
    assert abs(ratings["rock"] - ratings["best agent"]) < 10
    (best / "manifest.json").write_text('{"step"')  # then the last evaluation counts: 9 of 10 and 5 of 10
    [found] = read_payoffs(_group(folder))
    assert found.agent["best agent"].estimate > found.agent["rock"].estimate + 300


def test_modes_are_rated_apart(make_run: MakeRun) -> None:
    folder = make_run("run")
    header = "iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses,mode,side"
    rows = [f"1,100,self-1,rock,rock,20,{5 * i},0,{20 - 5 * i},{mode},2v1" for i, mode in enumerate(("1v1", "1v2"), 1)]
    (folder / "opponents.csv").write_text("\n".join([header, *rows]) + "\n")
    found = read_payoffs(_group(folder))
    assert [(each.mode, each.score.tolist()) for each in found] == [("1v1", [[0.25]]), ("1v2", [[0.5]])]


def test_numbers_of_a_mode_are_titled_by_it(make_run: MakeRun) -> None:
    folder = make_run("run")
    lines = [f'{{"iteration": {i}, "env_steps": {i}, "rating_elo/2v2": {1000 + i}}}' for i in range(1, 9)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    [panel] = [panel for panel in make_panels([_group(folder)]) if panel.name == "rating_elo/2v2"]
    assert (panel.section, panel.title) == ("learning", "Elo rating, live, 2v2")


@pytest.mark.parametrize(
    ("name", "title", "unit"),
    [
        ("survival_s", "Survival time", "s"),
        ("speed_m_s", "Speed", "m/s"),
        ("distance_min_m", "Distance min", "m"),
        ("touches_a_minute", "Touches", "per min"),
        ("attacks", "Attacks", ""),
        ("episode_length", "Episode length", "steps"),
    ],
)
def test_a_unit_stands_beside_the_title_and_not_in_it(name: str, title: str, unit: str) -> None:
    assert title_of(name) == (title, unit)


def test_no_opponents_no_payoffs(make_run: MakeRun) -> None:
    folder = make_run("run")
    (folder / "opponents.csv").write_text("iteration,env_steps,learner,opponent,kind,matches,wins,draws,losses\n")
    assert read_payoffs(_group(folder)) == []
    (folder / "evaluation_results.csv").unlink()
    assert read_evaluations(_group(folder)) is None


def test_times_from_resources(make_run: MakeRun) -> None:
    folder = make_run("run")
    assert read_times(_group(folder), 100) is None
    (folder / "resources.csv").write_text(
        "iteration,env_steps,elapsed_s,resident_mib,simulation_s,update_s,logging_s,gpu_use\n"
        "1,100,1,500,0.5,0.5,0,\n2,300,3,510,0.5,1.5,0,\n3,350,4,520,0.5,0,0.5,\n"
    )
    times = read_times(_group(folder), 100)
    assert times is not None
    assert times.shares == {"update": 0.5, "simulation": 0.375, "logging": 0.125}
    assert times.speed is not None
    assert (times.speed.x.tolist(), times.speed.y.tolist()) == ([300, 350], [100, 100])
    [(title, memory)] = times.memory.items()
    assert (title, memory.y.tolist()) == ("Memory of the process, MiB", [500, 510, 520])


def test_panels_have_titles_and_counts_of_faults_only_where_there_were_any(make_run: MakeRun) -> None:
    group = _group(make_run("a-0", seed=0), make_run("a-1", seed=2))
    panels = {panel.name: panel for panel in make_panels([group])}
    assert list(panels) == ["episode_return", "entropy", "hits"]
    curve = panels["episode_return"].curves[0]
    assert curve is not None
    assert (curve.y.tolist()[:2], curve.low.tolist()[:2], curve.high.tolist()[:2]) == ([2, 3], [1, 2], [3, 4])
    assert (panels["entropy"].section, panels["hits"].section) == ("optimiser", "behaviour")
    assert phase_starts(group.runs[0].metrics) == [(100, "easy"), (500, "hard")]


def test_alarms_tell_what_went_wrong(make_run: MakeRun) -> None:
    folder = make_run("run")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()[:6]]
    rows[2]["rollbacks"] = rows[3]["rollbacks"] = rows[4]["rollbacks"] = rows[5]["rollbacks"] = 1
    rows[4]["skipped_updates"] = 3
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "reward_breakdown.csv").unlink()
    (folder / "evaluation_results.csv").unlink()
    document = {"sessions": [{"started": "monday"}, {"ended": "tuesday"}], "converged": 500, "warnings": ["too fast"],
                "parent": {"folder": "runs/old", "checkpoint": "best", "env_steps": 9,
                           "changes": ["a: 1 -> 2"]}}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(document))
    [run] = read_runs([folder])
    expected = [
        ("alarm", "NaN", 300),
        ("warning", "too fast", None),
        ("warning", "3 updates", 500),
        ("warning", "reward_breakdown.csv", None),
        ("warning", "evaluation_results.csv", None),
        ("warning", "Session 1, started monday", None),
        ("warning", "600 of 800 env steps", 600),
        ("info", "2 sessions", None),
        ("info", "runs/old, checkpoint best with changes: a: 1 -> 2", 9),
        ("info", "Converged", 500),
    ]
    found = [notice for notice in notices_of(run) if not notice.details]
    for notice, (level, words, env_steps) in zip(found, expected, strict=True):
        assert (notice.level, notice.env_steps) == (level, env_steps)
        assert words in notice.text


def test_only_a_run_that_did_not_finish_is_said_not_to_have_ended(make_run: MakeRun) -> None:
    folder = make_run("run")
    (folder / "run.json").write_text('{"sessions": [{"started": "monday"}]}')
    [run] = read_runs([folder])
    assert notices_of(run) == ()
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(lines[:5]) + "\n")
    for name in ("reward_breakdown.csv", "evaluation_results.csv"):
        table = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join(table[:3]) + "\n")
    [run] = read_runs([folder])
    [notice] = notices_of(run)
    assert notice.text.startswith("Session 1, started monday, has not ended")


def test_what_the_doctor_finds_stands_among_the_alarms(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding("It is ill", ("fever 39 (metrics.jsonl)",), "Rest", (Change("ppo.n_steps", 8, 16),))
    monkeypatch.setattr(page_document, "examine", lambda _: Examination((("flu", finding),), (), {}))
    [run] = read_runs([make_run("run")])
    [notice] = notices_of(run)
    assert (notice.level, notice.text) == ("warning", "It is ill (flu)")
    assert notice.details == ("fever 39 (metrics.jsonl)", "Rest", "Change ppo.n_steps: 8 -> 16")


def test_a_doctor_who_cannot_read_a_run_does_not_end_the_report(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confused(_: object) -> Examination:
        raise ValueError("cannot convert float NaN to integer")

    monkeypatch.setattr(page_document, "examine", confused)
    [run] = read_runs([make_run("run")])
    [notice] = notices_of(run)
    assert (notice.level, notice.details) == ("warning", ())
    assert "whose files seem damaged: cannot convert" in notice.text


def test_latents_of_an_analysis(make_run: MakeRun) -> None:
    folder = make_run("run")
    assert read_latents(_group(folder)) is None
    (folder / "analysis").mkdir()
    document = {
        "styles": ["rock", "paper"], "times_s": [1, 2], "chance": 0.5,
        "maps": {"frames": [[0, 1], [2, math.nan], [4, 5]], "frame_labels": [0, 1, 7], "neighbours": None,
                 "matches": [[0.5, 0.25]], "labels": [1]},
        "probes": {"trained": {"so_far": [{"estimate": 0.75, "low": 0.5, "high": 1.0}, {"estimate": None}]}},
    }  # fmt: skip
    (folder / "analysis" / "analysis.json").write_text(json.dumps(document))
    found = read_latents(_group(folder))
    assert found is not None
    assert found.planes == {"PCA of frames": ((0.0, 1.0, 0),), "PCA of whole matches": ((0.5, 0.25, 1),)}
    assert (found.times_s, found.accuracy, found.chance) == ((1.0,), ((0.75, 0.5, 1.0),), 0.5)


@pytest.mark.parametrize("text", ["{", "[1]", '{"styles": 7}', '{"styles": [], "maps": {"frames": 3}}'])
def test_a_foreign_analysis_is_left_out(make_run: MakeRun, text: str) -> None:
    folder = make_run("run")
    (folder / "analysis").mkdir()
    (folder / "analysis" / "analysis.json").write_text(text)
    assert read_latents(_group(folder)) is None
