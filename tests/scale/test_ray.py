"""Sweeps, leagues, tournaments and benchmarks on a real Ray: one cluster of several raylets for all tests of this file.

One sweep runs in a process of its own, with a Ray of its own, and is killed; one league loses its workers, a raylet and
its head.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tests.commands import Command, Commands
from tests.scale.conftest import Write
from tests.scale.worker_server import forked_workers

from ludus.core.errors import ConfigError
from ludus.envs.registry import make_env
from ludus.evaluation.benchmark import run_benchmark
from ludus.evaluation.entries import load_entries
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.players import load_playable_agent
from ludus.evaluation.suite import load_suite
from ludus.evaluation.tournament import run_tournament
from ludus.policies.agent import Agent
from ludus.reports.league_page import write_league_page
from ludus.scale.cluster import ray_session
from ludus.scale.config import load_sweep, read_sweep
from ludus.scale.league import resume_league, scale_league, start_league
from ludus.scale.league_folder import LeagueFolder
from ludus.scale.population import load_league
from ludus.scale.results import SweepResults, TrialRecord, read_results
from ludus.scale.spread import spread_benchmark, spread_schedule
from ludus.scale.sweep import SweepDriver, resume_sweep, start_sweep
from ludus.training import TrainConfig, train
from ludus.watch.runs import find_runs

if not all(map(find_spec, ("ray", "optuna", "sklearn"))):  # without importing Ray, which then listens everywhere
    pytest.skip("needs ray, optuna and scikit-learn: the extra scale", allow_module_level=True)
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.ray,
]  # those of Ray, which are many, are not ours to fix

RATE = "ppo.learning_rate"
LIMIT_S = 300.0  # on a busy machine Ray alone takes minutes
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
STORE = {"object_store_memory": 80_000_000}
# A machine that is lost is noticed within two seconds instead of fifteen; one that is slow to answer is not lost.
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_timeout_ms": 20_000}
ONE_WORKER = "max_concurrent: 1"  # importing torch takes most of the time


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    """A cluster of a head without cores and a machine, each a raylet of its own, for everything in this process."""
    os.environ |= LOOPBACK
    from ray.cluster_utils import Cluster

    with forked_workers() as workers:
        machine = STORE | workers
        head = {"num_cpus": 0, "include_dashboard": False, "include_log_monitor": False, "_system_config": QUICK}
        cluster = Cluster(initialize_head=True, head_node_args=head | machine)
        try:
            cluster.add_node(num_cpus=2, **machine)
            with ray_session(cluster.address):
                yield SimpleNamespace(ray=cluster, address=cluster.address, machine=machine)
        finally:
            cluster.shutdown()


def wait_for(command: Command, is_done: Callable[[], bool]) -> None:
    """Wait until something is done while a command runs."""
    limit_s = time.monotonic() + LIMIT_S
    while not is_done():
        assert command.is_running, command.said
        assert time.monotonic() < limit_s, command.said
        time.sleep(0.02)


def sessions_of(results: SweepResults, number: int) -> list[Any]:
    """Return all sessions of the runs of a trial."""
    runs = sorted((results.folder / "trials" / f"trial-{number:04}").glob("**/seed-*/run.json"))
    return [session for run in runs for session in json.loads(run.read_text())["sessions"]]


def check_loopback(processes: list[psutil.Process]) -> None:
    """Check that the processes of a Ray listen on loopback alone, and report nothing."""
    assert any("raylet" in process.name() for process in processes)
    sockets = [each for process in processes for each in process.net_connections("inet")]
    found = [each for each in sockets if each.status == psutil.CONN_LISTEN]
    assert found
    assert {each.laddr.ip.removeprefix("::ffff:") for each in found} == {"127.0.0.1"}
    raylet = next(process for process in processes if "raylet" in process.name())
    assert raylet.environ()["RAY_USAGE_STATS_ENABLED"] == "0"


def test_random_search_reports_a_trial_that_fails(write_sweep: Write, tmp_path: Path) -> None:
    weights = "rewards: {weights: {sweep: choice, values: [{}, {no_such_term: 1.0}]}}"
    file = write_sweep(f"trials: 2, seeds: 2, search: random, scheduler: none, seed: 3, {ONE_WORKER}", weights)
    told: list[tuple[int, str]] = []
    plan, folder = load_sweep(file), tmp_path / "folder"
    results = start_sweep(plan, folder, listener=lambda _, trial: told.append((trial.number, trial.state)))
    good, bad = results.trials.values()  # a failed one costs its worker, so that it comes last
    assert [trial.values["rewards.weights"] for trial in (good, bad)] == [{}, {"no_such_term": 1.0}]
    assert good.values[RATE] != bad.values[RATE]
    assert bad.state == "failed"
    assert bad.reason.startswith("UnknownNameError: unknown reward term")
    assert "no_such_term" in bad.reason
    assert good.state == "finished"
    assert [len(points) for points in good.points] == [4, 4]
    assert len(sessions_of(results, good.number)) == 2  # no scheduler, so no run was paused
    assert next(state for number, state in told if number == good.number) == "running"
    assert results.reason == ""
    assert results.best is good
    assert read_results(plan, folder).trials == results.trials
    assert {path.name for path in folder.iterdir()} == {"run.lock", "sweep.yaml", "results.json", "best.yaml", "trials"}
    again = resume_sweep(read_sweep(folder), folder)  # nothing is left to do
    assert again.trials == results.trials
    with pytest.raises(ConfigError, match="--resume"):
        start_sweep(plan, folder)
    with pytest.raises(ConfigError, match="cpus_per_trial is 1000"):
        start_sweep(plan.changed(["sweep.cpus_per_trial=1000"]), tmp_path / "large")


def check_forks(results: SweepResults, evaluations: int) -> None:
    """Check that trials were forked from each other's exact states, by the files of their runs."""
    assert {trial.state for trial in results.trials.values()} == {"finished"}
    forked = [trial for trial in results.trials.values() if trial.forks]
    assert forked
    for trial in forked:
        fork, seed = trial.forks[-1], f"seed-{results.plan.config.seeds - 1}"
        assert fork["source"] in {other.name for other in results.trials.values()} - {trial.name}
        assert trial.forks[0]["before"] != trial.values
        assert 1e-4 <= trial.values[RATE] <= 1e-1
        run = results.folder / "trials" / trial.name / f"fork-{len(trial.forks)}" / seed / "run.json"
        parent = json.loads(run.read_text())["parent"]
        assert fork["source"] in parent["folder"]
        assert parent["env_steps"] == 64 * fork["evaluations"]
        assert {len(points) for points in trial.points} == {evaluations}


