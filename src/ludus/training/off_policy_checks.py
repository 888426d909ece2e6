"""What is checked before an off-policy run: its replay buffer, two iterations in small, and the memory it will take."""

from ludus.algorithms.off_policy.config import OffPolicyConfig, check_world
from ludus.algorithms.off_policy.learner import OffPolicyLearner
from ludus.core.errors import ConfigError, VerificationError
from ludus.envs.base import EnvSpec
from ludus.training.config import TrainConfig
from ludus.training.guard import Guard
from ludus.training.memory_estimate import MemoryEstimate, evaluation_games, game_bytes, learner_rows
from ludus.training.workbench import Workbench

_ACTIVATION_COPIES = 6  # activations of actor, critics and targets that a gradient step holds at once


def small_off_policy(config: TrainConfig, rows: int, steps: int) -> OffPolicyConfig:
    """Returns the settings of a copy of the run with `rows` rows and at most `steps` steps an iteration."""
    steps = min(steps, config.off_policy.train_freq)
    size = {"train_freq": steps, "buffer_size": 2 * steps * rows, "learning_starts": 0, "batch_size": steps * rows}
    delay = config.off_policy.policy_delay  # so that the actor is updated too
    return config.off_policy.model_copy(update=size | {"gradient_steps": delay})


def check_replay(spec: EnvSpec, config: TrainConfig) -> str:
    """Says what an iteration is.

    Raises:
        ConfigError: The world is not one for the algorithm, or the replay buffer cannot hold an iteration.
    """
    assert config.algorithm != "ppo"  # noqa: S101 - for the type checker
    check_world(spec, config.algorithm)
    rows, off_policy = learner_rows(config, spec), config.off_policy
    size = off_policy.train_freq * rows
    if size > off_policy.buffer_size:
        raise ConfigError(
            f"off_policy.buffer_size {off_policy.buffer_size} is less than the {size} env steps of one iteration; "
            "raise it, or lower off_policy.train_freq or world.num_games"
        )
    steps = off_policy.gradient_steps or size
    return (
        f"batch: {off_policy.train_freq} steps x {rows:,} rows, then {steps:,} gradient steps of "
        f"{off_policy.batch_size:,} out of the last {off_policy.buffer_size:,}"
    )


def check_learning(bench: Workbench) -> str:
    """Learns as the run will, from a rollout that has joined the replay buffer.

    Raises:
        VerificationError: A number is not finite.
    """
    guard, learner = Guard(bench), bench.learner
    learner.update()  # of the rollout before, for which the buffer was still empty
    guard.begin()
    learner.collect()
    learner.update()
    guard.look()
    metrics = learner.metrics()
    fault = guard.verdict(metrics)
    if fault is not None:
        raise VerificationError(f"a number is not finite: it began in the {fault}; mend the world or the rewards")
    bench.trace.read()
    return f"update: policy loss {metrics['policy_loss']:.3g}, value loss {metrics['value_loss']:.3g}"


def estimate_off_policy(config: TrainConfig, bench: Workbench) -> MemoryEstimate:
    """Scales what a small copy of a run takes; see `estimate_memory`."""
    learner, spec = bench.learner, bench.env.spec
    assert isinstance(learner, OffPolicyLearner)  # noqa: S101 - for the type checker
    off_policy, rollout = config.off_policy, learner.rollout
    frames, small_frames = off_policy.train_freq * learner_rows(config, spec), rollout.steps * rollout.rows
    learned = sum(part.tensor.nbytes for part in learner.learned())
    widths = (*config.policy.net_arch.pi, *config.policy.net_arch.vf, bench.policy.observations.output_size)
    game = game_bytes(bench)
    games = config.world.num_games * game
    recorded = sum(tensor.nbytes for tensor in rollout.transitions().values()) * frames // small_frames
    return MemoryEstimate(
        {
            "replay buffer": learner.replay.nbytes() * off_policy.buffer_size // learner.config.buffer_size,
            "parameters and optimiser": 2 * learned,  # one for gradients
            "rollout": recorded,
            "trace": bench.trace.memory_bytes() * frames // small_frames,
            "minibatch": 4 * _ACTIVATION_COPIES * off_policy.batch_size * sum(widths),
            "games": games,
            # The loop keeps the last finite state, and holds it until it has made the next; the buffer is not copied.
            "states to go back to": 2 * (learned + recorded + games),
            "evaluation": evaluation_games(config, spec) * game,
        }
    )
