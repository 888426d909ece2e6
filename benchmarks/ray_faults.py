"""A population of four trials on a real Ray cluster of three machines that loses a worker, a machine and its head.

Each machine is a raylet of its own on this computer. The sweep is `ludus sweep` with population-based training in a
process of its own. In the middle a worker is killed, then a raylet, then the sweep; then it is resumed with
`--retry-failed`. It passes if all four trials finish, and no evaluation that was written down is lost or repeated.

    python benchmarks/ray_faults.py                 some minutes on two cores

What a league does in the same case is a test: `pytest tests/scale/test_ray.py -k survives`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

SWEEP = """\
world: {name: identity, num_envs: 8}
total_env_steps: 16_000
policy: {net_arch: {pi: [4], vf: [4]}}
ppo: {n_steps: 8, batch_size: 64, n_epochs: 1, learning_rate: {sweep: log_uniform, low: 1e-4, high: 1e-1}}
evaluation: {every_env_steps: 4_000, matches: 2}
checkpoints: {every_env_steps: 1_000}
monitoring: {tensorboard: false, resources: false}
sweep: {trials: 4, seeds: 1, scheduler: pbt, pbt: {quantile: 0.5}}
"""
STORE = {"object_store_memory": 80_000_000}
LIMIT_S = 300.0


def main() -> None:
    """Runs the sweep, breaks it, resumes it and checks what is left."""
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False} | STORE)
    try:
        for _ in range(3):
            cluster.add_node(num_cpus=2, wait=False, **STORE)
        cluster.wait_for_nodes()
        with tempfile.TemporaryDirectory() as folder:
            check(cluster, Path(folder))
    finally:
        cluster.shutdown()
    print("[OK] all trials are finished, and nothing was lost or repeated")


def check(cluster: Any, folder: Path) -> None:  # noqa: ANN401 - Ray is optional
    """Breaks a sweep in a folder and checks that it finishes."""
    (folder / "sweep.yaml").write_text(SWEEP)
    out = folder / "out"
    command = [sys.executable, "-m", "ludus", "sweep"]
    sweep = subprocess.Popen(
        [*command, str(folder / "sweep.yaml"), "--out", str(out), "--address", cluster.address]
    )  # fmt: skip
    wait(sweep, lambda: evaluations(out) >= 2, "two evaluations")
    workers()[0].kill()
    print("[OK] a worker was killed")
    before = evaluations(out)
    wait(sweep, lambda: evaluations(out) > before, "an evaluation after it")
    raylets = {each.all_processes["raylet"][0].process.pid: each for each in cluster.worker_nodes}
    cluster.remove_node(raylets[workers()[0].ppid()], allow_graceful=False)
    print("[OK] a raylet was killed")
    wait(sweep, lambda: sum(trial["state"] == "failed" for trial in trials(out)) >= 1, "its trials are lost")
    sweep.kill()
    sweep.wait()
    print("[OK] the sweep was killed")
    kept = {trial["number"]: trial for trial in trials(out)}
    resumed = [*command, "--resume", str(out), "--retry-failed", "--address", cluster.address]
    for _ in range(2):  # a population that lost a trial may end before it: then only the lost ones go on
        subprocess.run(resumed, check=False, timeout=LIMIT_S)
    found = {trial["number"]: trial for trial in trials(out)}
    assert {trial["state"] for trial in found.values()} == {"finished"}, found
    assert len(found) == 4
    for number, trial in kept.items():
        if not trial["forks"] and not found[number]["forks"]:
            points = trial["points"][0]
            assert found[number]["points"][0][: len(points)] == points
        steps = [step for step, _ in found[number]["points"][0]]
        assert steps == sorted(set(steps)), "an evaluation is repeated"


def workers() -> list[psutil.Process]:
    """Returns the processes that train trials."""
    own = psutil.Process().children(recursive=True)
    return [each for each in own if each.name().startswith(("ray::Resource", "ray::Sweep"))]


def trials(out: Path) -> list[dict[str, Any]]:
    """Returns the trials in the results."""
    file = out / "results.json"
    found: list[dict[str, Any]] = json.loads(file.read_text())["trials"] if file.exists() else []
    return found


def evaluations(out: Path) -> int:
    """Returns the evaluations of all trials."""
    return sum(len(points) for trial in trials(out) for points in trial["points"])


def wait(process: "subprocess.Popen[bytes]", is_done: Callable[[], bool], what: str) -> None:
    """Waits for something while the sweep runs."""
    limit_s = time.monotonic() + LIMIT_S
    while not is_done():
        assert process.poll() is None, f"the sweep ended before: {what}"
        assert time.monotonic() < limit_s, f"it took too long: {what}"
        time.sleep(0.05)
    print(f"[OK] {what}", flush=True)


if __name__ == "__main__":
    main()