def test_a_signal_saves_all_runs_and_the_population_resumes(write_sweep: Write, tmp_path: Path) -> None:
    section = f"trials: 2, seeds: 2, scheduler: pbt, pbt: {{quantile: 0.5}}, {ONE_WORKER}"
    plan = load_sweep(write_sweep(section), ["total_env_steps=192"])

    def listen(_: SweepResults, trial: TrialRecord) -> None:
        if trial.evaluations and not sent:  # the other trial waits for its turn, or is paused
            sent.append(trial.number)
            os.kill(os.getpid(), signal.SIGTERM)

    sent: list[int] = []
    stopped = start_sweep(plan, tmp_path / "folder", listener=listen)
    assert stopped.signal_number == signal.SIGTERM
    assert stopped.reason == "SIGTERM came"
    assert {trial.state for trial in stopped.trials.values()} == {"waiting"}
    assert json.loads((stopped.folder / "results.json").read_text())["state"] == "stopped"
    results = resume_sweep(read_sweep(stopped.folder), stopped.folder)
    assert results.reason == ""
    check_forks(results, evaluations=3)


def test_no_trial_begins_when_the_time_is_up(write_sweep: Write, tmp_path: Path) -> None:
    plan = load_sweep(write_sweep("max_hours: 1"))
    late = SweepResults(plan, tmp_path, earlier_s=3601.0)
    assert not SweepDriver(SweepResults(plan, tmp_path), (), lambda *_: None).is_over()
    SweepDriver(late, (), lambda *_: None).run()
    assert late.trials == {}
    document = json.loads((tmp_path / "results.json").read_text())
    assert (document["state"], document["reason"]) == ("stopped", "sweep.max_hours is used up")
    assert resume_sweep(plan, tmp_path).reason == "sweep.max_hours is used up"


