"""Where diagnoses draw their lines: too little to judge by, what only looks like an illness, and how changes look."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ludus.core.tables import Table
from ludus.reports.doctor import DIAGNOSES, Change, Finding, Unknown, examine
from ludus.reports.doctor.finding import compare, flow, highest, late_part, scaled
from ludus.reports.run_data import RunData

NOWHERE = Path("nowhere")


def table(**columns: Any) -> Table:
    rows = max(len(values) for values in columns.values() if isinstance(values, list))
    return Table({name: values if isinstance(values, list) else [values] * rows for name, values in columns.items()})


def judge(diagnosis: str, **data: Any) -> Any:
    return DIAGNOSES[diagnosis](RunData(NOWHERE, **data))


def test_an_empty_run_is_judged_by_nothing() -> None:
    examination = examine(RunData(NOWHERE))
    assert examination.findings == ()
    assert set(examination.unknown) == set(DIAGNOSES)
    assert all(examination.unknown.values())


def test_a_newcomer_adds_a_diagnosis_in_a_few_lines() -> None:
    def short(data: RunData) -> list[Finding]:
        steps = data.setting("total_env_steps")
        change = Change("total_env_steps", steps, 10 * steps)
        return (
            [Finding("it is short", (f"{steps} env steps (config.yaml)",), "train on", (change,))] if steps < 9 else []
        )

    ill, well = (examine(RunData(NOWHERE, config={"total_env_steps": n}), {"short": short}) for n in (5, 50))
    assert (well.findings, well.healthy) == ((), ("short",))
    assert ill.as_json() == [
        {
            "diagnosis": "short",
            "what": "it is short",
            "evidence": ["5 env steps (config.yaml)"],
            "remedy": "train on",
            "changes": [{"setting": "total_env_steps", "now": 5, "better": 50, "override": "total_env_steps=50"}],
        }
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (12, "12"),
        (0.00031234567, "0.0003123"),
        ("pfsp", "pfsp"),
        ([1, 0.5], "[1, 0.5]"),
        ({"kind": "constant", "level": 0.01}, "0.01"),
        ({"points": [[0, 2.0]], "kind": "linear"}, "2"),
        ({"kind": "linear", "start": 1.0, "end": 1e-5}, "{kind: linear, start: 1, end: 1e-05}"),
    ],
)
def test_settings_are_shown_in_one_line(value: object, text: str) -> None:
    assert flow(value) == text


def test_overrides_are_quoted_for_a_shell() -> None:
    changes = (Change("ppo.ent_coef", 0.001, 0.01), Change("policy.recurrent", None, {"size": 64}))
    finding = Finding("", (), "", changes)
    assert finding.overrides() == "ppo.ent_coef=0.01 'policy.recurrent={size: 64}'"
    assert changes[0].line == "ppo.ent_coef: 0.001 -> 0.01"


def test_schedules_are_scaled_as_a_whole() -> None:
    assert scaled({"kind": "constant", "level": 0.01}, 0.1) == pytest.approx(0.001)
    assert scaled({"kind": "linear", "start": 0.5, "end": 0.25, "until": 1.0}, 2.0) == {
        "kind": "linear", "start": 1.0, "end": 0.5, "until": 1.0,
    }  # fmt: skip
    assert (highest({"kind": "linear", "start": 0.5, "end": 0.7}), highest(3)) == (0.7, 3.0)


def test_the_late_part_is_the_last_fifth_of_the_env_steps() -> None:
    late = late_part(table(env_steps=[0, 10, 50, 79, 80, 100]))
    assert late.numbers("env_steps").tolist() == [80.0, 100.0]


def test_samples_are_compared_with_an_interval() -> None:
    # Variances 1 and 1 over 4 each: error sqrt(0.5) = 0.7071, times 1.96 = 1.3859; the gain is 3.
    better = compare("return", np.array([-1.0, 1.0, -1.0, 1.0]), np.array([2.0, 4.0, 2.0, 4.0]))
    assert (better.gain_low, better.gain_high) == pytest.approx((1.6141, 4.3859), abs=1e-4)
    assert (better.is_better, better.is_flat) == (True, False)
    same = compare("return", np.tile([-1.0, 1.0], 500), np.tile([-1.0, 1.0], 500))
    assert (same.is_better, same.is_flat) == (False, True)


def test_rewards_that_are_found_late_are_no_explosion() -> None:
    losses = [0.001] * 20 + [0.5] * 20
    found = {"metrics": table(value_loss=losses, explained_variance=0.8)}
    assert judge("value-loss", **found) == []
    blind = {"metrics": table(value_loss=losses, explained_variance=0.0)}
    assert len(judge("value-loss", **blind)) == 1


def test_an_agent_may_fall_in_the_first_fifth_of_its_budget() -> None:
    steps = list(range(1000, 11_000, 1000))
    episode_metrics = table(env_steps=steps, episodes=30, self_destructs=2.0, knocked_out=0.1, danger_share=0.1)
    data = {"episode_metrics": episode_metrics, "metrics": table(env_steps=steps)}
    early = judge("falling-off", config={"total_env_steps": 100_000}, **data)
    assert isinstance(early, Unknown)
    assert len(judge("falling-off", config={"total_env_steps": 10_000}, **data)) == 1


def test_a_weight_that_rises_later_is_no_zero_term() -> None:
    weights = {"draws": {"points": [[0, 0.0], [5000, 0.0], [6000, 1.0]]}}
    data = {
        "rewards": table(iteration=[1, 2], env_steps=[1000, 2000], total=0.0, draws=0.0),
        "episodes": table(r=[0.0] * 100, stage=""),
    }
    running = {"total_env_steps": 10_000, "rewards": {"weights": weights}}
    assert judge("zero-term", config=running, **data) == []
    over = judge("zero-term", config=running | {"total_env_steps": 2000}, **data)
    assert [change.line for change in over[0].changes] == [
        "rewards.weights.draws: {points: [[0, 0], [5000, 0], [6000, 1]]} -> 1"
    ]


def test_terms_of_a_stage_that_was_not_reached_are_no_zero_terms() -> None:
    data = {
        "rewards": table(iteration=[1], env_steps=[1000], total=0.0, win=0.0),
        "episodes": table(r=[0.0] * 100, stage="first"),
    }
    stages = {"curriculum": [{"name": "first"}, {"name": "last"}]}
    assert isinstance(judge("zero-term", config=stages, **data), Unknown)
    assert len(judge("zero-term", config={"curriculum": [{"name": "first"}]}, **data)) == 1


@pytest.mark.parametrize(("term", "count"), [("win", 0), ("closing", 1)])
def test_the_result_of_a_match_may_outweigh_all_else(term: str, count: int) -> None:
    rewards = table(iteration=[1, 2, 3], total=0.0, **{term: [50.0, -60.0, 70.0]}, damage=1.0, fall=-0.5)
    assert len(judge("dominating-term", rewards=rewards)) == count


def test_the_first_snapshot_is_the_oldest() -> None:
    names = ["start", "self-0001", "self-0002", "self-10000"]
    opponents = table(
        env_steps=[0, 0, 0, 0, *[100] * 4],
        opponent=names * 2,
        kind="self",
        matches=50,
        wins=[25] * 4 + [5, 25, 40, 5],
        draws=0,
    )
    found = judge("forgetting", opponents=opponents)
    assert found[0].evidence == (
        "late in the run it loses to 1 of 2 old snapshots (opponents.csv)",
        "win rate against start 10% (4% to 21%, 50 matches)",
    )


def test_memory_is_judged_by_the_last_session_alone() -> None:
    seconds = [float(second) for second in range(40)]
    growing = [1000.0 + 20.0 * second for second in seconds]
    steady = [1000.0] * 40
    resources = {"env_steps": [100.0 * second for second in seconds] * 2, "elapsed_s": seconds * 2}
    assert judge("memory-growth", resources=table(resident_mib=growing + steady, **resources)) == []
    found = judge("memory-growth", resources=table(resident_mib=steady + growing, **resources))
    assert "1,400 MiB in the middle of the session, 1,780 MiB at its end: 1,200 MiB per minute" in found[0].evidence[0]
    assert [change.line for change in found[0].changes] == ["guard.memory_gib: null -> 3.48"]
    slept = {**resources, "elapsed_s": (seconds[:35] + [second + 3600.0 for second in seconds[35:]]) * 2}
    assert len(judge("memory-growth", resources=table(resident_mib=steady + growing, **slept))) == 1
    filling = {"algorithm": "sac", "sac": {"buffer_size": 10_000}}
    filled = {"algorithm": "sac", "sac": {"buffer_size": 1_000}}
    memory = table(resident_mib=steady + growing, **resources)
    assert isinstance(judge("memory-growth", config=filling, resources=memory), Unknown)
    assert len(judge("memory-growth", config=filled, resources=memory)) == 1


def times(**seconds: float) -> Table:
    parts = ("simulation", "inference", "opponents", "update", "other", "evaluation", "checkpoints", "logging")
    return table(env_steps=[1000], **{f"{part}_s": [seconds.get(part, 0.0)] for part in parts})


PLAIN = {"world": {"name": "brawl", "num_envs": 512}, "total_env_steps": 10**6}


@pytest.mark.parametrize(
    ("seconds", "config", "changes"),
    [
        ({"simulation": 50.0, "update": 50.0}, {}, []),
        # Half of the time is as much as training itself takes: ten times as seldom makes it a tenth of that.
        (
            {"evaluation": 50.0, "update": 50.0},
            {"evaluation": {"every_env_steps": 100}},
            ["evaluation.every_env_steps=1000"],
        ),
        (
            {"checkpoints": 30.0, "update": 70.0},
            {"checkpoints": {"every_iterations": 1}},
            ["checkpoints.every_iterations=10"],
        ),
        ({"logging": 30.0, "update": 70.0}, {}, ["monitoring.tensorboard=false"]),
        ({"opponents": 60.0, "update": 40.0}, {"opponents": {"self": 1}, "league": {"live": 32}}, ["league.live=8"]),
        (
            {"update": 90.0, "simulation": 10.0},
            {"ppo": {"n_steps": 64, "batch_size": 128, "n_epochs": 10}},
            ["ppo.batch_size=2048", "ppo.n_epochs=4"],
        ),
    ],
)
def test_where_the_time_goes_decides_what_would_help(
    seconds: dict[str, float], config: dict[str, Any], changes: list[str]
) -> None:
    found = judge("slow", config=PLAIN | config, resources=times(**seconds))
    assert [change.override for finding in found for change in finding.changes] == changes


def test_a_run_that_finished_nothing_is_not_slow() -> None:
    resources = table(env_steps=[0], checkpoints_s=[100.0])
    assert isinstance(judge("slow", config=PLAIN, resources=resources), Unknown)


def test_a_few_episodes_say_nothing_of_progress() -> None:
    metrics, config = table(approx_kl=[0.01] * 10), {"ppo": {"learning_rate": 0.001}}
    few, enough = (table(r=[1.0, -1.0] * pairs, outcome="", opponent="", stage="") for pairs in (90, 2000))
    assert isinstance(judge("not-learning", config=config, metrics=metrics, episodes=few), Unknown)
    assert isinstance(judge("not-learning", config=config, metrics=table(approx_kl=[0.01]), episodes=enough), Unknown)
    assert len(judge("not-learning", config=config, metrics=metrics, episodes=enough)) == 1


def test_a_run_of_seconds_is_not_slow() -> None:
    few = {"world": {"name": "brawl", "num_envs": 4}}
    measured = times(simulation=10.0)  # 100 env steps a second
    assert judge("slow", config=few | {"total_env_steps": 5_000}, resources=measured) == []
    found = judge("slow", config=few | {"total_env_steps": 60_000}, resources=measured)
    assert found[0].evidence[1] == "100 env steps per second, so 10 minutes for the whole run"


def test_every_diagnosis_is_described() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "diagnose.md").read_text(encoding="utf-8")
    section = page.partition("## Diagnoses")[2].partition("\n## ")[0]
    described = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert described == set(DIAGNOSES)


@pytest.mark.parametrize(
    ("segments", "opponents", "separation", "count"),
    # With 20 segments of 4 opponents chance gives 3 / 16 = 0.1875, and the line is at 0.375.
    [(20, 4, 0.37, 1), (20, 4, 0.38, 0), (8, 7, 0.1, 0), (20, 1, "", 0)],
)
def test_separation_is_compared_with_chance(segments: int, opponents: int, separation: object, count: int) -> None:
    rows = {"latent_norm": 2.0, "latent_std": 0.2, "segments": segments, "opponents": opponents}
    strategy = table(iteration=[1, 2, 3], separation=separation, **rows)
    assert len(judge("encoder-ignored", strategy=strategy)) == count


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ({"opponents": {"self": 2.0, "rock": 1.0}, "league": {"sampler": "pfsp"}}, ["opponents.self=1"]),
        ({"opponents": {"self": 1.0}, "league": {"sampler": "pfsp"}},
         ["opponents.rock=0.15", 'opponents."cycle:noise=0.5"=0.15']),
        ({"curriculum": [{"name": "all"}], "league": {"sampler": "recent"}}, ["league.sampler=pfsp"]),
    ],
)  # fmt: skip
def test_more_kinds_of_opponents_are_let_in_where_the_mix_is_set(config: dict[str, Any], changes: list[str]) -> None:
    opponents = table(env_steps=[0, 100], opponent="self-0001", kind="self", matches=100, wins=90, draws=0)
    bots = table(env_steps=[100, 100], opponent=["rock", "cycle:noise=0.5"], matches=50, wins=10, draws=0)
    found = judge("self-play-overfit", config=config, opponents=opponents, evaluations=bots)
    assert [change.override for change in found[0].changes] == changes


def run_of(returns: list[float], length: list[int] | int = 999, **config: Any) -> dict[str, Any]:
    """A run of one stage without opponents: its episodes, and the entropy of a continuous policy."""
    steps = [1000 * (index + 1) for index in range(len(returns))]
    episodes = table(env_steps=steps, r=returns, l=length, outcome="", opponent="", stage="")
    return {"episodes": episodes, "metrics": table(env_steps=steps, entropy=[1.4] * 5 + [-2.0] * 5), "config": config}


IDLE = [-45.0 + index for index in range(40)] + [-0.07 - 0.001 * (index % 3) for index in range(60)]
LEARNED = [*IDLE[:-1], 90.0]


@pytest.mark.parametrize(
    ("run", "says", "change"),
    [
        (run_of([-200.0] * 20, 200), "same return", "policy.state_dependent_exploration: false -> true"),
        (run_of([-200.0] * 30 + [-195.0] + [-200.0] * 30, 200), "same return",
         "policy.state_dependent_exploration: false -> true"),
        (run_of([0.0] * 20), "same return", "policy.state_dependent_exploration: false -> true"),
        (run_of([0.0] * 20, rewards={"base": "sparse"}), "same return", "rewards.base: sparse -> dense"),
        (run_of([0.0] * 20, policy={"state_dependent_exploration": True}), "same return",
         "policy.normalize.observations: false -> true"),
        (run_of([0.0] * 20, policy={"state_dependent_exploration": True, "normalize": {"observations": True}}),
         "same return", "ppo.ent_coef: null -> 0.01"),
        (run_of([0.0] * 20, algorithm="td3", td3={"learning_starts": 1000}), "same return",
         "td3.learning_starts: 1000 -> 10000"),
        (run_of(IDLE), "learned to do nothing", "policy.state_dependent_exploration: false -> true"),
    ],
)  # fmt: skip
def test_a_run_without_a_learning_signal_is_found(run: dict[str, Any], says: str, change: str) -> None:
    (finding,) = judge("not-learning", **run)
    assert says in finding.what
    assert "monitor.csv" in finding.evidence[0]
    assert change in [each.line for each in finding.changes]


@pytest.mark.parametrize(
    "run",
    [
        run_of(LEARNED),  # a reward was found once
        run_of([-1200.0] * 50 + [-150.0 - index for index in range(50)], 200),  # Pendulum: who does well pays too
        run_of(IDLE, [999 - index % 2 for index in range(100)]),  # episodes end by themselves
        run_of([float(index % 2) for index in range(100)]),
        run_of([0.0] * 192 + [1.0] * 8),  # it begins to find a rare reward
        run_of(
            IDLE, rewards={"weights": {"effort": {"points": [[0, 1.0], [50_000, 0.0]]}}}
        ),  # penalties were faded out
    ],
)
def test_what_only_looks_like_no_signal_is_left_alone(run: dict[str, Any]) -> None:
    found = judge("not-learning", **run)
    assert isinstance(found, Unknown) or all("did not improve" in each.what for each in found)


def test_a_few_episodes_are_too_few_for_a_signal() -> None:
    assert isinstance(judge("not-learning", **run_of([0.0] * 9)), Unknown)
