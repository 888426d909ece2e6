"""One side of a comparison in `benchmarks/peers.py`: plays or trains in a process of its own, a window at a time.

    python benchmarks/peer_workloads.py NAME [OPTIONS AS JSON]

It prints one line of JSON with what was made and the versions of its packages. For every line on its input, a number
of CPU seconds, it works for about so long and prints steps, CPU seconds and seconds of that window. Only the packages
that `NAME` needs are imported, so the same file runs in the interpreter of every peer.
"""

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

CARTPOLE = "CartPole-v1"
GAMES = 8  # CartPoles of PPO, on both sides
ITERATION = 4096  # env steps of an iteration of PPO, on both sides
MINIBATCH = 256
TICKS = 8  # of 1/120 s in a decision of rocket and of rlgym
POOL = 512  # random actions drawn before the clock starts


class Workload(NamedTuple):
    """What is measured: a function that does `steps` steps per call, and what it plays."""

    step: Callable[[], object]
    steps: int
    about: dict[str, Any]
    packages: tuple[str, ...]


def pufferlib_ppo(epochs: int) -> Workload:
    """Make PufferLib's trainer on CartPole with Serial vectorization and two networks of 64x64, as those of SB3.

    Segments of 64 steps are the smallest change to its defaults with which a minibatch of 256 can be set. Uniform
    sampling of segments (`prio_alpha` 0), Adam and the other numbers are those of SB3's PPO. The thread that watches
    the machine and the dashboard are switched off.
    """
    import torch
    from pufferlib.pufferl import PuffeRL
    from torch import nn

    class Networks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.actor, self.critic = (
                nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, size))
                for size in (2, 1)
            )

        def forward(self, observations: torch.Tensor, state: object = None) -> tuple[torch.Tensor, torch.Tensor]:
            del state
            return self.actor(observations), self.critic(observations)

        forward_eval = forward

    torch.set_num_threads(1)
    config: dict[str, Any] = {
        "env": CARTPOLE, "device": "cpu", "seed": 0, "torch_deterministic": True, "cpu_offload": False,
        "precision": "float32", "compile": False, "compile_mode": "default", "compile_fullgraph": True,
        "use_rnn": False, "data_dir": os.devnull, "checkpoint_interval": 10**9, "total_timesteps": 10**9,
        "batch_size": ITERATION, "minibatch_size": MINIBATCH, "max_minibatch_size": MINIBATCH, "bptt_horizon": 64,
        "update_epochs": epochs, "optimizer": "adam", "learning_rate": 3e-4, "anneal_lr": False, "adam_beta1": 0.9,
        "adam_beta2": 0.999, "adam_eps": 1e-5, "gamma": 0.99, "gae_lambda": 0.95, "clip_coef": 0.2, "vf_coef": 0.5,
        "vf_clip_coef": 0.2, "ent_coef": 0.0, "max_grad_norm": 0.5, "vtrace_rho_clip": 1.0, "vtrace_c_clip": 1.0,
        "prio_alpha": 0.0, "prio_beta0": 1.0,
    }  # fmt: skip
    trainer = PuffeRL(config, _puffer_cartpoles(), Networks())
    trainer.utilization.stop()
    trainer.print_dashboard = lambda *_, **__: None

    def iterate() -> None:
        trainer.evaluate()
        trainer.train()

    return Workload(iterate, ITERATION, {"epochs": epochs}, ("pufferlib", "torch", "gymnasium", "numpy"))


def pufferlib_vector() -> Workload:
    """Make PufferLib's Serial vectorization of CartPole with random actions."""
    import numpy as np

    envs = _puffer_cartpoles()
    envs.reset(seed=0)
    pool = np.random.default_rng(0).integers(0, 2, (POOL, GAMES))
    return Workload(_cycle(envs.step, list(pool)), GAMES, {"games": GAMES}, ("pufferlib", "gymnasium", "numpy"))


