"""What a league of many GPUs would need: costs measured on this machine, and a simulation of the head with them.

Measured are the bytes and seconds of a snapshot, the head's time for a report and for the opponents of a learner with
100 and with 1,000 members, the way of a snapshot through Ray's object store to another process, and the matches that
one core evaluates per second. Env steps per second of a GPU come from `docs/data/learn_h200.json`.

The model: L learners report a snapshot every T seconds. The head counts reports one after the other, and each learner
gets a new mix of opponents at most every 2 s; both take longer with more members. A snapshot comes in once and goes out
to all learners over one link. `simulate` plays this as a queue for an hour.

    python benchmarks/league_scaling.py --json > docs/data/league_scaling.json
"""

import argparse
import heapq
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ludus.envs.registry import make_env
from ludus.evaluation.matches import MatchSchedule
from ludus.evaluation.players import Player
from ludus.league.payoffs import Record
from ludus.policies.agent import agent_checkpoint
from ludus.policies.policy import Policy
from ludus.scale.cluster import ray_session
from ludus.scale.league_folder import EVALUATION, TRAINING, LeagueFolder
from ludus.scale.league_workers import load_from_bytes
from ludus.scale.matchmaking import Learner, Member, assign, snapshot_name
from ludus.scale.population import LeaguePlan, PopulationConfig
from ludus.store import write_single_file
from ludus.training.presets import load_run_config

ROOT = Path(__file__).parents[1]
POLICIES = {"mlp": "quick", "strategy": "strategy"}  # of brawl
MATCHES_MEASURED = {"mlp": 16, "strategy": 1}  # per pair of three policies: the larger one takes minutes
GPU = {"mlp": "brawl_mlp", "strategy": "brawl_strategy"}  # rows of learn_h200.json
SNAPSHOT_S = {"mlp": 60.0, "strategy": 60.0}  # training between two snapshots of a learner
LEARNERS = (1, 8, 64, 256)
LINK_BYTES_PER_S = 10e9 / 8  # 10 Gbit/s
HOUR_S = 3600.0
ASSIGN_EVERY_S = 2.0
NEWEST, MATCHES = PopulationConfig().newest, PopulationConfig().matches_per_pair
FEW, MANY = 100, 1_000


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs of one kind of policy.

    Attributes:
        snapshot_bytes: Size of a snapshot.
        write_s: Time a learner takes to write one.
        load_s: Time a learner or evaluator takes to check and load one.
        transfer_bytes_per_s: From the head through Ray's object store to another process.
        report_s: The head's time per report: with no members, and more with each.
        assign_s: The head's time per mix of opponents likewise.
        matches_per_s: Matches that one core evaluates.
    """

    snapshot_bytes: int
    write_s: float
    load_s: float
    transfer_bytes_per_s: float
    report_s: tuple[float, float]
    assign_s: tuple[float, float]
    matches_per_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """What an hour of a league asks of its parts.

    Attributes:
        learners: How many there are.
        snapshots_per_s: Of all learners.
        in_bytes_per_s: Into the head.
        out_bytes_per_s: Out of the head.
        link_share: Of the link's capacity that goes out.
        head_share: Of the head's time at the end of the hour; above 1 it falls behind.
        evaluator_cores: Cores that evaluate every new member.
        delay_p95_s: From a snapshot to its last learner, 95 % of those of the hour's last tenth.
        disk_bytes: Snapshots of the hour.
    """

    learners: int
    snapshots_per_s: float
    in_bytes_per_s: float
    out_bytes_per_s: float
    link_share: float
    head_share: float
    evaluator_cores: float
    delay_p95_s: float
    disk_bytes: float


def main() -> None:
    """Measures, simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    document: dict[str, Any] = {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "link_gbit_per_s": 10,
        "rows": {},
    }
    gpus = json.loads((ROOT / "docs/data/learn_h200.json").read_text(encoding="utf-8"))
    for name, preset in POLICIES.items():
        costs = measure(preset, MATCHES_MEASURED[name], options.repeats)
        loads = [simulate(count, SNAPSHOT_S[name], costs) for count in LEARNERS]
        document["rows"][name] = {
            "costs": asdict(costs),
            "env_steps_per_s": gpus[GPU[name]]["steps_per_s"],
            "snapshot_every_s": SNAPSHOT_S[name],
            "loads": [asdict(load) for load in loads],
            "most_learners": most_learners(SNAPSHOT_S[name], costs),
        }
        if not options.json:
            print(f"[OK] {name}: {costs}")
            print("\n".join(f"     {load}" for load in loads))
            print(f"     saturates at {document['rows'][name]['most_learners']}")
    if options.json:
        print(json.dumps(document, indent=1))


