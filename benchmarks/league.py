"""What many opponents cost: 32 different snapshots in one call, beside one snapshot and beside a loop over the 32.

All play the same 2,048 rows of Brawl's observation and give the same things: actions, log probabilities, values and
memory; the league itself asks for no values. On a GPU every way is a CUDA graph, but for the loop. The ways take
turns, so that noise of the machine meets all of them; medians are reported.

    python benchmarks/league.py --device cpu
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ludus import make_env
from ludus.envs.base import EnvSpec
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy
from ludus.rollout.inference import make_inference

POOL = 200  # slots that there is room for, of which SNAPSHOTS are used
_HIDDEN = {"pi": [128, 128], "vf": [128, 128]}
_POLICIES: dict[str, dict[str, Any]] = {
    "mlp": {"net_arch": _HIDDEN},
    "lstm": {"recurrent": {"size": 256}},
    "strategy": {
        "strategy": {},
        "recurrent": {"size": 512},
        "normalize": {"observations": True},
    },
}


def main() -> None:
    """Measures and prints a table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--snapshots", type=int, default=32)
    parser.add_argument("--policies", nargs="*", default=["mlp", "lstm"], choices=list(_POLICIES))
    parser.add_argument("--float32", action="store_true", help="no bfloat16 on a GPU")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    spec = make_env("brawl", 1, options.device).spec
    bfloat16 = options.device.startswith("cuda") and not options.float32
    report: dict[str, Any] = {
        "device": options.device,
        "rows": options.rows,
        "snapshots": options.snapshots,
        "bfloat16": bfloat16,
        "threads": torch.get_num_threads(),
    }
    for name in options.policies:
        config = PolicyConfig.model_validate(_POLICIES[name] | {"bfloat16": bfloat16})
        report[name] = measure(spec, config, options.device, options.rows, options.snapshots, options.repeats)
    if options.json:
        print(json.dumps(report, indent=2))
        return
    print(", ".join(f"{name} {value}" for name, value in report.items() if not isinstance(value, dict)))
    for name in options.policies:
        print(f"{name}:")
        for key, value in report[name].items():
            print(f"  {key:<28} {value:.4g}")


def measure(
    spec: EnvSpec, config: PolicyConfig, device: str, rows: int, snapshots: int, repeats: int
) -> dict[str, float]:
    """Times every way of playing one step of all rows; see the names in the result (milliseconds and ratios)."""
    policies = [Policy(spec, config, device) for _ in range(snapshots)]
    generator = torch.Generator(device).manual_seed(0)
    observations = {
        name: torch.randn((rows, *(space.shape or ())), generator=generator, device=device)
        for name, space in spec.observation_space.items()
    }
    noise = policies[0].draw_noise(1, rows, generator)[0]
    slots = torch.randint(0, snapshots, (rows,), generator=generator, device=device)
    ways: dict[str, Callable[[], object]] = {
        "one": _steps(policies[0], observations, noise),
        "loop": _loop(policies, observations, noise, slots),
    }
    choices: dict[str, tuple[Tensor, bool]] = {
        "one_stacked": (torch.zeros_like(slots), True),
        "stacked": (slots, True),
        "stacked_without_values": (slots, False),
    }
    for name, (chosen, values) in choices.items():
        stacked = StackedPolicy(policies[0], POOL, values=values)
        for slot, policy in enumerate(policies):
            stacked.load(slot, policy.state())
        stacked.choose(chosen)
        ways[name] = _steps(stacked, observations, noise)
        ways["choose"] = partial(stacked.choose, chosen)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 3):
        for name, way in ways.items():
            elapsed = _milliseconds(way, device)
            if repeat >= 3:
                times[name].append(elapsed)
    medians = {name: statistics.median(values) for name, values in times.items()}
    result = {f"{name}_ms": value for name, value in medians.items()}
    result["ratio_to_one"] = medians["stacked"] / medians["one"]
    result["ratio_to_one_stacked"] = medians["stacked"] / medians["one_stacked"]
    result["ratio_as_the_league_plays"] = medians["stacked_without_values"] / medians["one"]
    result["loop_ratio_to_one"] = medians["loop"] / medians["one"]
    return result


def _steps(policy: Policy | StackedPolicy, observations: Mapping[str, Tensor], noise: Tensor) -> Callable[[], object]:
    """Returns a step that goes on from the memory of the last one."""
    rows = noise.shape[0]
    stepper = make_inference(policy, rows, cuda_graphs=True)
    memory = policy.initial(rows)
    episode_starts = torch.zeros(rows, dtype=torch.bool, device=policy.device)

    def step() -> None:
        nonlocal memory
        memory = stepper.step(observations, memory, episode_starts, noise).memory

    return step


def _loop(
    policies: list[Policy], observations: Mapping[str, Tensor], noise: Tensor, slots: Tensor
) -> Callable[[], object]:
    """Returns a loop over policies, each of which steps its own rows."""
    groups = [(slots == slot).nonzero().squeeze(1) for slot in range(len(policies))]
    memories = [policy.initial(group.numel()) for policy, group in zip(policies, groups, strict=True)]
    episode_starts = torch.zeros(noise.shape[0], dtype=torch.bool, device=noise.device)

    def step() -> None:
        actions = noise.new_zeros(noise.shape[0], *policies[0].head.action_shape)
        for i, (policy, group) in enumerate(zip(policies, groups, strict=True)):
            frames = {name: tensor[group] for name, tensor in observations.items()}
            result = policy.step(frames, memories[i], episode_starts[group], noise[group])
            memories[i] = result.memory
            actions[group] = result.actions.to(actions.dtype)

    return step


def _milliseconds(work: Callable[[], object], device: str) -> float:
    if not device.startswith("cuda"):
        started = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - started)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


if __name__ == "__main__":
    main()