def cartpole() -> Workload:
    """Make one CartPole of the interpreter's Gymnasium; its speed differs by version."""
    import gymnasium

    env = gymnasium.make(CARTPOLE)
    env.reset(seed=0)

    def step(action: int) -> None:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()

    return Workload(_cycle(step, [0, 1]), 1, {"games": 1}, ("gymnasium", "numpy"))


def _puffer_cartpoles() -> Any:  # noqa: ANN401 - the peers have no types
    import gymnasium
    import pufferlib.emulation
    import pufferlib.vector

    def make(buf: object = None, seed: int = 0) -> Any:  # noqa: ANN401
        wrap = pufferlib.emulation.GymnasiumPufferEnv
        return wrap(env_creator=lambda: gymnasium.make(CARTPOLE), buf=buf, seed=seed)

    return pufferlib.vector.make(make, backend=pufferlib.vector.Serial, num_envs=GAMES, seed=0)


def rlgym(meshes: str | None = None) -> Workload:
    """Make one rlgym environment of one car per side with random actions of its table; counts the steps of both cars.

    Args:
        meshes: Folder with collision meshes; None for floor, ceiling and side walls alone, which RocketSim has built
            in. The meshes that it is made for belong to a game.
    """
    import numpy as np
    import RocketSim  # type: ignore[import-not-found,unused-ignore]  # without types
    from rlgym.api import RLGym
    from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
    from rlgym.rocket_league.done_conditions import GoalCondition, NoTouchTimeoutCondition
    from rlgym.rocket_league.obs_builders import DefaultObs
    from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
    from rlgym.rocket_league.sim import RocketSimEngine
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

    with _unreachable_mesh() as planes:
        RocketSim.init(meshes or str(planes))  # can be told once per process; rlgym's own call then changes nothing
    env = RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()),
        obs_builder=DefaultObs(zero_padding=None),
        action_parser=RepeatAction(LookupTableAction(), repeats=TICKS),
        reward_fn=CombinedReward((GoalReward(), 10.0), (TouchReward(), 0.1)),
        termination_cond=GoalCondition(),
        truncation_cond=NoTouchTimeoutCondition(30.0),
        transition_engine=RocketSimEngine(),
    )
    env.reset()

    def step(actions: Any) -> None:  # noqa: ANN401
        _, _, terminated, truncated = env.step(dict(zip(env.agents, actions, strict=True)))
        if any(terminated.values()) or any(truncated.values()):
            env.reset()

    pool = np.random.default_rng(0).integers(0, 90, (POOL, 2, 1))
    about = {"games": 1, "ticks": TICKS, "arena": "mesh" if meshes else "planes"}
    return Workload(_cycle(step, list(pool)), 2, about, ("rlgym", "rlgym-rocket-league", "rocketsim", "numpy"))


def loco_mujoco() -> Workload:
    """Make loco-mujoco's human body without arms and without motion data, with random torques and its own reward.

    Data that are not in its package would only set the first pose of an episode.
    """
    import numpy as np
    from loco_mujoco.environments import HumanoidTorque

    speed = {"target_velocity": 1.25}
    env = HumanoidTorque(disable_arms=True, random_start=False, reward_type="target_velocity", reward_params=speed)
    env.reset()
    steps = 0

    def step(torques: Any) -> None:  # noqa: ANN401
        nonlocal steps
        _, _, has_fallen, _ = env.step(torques)
        steps += 1
        if has_fallen or steps == env.info.horizon:
            env.reset()
            steps = 0

    joints = env.info.action_space.shape[0]
    pool = np.random.default_rng(0).uniform(-1.0, 1.0, (POOL, joints))
    about = {"games": 1, "joints": joints} | _body(env._model, env.dt)  # noqa: SLF001 - it has no public name
    return Workload(_cycle(step, list(pool)), 1, about, ("loco-mujoco", "mujoco", "mushroom-rl", "numpy"))