def estimate(learners: int, snapshot_s: float, costs: Costs, seconds: float = HOUR_S) -> Load:
    """Returns the load at the end of an hour without any waiting."""
    rate = learners / snapshot_s
    members = round(rate * seconds)
    mixes_per_s = learners * min(1.0 / ASSIGN_EVERY_S, rate)
    out = rate * learners * costs.snapshot_bytes
    return Load(
        learners=learners,
        snapshots_per_s=rate,
        in_bytes_per_s=rate * costs.snapshot_bytes,
        out_bytes_per_s=out,
        link_share=out / LINK_BYTES_PER_S,
        head_share=rate * _at(costs.report_s, members) + mixes_per_s * _at(costs.assign_s, members),
        evaluator_cores=rate * NEWEST * MATCHES / costs.matches_per_s,
        delay_p95_s=costs.write_s + _at(costs.report_s, members) + costs.load_s,
        disk_bytes=members * costs.snapshot_bytes,
    )


def simulate(learners: int, snapshot_s: float, costs: Costs, seconds: float = HOUR_S, seed: int = 0) -> Load:
    """Plays an hour of a league: snapshots arrive, wait for the head, and wait for the link.

    Args:
        learners: How many learners there are.
        snapshot_s: Seconds between two snapshots of one of them, on average.
        costs: What everything costs.
        seconds: Length of the simulation.
        seed: Of the learners' jitter of 10 %.
    """
    draw = random.Random(seed)  # noqa: S311 - a simulation
    arrivals = [(draw.uniform(0.0, snapshot_s), index) for index in range(learners)]
    heapq.heapify(arrivals)
    head_free_s = link_free_s = mixed_s = 0.0
    delays: list[tuple[float, float]] = []
    while arrivals[0][0] < seconds:
        now_s, index = arrivals[0]
        heapq.heapreplace(arrivals, (now_s + snapshot_s * draw.uniform(0.9, 1.1), index))
        # Mixes of opponents since the last report: every learner gets one at most every two seconds.
        mixes = learners * min((now_s - mixed_s) / ASSIGN_EVERY_S, 1.0)
        mixed_s, members = now_s, len(delays)
        busy_s = _at(costs.report_s, members) + mixes * _at(costs.assign_s, members)
        head_free_s = max(head_free_s, now_s) + busy_s
        link_free_s = max(link_free_s, head_free_s) + learners * costs.snapshot_bytes / LINK_BYTES_PER_S
        delays.append((now_s, costs.write_s + link_free_s - now_s + costs.load_s))
    late = sorted(delay for at_s, delay in delays if at_s >= 0.9 * seconds) or [delays[-1][1]]
    delay_p95_s = late[int(0.95 * (len(late) - 1))]
    return replace(estimate(learners, snapshot_s, costs, seconds), delay_p95_s=delay_p95_s)


def most_learners(snapshot_s: float, costs: Costs) -> dict[str, int]:
    """Returns up to how many learners the head and the link keep up for an hour."""

    def most(share: Callable[[Load], float]) -> int:
        low, high = 0, 1 << 16
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if share(estimate(middle, snapshot_s, costs)) < 1.0 else (low, middle)
        return low

    return {"head": most(lambda load: load.head_share), "link": most(lambda load: load.link_share)}


def _at(cost: tuple[float, float], members: int) -> float:
    return cost[0] + cost[1] * members