def test_a_sweep_whose_first_trials_all_fail_is_stopped(write_sweep: Write, tmp_path: Path) -> None:
    results = SweepResults(load_sweep(write_sweep()), tmp_path)
    driver = SweepDriver(results, (), lambda *_: None)
    for place in range(3):
        assert not driver.is_over()
        record = results.add({RATE: 0.01 * (place + 1)})
        driver.study.add(record)
        driver.fail(record, "RuntimeError: the disk is gone", is_lost=False)
    assert driver.is_over()
    assert driver.reason == "the first 3 trials failed, the last one by: RuntimeError: the disk is gone"
    assert (tmp_path / "stop").exists()


def test_a_trial_whose_process_is_killed_continues(write_sweep: Write, tmp_path: Path) -> None:
    plan = load_sweep(write_sweep(f"trials: 2, seeds: 1, asha: {{reduction_factor: 2}}, {ONE_WORKER}"))
    killed: list[int] = []

    def listen(_: SweepResults, trial: TrialRecord) -> None:
        if trial.state == "running" and trial.evaluations == 1 and not killed:
            lock = tmp_path / "folder" / "trials" / trial.name / "seed-0" / "run.lock"
            os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)
            killed.append(trial.number)

    results = start_sweep(plan, tmp_path / "folder", listener=listen)
    assert len(killed) == 1
    assert {number: (trial.state, trial.replaced) for number, trial in results.trials.items()} == {
        number: ("finished", int(number == killed[0])) for number in (1, 2)
    }
    assert results.reason == ""
    assert [session["start_env_steps"] for session in sessions_of(results, killed[0])] == [0, 64, 128]
    assert [[point[0] for point in seed] for seed in results.trials[killed[0]].points] == [[64, 128, 192, 256]]
    assert read_results(plan, results.folder).trials == results.trials


def test_a_killed_sweep_resumes_and_repeats_nothing(write_sweep: Write, tmp_path: Path, commands: Commands) -> None:
    folder = tmp_path / "folder"
    file = write_sweep(f"trials: 4, seeds: 1, asha: {{reduction_factor: 2}}, {ONE_WORKER}")
    command, results_file = commands.start("sweep", file, "--out", folder), folder / "results.json"
    wait_for(command, lambda: '"state": "finished"' in (results_file.read_text() if results_file.exists() else ""))
    family = command.children()
    names = {each.pid: each.name() for each in family}
    check_loopback([psutil.Process(command.pid), *family])
    assert {name for name in names.values() if "Agent" in name}  # which Ray itself ends after a minute only
    temporary = [Path(word) for each in family for word in each.cmdline() if Path(word).name.startswith("ludus-ray-")]
    assert temporary
    assert temporary[0].is_dir()
    code, said = commands.run("sweep", "--resume", folder)
    assert code == 2
    assert f"another process (pid {command.pid}" in said
    command.send(signal.SIGKILL)
    command.wait()
    gone, left = psutil.wait_procs(family, timeout=30)
    assert left == [], "processes of Ray outlive the sweep"
    assert gone
    assert not any(folder.exists() for folder in temporary)
    before = read_results(read_sweep(folder), folder)
    ended = {trial.number: trial for trial in before.in_state("finished", "stopped")}
    assert 0 < len(ended) < 4
    sessions = {number: sessions_of(before, number) for number in ended}
    results = resume_sweep(read_sweep(folder), folder)
    assert len(results.trials) == 4
    assert len(results.in_state("finished", "stopped")) == 4
    for number, trial in ended.items():
        assert results.trials[number] == trial
        assert sessions_of(results, number) == sessions[number]
    assert results.wall_s > before.earlier_s