def _body(model: Any, decision_s: float) -> dict[str, Any]:  # noqa: ANN401 - MuJoCo's types differ by version
    physics_steps = round(decision_s / model.opt.timestep)
    return {"degrees_of_freedom": model.nv, "physics_steps": physics_steps, "control_hz": round(1.0 / decision_s)}


@contextmanager
def _unreachable_mesh() -> Iterator[Path]:
    """Make a folder with the mesh that RocketSim requires: one triangle far below the floor."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "soccar").mkdir()
        triangle = struct.pack("<5i9f", 1, 3, 0, 1, 2, *(0.0, 0.0, -90.0, 1.0, 0.0, -90.0, 0.0, 1.0, -90.0))
        (folder / "soccar" / "far.cmf").write_bytes(triangle)
        yield folder


def ludus_ppo(epochs: int) -> Workload:
    """Make our PPO on CartPole with its default networks of 64x64."""
    import torch

    from ludus.training.components import Components
    from ludus.training.config import TrainConfig

    torch.set_num_threads(1)
    config = {
        "world": {"name": f"gym:{CARTPOLE}", "num_envs": GAMES, "device": "cpu"},
        "ppo": {"n_steps": ITERATION // GAMES, "batch_size": MINIBATCH, "n_epochs": epochs},
    }
    learner = Components(TrainConfig.model_validate(config)).learner
    return Workload(learner.iterate, ITERATION, {"epochs": epochs}, ("torch", "gymnasium", "numpy"))


def ludus_sim(world: str, games: int, **settings: object) -> Workload:
    """Make a world of ours on one thread with random players, with the rewards that `sim_speed.py` computes."""
    import torch
    from benchmarks.sim_speed import BENCHES, SimBench, random_play

    from ludus.envs.registry import make_env

    torch.set_num_threads(1)
    threads = {} if world.startswith("gym:") else {"threads": 1}
    env, bench = make_env(world, games, "cpu", config=threads | settings), BENCHES.get(world, SimBench())
    steps = games * (env.spec.seats if bench.agent_steps else 1)
    about: dict[str, Any] = {"games": games} | settings
    packages: tuple[str, ...] = ("torch", "numpy")
    if world == "mimic":
        from ludus.worlds.mimic.env import MimicEnv

        assert isinstance(env, MimicEnv)
        model = env.walker.model
        about |= {"joints": model.nu} | _body(model, 1.0 / env.spec.rate_hz)
        packages += ("mujoco",)
    return Workload(random_play(env, bench.rewards), steps, about, packages)


def _cycle(step: Callable[[Any], object], pool: list[Any]) -> Callable[[], None]:
    """Return a function that steps with the next of the drawn actions."""
    turn = 0

    def run() -> None:
        nonlocal turn
        step(pool[turn])
        turn = (turn + 1) % len(pool)

    return run


WORKLOADS: dict[str, Callable[..., Workload]] = {
    made.__name__: made
    for made in (pufferlib_ppo, pufferlib_vector, cartpole, rlgym, loco_mujoco, ludus_ppo, ludus_sim)
}


def main() -> None:
    """Makes the workload and measures windows until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is no answer
    options = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    workload = WORKLOADS[sys.argv[1]](**options)
    workload.step()
    packages = {name: version(name) for name in workload.packages}
    print(json.dumps(workload.about | {"packages": packages}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(window(workload, float(line))), file=answers, flush=True)
    os._exit(0)  # threads of a peer may not end by themselves


def window(workload: Workload, cpu_s: float) -> dict[str, float]:
    """Work for about so many CPU seconds. Another program on the same core lengthens seconds, not CPU seconds."""
    calls, started, cpu_started = 0, time.perf_counter(), time.process_time()
    while time.process_time() - cpu_started < cpu_s:
        workload.step()
        calls += 1
    used = time.process_time() - cpu_started
    return {"steps": calls * workload.steps, "cpu_s": used, "seconds": time.perf_counter() - started}


if __name__ == "__main__":
    main()