def measure(preset: str, matches: int, repeats: int) -> Costs:
    """Measures one kind of policy of brawl."""
    config = load_run_config("brawl", preset, None, ("world.device=cpu",))
    with make_env("brawl", 1, "cpu") as env:
        spec = env.spec
    policies = [Policy(spec, config.playing_policy(), torch.device("cpu")) for _ in range(3)]
    checkpoint = agent_checkpoint(spec, policies[0].config, policies[0].state())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.ludus"
        write_s = fastest_s(lambda: write_single_file(file, checkpoint), repeats)
        content = file.read_bytes()
        load_s = fastest_s(lambda: load_from_bytes(content), repeats, time.process_time)
        few, many = (head_costs(Path(folder) / str(count), count, content, repeats) for count in (FEW, MANY))
    return Costs(
        snapshot_bytes=len(content),
        write_s=write_s,
        load_s=load_s,
        transfer_bytes_per_s=transfer(content, repeats),
        report_s=_line(few[0], many[0]),
        assign_s=_line(few[1], many[1]),
        matches_per_s=matches_per_s(policies, matches),
    )


def _line(few: float, many: float) -> tuple[float, float]:
    """Returns a cost as a constant and a part per member."""
    slope = max(many - few, 0.0) / (MANY - FEW)
    return max(few - slope * FEW, 0.0), slope


def fastest_s(work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Returns the shortest time of some work: what others do on the machine only makes it longer."""
    work()
    times = []
    for _ in range(repeats):
        started_s = clock()
        work()
        times.append(clock() - started_s)
    return min(times)


def head_costs(path: Path, count: int, content: bytes, repeats: int) -> tuple[float, float]:
    """Returns the head's seconds for one report, and for the opponents of one learner, with so many members."""
    plan = LeaguePlan(PopulationConfig(), load_run_config("brawl", "quick"))
    folder = LeagueFolder(path)
    names = [snapshot_name("main-1", 1, number) for number in range(count)]
    for place, name in enumerate(names):  # as if each had met the newest ones before it
        folder.members.append(Member(name, "main-1", "main", place))
        met = {(name, other): Record(30, 4, 30) for other in names[max(0, place - NEWEST) : place]}
        folder.report(f"matches-{place}", EVALUATION, met)
    folder.learner("main-1", "main")
    numbers = iter(range(count, count + repeats + 1))

    def report() -> None:
        name = snapshot_name("main-1", 1, next(numbers))
        folder.report(name, TRAINING, {(name, other): Record(3, 1, 3) for other in names[-16:]})
        folder.add_member(Member(name, "main-1", "main", 0), content)
        folder.save(plan, state="running", reason="", wall_s=0.0, evaluators=1)

    report_s = fastest_s(report, repeats)
    learner = Learner("main-1", "main", names[: -1 - 16 : -1])
    assign_s = fastest_s(
        lambda: assign(learner, folder.members[:count], folder.table, plan.config, 0.5), repeats, time.process_time
    )
    folder.close()
    return report_s, assign_s


def transfer(content: bytes, repeats: int) -> float:
    """Returns bytes per second from this process through Ray's object store into another one."""
    with ray_session():
        import ray  # not before: a session of our own binds Ray to loopback as it is imported

        take = ray.remote(_size)
        seconds = fastest_s(lambda: ray.get(take.remote(ray.put(content))), repeats)
    return len(content) / seconds


def _size(content: bytes) -> int:
    return len(content)


def matches_per_s(policies: list[Policy], matches: int) -> float:
    """Returns the matches per second of one core in a batch like that of an evaluator."""
    players = [Player(str(index), policy) for index, policy in enumerate(policies)]
    pairs = [(one, two) for two in range(len(players)) for one in range(two)]
    schedule = MatchSchedule("brawl", players, "cpu")
    started_s = time.process_time()
    schedule.play(pairs, matches)
    return len(pairs) * matches / (time.process_time() - started_s)


if __name__ == "__main__":
    main()