LEAGUE = """\
world: {name: duel, num_envs: 8, settings: {rounds: 3}}
total_env_steps: 10_000_000
policy: {net_arch: {pi: [4], vf: [4]}}
ppo: {n_steps: 10, batch_size: 40, n_epochs: 1}
monitoring: {tensorboard: false, resources: false}
population:
  main_exploiter: {learners: 0, env_steps: 2_000}
  league_exploiter: {learners: 0}
  snapshot_every_env_steps: 1_000
  newest: 2
  matches_per_pair: 8
  cpus_per_learner: 0.5
  cpus_per_evaluator: 0.5
"""


PAUSE = """\
import time

from ludus.rewards import StepInfo, reward_term


@reward_term("duel")
def pause(info: StepInfo) -> object:
    \"\"\"Nothing, after a while: learners that wait for the test leave the cores to others.\"\"\"
    time.sleep(0.05)
    return 0.0 * info.events["wins"]
"""


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a league's payoffs."""
    file = folder / "payoffs.jsonl"
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def read_learners(folder: Path) -> dict[str, Any]:
    """Return the learners in a league's state by name."""
    file = folder / "state.json"
    return {each["name"]: each for each in json.loads(file.read_text())["learners"]} if file.exists() else {}


def check_league(folder: Path) -> None:
    """Check that the table is the sum of all matches that were reported, each once, and that no member is lost."""
    lines, learners = read_lines(folder), read_learners(folder)
    by_id = {line["id"]: line for line in lines}
    assert len(by_id) == len(lines), "a report is counted twice"
    reports = 0
    for path in folder.glob("learners/*/gen-*/reports/*.json"):  # what the learners said, in their own files
        name, generation, number = path.parts[-4], int(path.parts[-3].removeprefix("gen-")), int(path.stem)
        if generation < learners[name]["generation"] or number <= learners[name]["reported"]:
            player = f"{name}-g{generation}-{number:04}"
            said = {
                opponent: counts for opponent, counts in json.loads(path.read_text())["matches"].items() if any(counts)
            }
            line = by_id.pop(player)
            assert line["source"] == "training"
            assert {opponent: counts for _, opponent, *counts in line["matches"]} == said
            assert {first for first, *_ in line["matches"]} <= {player}
            reports += 1
    assert reports > 3
    evaluated = [tuple(row[:2]) for line in by_id.values() for row in line["matches"]]
    assert {line["source"] for line in by_id.values()} == {"evaluation"}
    assert len(set(evaluated)) == len(evaluated), "a pair is evaluated twice"
    assert {sum(row[2:]) for line in by_id.values() for row in line["matches"]} == {8}
    sums: dict[tuple[str, str], list[int]] = {}
    for first, second, wins, draws, losses in (row for line in lines for row in line["matches"]):
        pair, counts = (
            ((first, second), (wins, draws, losses)) if first < second else ((second, first), (losses, draws, wins))
        )
        sums[pair] = [old + new for old, new in zip(sums.get(pair, [0, 0, 0]), counts, strict=True)]
    assert LeagueFolder(folder).table.rows() == [(*pair, *counts) for pair, counts in sorted(sums.items())]
    members = json.loads((folder / "state.json").read_text())["members"]
    assert {member["name"] for member in members} == {path.stem for path in (folder / "snapshots").iterdir()}
    assert Agent.load(folder / "snapshots" / f"{members[-1]['name']}.ludus").spec.id == "duel-v1"


