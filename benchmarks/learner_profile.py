"""Where the time of a learner's iteration goes: how busy the device is, and with which kernels.

    PYTHONPATH=. python benchmarks/learner_profile.py --device cuda --cases mlp lstm

Profiles one iteration of the learners that `learn_speed.py` measures, after some that warm it up. On a CPU it lists
operators instead of kernels.
"""

import argparse
import time

import torch
from benchmarks.learn_speed import CASES, WORLD
from torch.profiler import ProfilerActivity, profile

from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.resolve import set_up_device
from ludus.training.run_folder import changed_config

_WARM_UP = 4  # iterations: the first compile, the next record CUDA graphs


def main() -> None:
    """Profile what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", nargs="*", default=["mlp", "lstm", "strategy"])
    parser.add_argument("--rows", type=int, default=25, help="kernels that are listed")
    parser.add_argument("--num-envs", type=int, help="instead of that of the case")
    parser.add_argument("--set", nargs="*", default=[], help="settings that replace those of the case, as KEY=VALUE")
    options = parser.parse_args()
    set_up_device(options.device)  # as a run does
    cases = CASES[options.device.partition(":")[0]]
    for name in options.cases:
        games, policy, ppo = cases[name]
        where = {"name": WORLD, "num_envs": options.num_envs or games, "device": options.device}
        settings = {"world": where, "policy": policy, "ppo": ppo, "opponents": "random"}
        config = changed_config(TrainConfig.model_validate(settings), options.set)
        with Components(config) as components:
            _profile(name, components, config.world.num_envs * config.hyperparameters.n_steps, options.rows)


def _profile(name: str, components: Components, env_steps: int, rows: int) -> None:
    learner, device = components.learner, components.policy.device
    for _ in range(_WARM_UP):
        learner.iterate()
    _wait(device)
    began_s = time.perf_counter()
    learner.collect()
    _wait(device)
    collected_s = time.perf_counter()
    learner.update()
    _wait(device)
    wall_s = time.perf_counter() - began_s
    learner.metrics()
    print(
        f"{name}: {env_steps / wall_s:,.0f} env steps/s; rollout {1000 * (collected_s - began_s):.1f} ms, "
        f"update {1000 * (wall_s - collected_s + began_s):.1f} ms"
    )
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as profiler:
        learner.collect()
        learner.update()
        _wait(device)
    learner.metrics()
    on_device = device.type == "cuda"
    events = [event for event in profiler.key_averages() if (event.device_type.name == "CUDA") == on_device]
    total = sum(_milliseconds(event, on_device=on_device) for event in events)
    print(f"  {total:.1f} ms in {sum(event.count for event in events):,} {'kernels' if on_device else 'operators'}")
    for event in sorted(events, key=lambda one: -_milliseconds(one, on_device=on_device))[:rows]:
        spent = _milliseconds(event, on_device=on_device)
        print(f"  {spent:9.2f} ms {100 * spent / total:5.1f} % {event.count:7,} calls  {event.key[:110]}")


def _milliseconds(event: "torch.autograd.profiler_util.FunctionEventAvg", *, on_device: bool) -> float:
    return float(event.self_device_time_total if on_device else event.self_cpu_time_total) / 1000.0


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