def test_a_league_ends_when_its_main_agent_is_done(tmp_path: Path) -> None:
    file, folder = tmp_path / "league.yaml", tmp_path / "league"
    file.write_text(LEAGUE)
    plan = load_league(file, ["total_env_steps=6_000", "population.main_exploiter.learners=1"])
    told: list[str] = []
    result = start_league(plan, folder, listener=lambda level, text: told.append(f"{level} {text}"))
    assert (result.reason, result.signal_number) == ("", 0)
    learners = read_learners(folder)
    assert {name: learner["state"] for name, learner in learners.items()} == {
        "main-1": "finished", "main-exploiter-1": "finished"
    }  # fmt: skip
    assert learners["main-1"]["env_steps"] >= 6_000
    assert learners["main-1"]["replaced"] == 0
    document = json.loads((folder / "state.json").read_text())
    mains = [member["name"] for member in document["members"] if member["role"] == "main"]
    assert mains == [f"main-1-g1-{number:04}" for number in range(len(mains))]
    assert len(mains) >= 7
    assert [member["env_steps"] // 1_000 for member in document["members"] if member["role"] == "main"][:6] == [
        *range(6)
    ]
    assert "info main-1-g1-0000 joins the league at 0 env steps" in told
    check_league(folder)
    # Nobody is left to be evaluated: every member has met the two before it.
    met = {tuple(row[:2]) for line in read_lines(folder) if line["source"] == "evaluation" for row in line["matches"]}
    names = [member["name"] for member in document["members"]]
    assert met == {(names[i], names[j]) for i in range(len(names)) for j in range(max(0, i - 2), i)}
    page = write_league_page(folder).read_text()
    assert "default-src &#x27;none&#x27;" in page
    assert "main-1-g1-0006" in page
    assert folder / "learners" / "main-1" / "gen-0001" in {*find_runs(folder)}  # which `ludus watch` shows
    again = resume_league(folder)  # nothing is left to do
    assert again.reason == ""
    assert [line for line in read_lines(folder) if line["id"].startswith("main-1")][-1]["id"] == mains[-1]
    with pytest.raises(ConfigError, match="ludus league resume"):
        start_league(plan, folder)


def test_a_league_survives_the_loss_of_a_worker_a_machine_and_its_head(
    cluster: Any, tmp_path: Path, commands: Commands
) -> None:
    from ray._private.state import actors

    file, folder, plugin = tmp_path / "league.yaml", tmp_path / "league", tmp_path / "pause.py"
    file.write_text(f"{LEAGUE}rewards: {{weights: {{pause: 1.0}}}}\n")
    plugin.write_text(PAUSE)
    cluster.ray.add_node(num_cpus=2, **cluster.machine)  # one more machine, since one is lost
    arguments = ("league", "start", file, "--out", folder, "--address", cluster.address, "--plugin", plugin)
    head = commands.start(*arguments, environment=LOOPBACK)
    wait_for(head, lambda: any(line["source"] == "evaluation" for line in read_lines(folder)))
    scale_league(folder, ["evaluators=2", "main_exploiter.learners=1"])  # two join
    wait_for(head, lambda: read_learners(folder).get("main-exploiter-1", {}).get("reported", -1) >= 0)

    def reported() -> int:
        return int(read_learners(folder)["main-1"]["reported"])

    def replaced() -> list[int]:
        return [learner["replaced"] for learner in read_learners(folder).values()]

    def learners() -> list[psutil.Process]:
        return [each for each in psutil.Process().children(recursive=True) if "ray::LearnerWor" in each.name()]

    processes = learners()
    assert len(processes) == 2
    for process in processes:
        process.kill()
    wait_for(head, lambda: min(replaced()) >= 1)
    counted = reported()
    wait_for(head, lambda: reported() > counted + 1)
    nodes = {each["Pid"]: each["Address"]["NodeID"] for each in actors().values()}
    lost = next(each for each in cluster.ray.worker_nodes if each.node_id == nodes[learners()[0].pid])
    before = sum(replaced())
    cluster.ray.remove_node(lost, allow_graceful=False)
    wait_for(head, lambda: sum(replaced()) > before)  # by more than one where Ray first tries the lost machine again
    counted = reported()
    wait_for(head, lambda: reported() > counted + 1)
    head.send(signal.SIGKILL)
    head.wait()
    kept = read_lines(folder)
    steps = read_learners(folder)["main-1"]["env_steps"]
    scale_league(folder, ["evaluators=1", "main_exploiter.learners=0"])  # one leaves, and nobody runs

    members = json.loads((folder / "state.json").read_text())["members"]
    damaged = next(each["name"] for each in reversed(members) if each["role"] == "main")  # whom the next one meets
    damaged_file = folder / "snapshots" / f"{damaged}.ludus"
    damaged_file.write_bytes(damaged_file.read_bytes()[:-9])
    sent: list[str] = []
    warned: list[str] = []

    def listen(level: str, text: str) -> None:
        warned.extend([text] if level == "warning" and "snapshot cannot be used" in text else [])
        # Once: several may join in one turn, and the second signal ends the process.
        if sent or "joins the league" not in text or len(read_lines(folder)) <= len(kept) + 5:
            return
        if read_learners(folder)["main-1"]["env_steps"] > steps:  # reports of the time before come first
            sent.append(text)
            os.kill(os.getpid(), signal.SIGTERM)

    result = resume_league(folder, plugins=[str(plugin)], listener=listen)
    assert result.signal_number == signal.SIGTERM
    assert result.reason == "SIGTERM came"
    assert read_lines(folder)[: len(kept)] == kept
    assert read_learners(folder)["main-1"]["env_steps"] > steps
    assert read_learners(folder)["main-1"]["state"] == "waiting"
    assert json.loads((folder / "state.json").read_text())["session"] == 2
    assert [text.split()[0] for text in warned] == [damaged]
    damaged_file.unlink()
    check_league(folder)


def test_a_table_does_not_depend_on_who_plays_its_matches(tmp_path: Path) -> None:
    agents = []
    for seed in (1, 2):
        run = {"total_env_steps": 64, "seed": seed, "opponents": "rock", "ppo": {"n_steps": 8, "n_minibatches": 1}}
        config = {"world": {"name": "duel", "num_envs": 4}, "policy": {"net_arch": {"pi": [4], "vf": [4]}}} | run
        train(TrainConfig.model_validate(config), tmp_path / f"run-{seed}")
        agents.append(str(tmp_path / f"run-{seed}"))
    entries = load_entries([*agents, "rock", "cycle"], world="duel")
    players = [each.player for each in entries.accepted]
    schedule = MatchSchedule(entries.world, players, seed=3, max_envs=60)  # two batches of the round robin
    here = run_tournament(entries, schedule, matches=20, best_of=5)
    there = run_tournament(entries, spread_schedule(schedule), matches=20, best_of=5)
    assert json.dumps(here.as_json() | {"seconds": 0.0}) == json.dumps(there.as_json() | {"seconds": 0.0})
    assert sum(record.matches for record in here.records.values()) == 120
    agent = load_playable_agent(agents[0])
    (tmp_path / "suite.yaml").write_text(
        f"matches: 20\nrows: [{{opponent: rock}}, {{opponent: {agents[1]}, noise: 0.5, matches: 10}}]\n"
    )
    with make_env("duel", 1) as env:
        suite = load_suite(tmp_path / "suite.yaml", env)
    alone = run_benchmark(agent, suite, seed=3, max_envs=10)
    spread = run_benchmark(agent, suite, seed=3, max_envs=10, play=spread_benchmark())
    assert json.dumps(alone.as_json() | {"seconds": 0.0}) == json.dumps(spread.as_json() | {"seconds": 0.0})
    assert [row.numbers["win_rate"].matches for row in alone.rows] == [20, 10]
