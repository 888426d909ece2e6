"""Makes what steers a run, and checks before that its settings fit the world."""

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.curriculum.steering_config import AdaptiveConfig, StrategicConfig, goal_term
from ludus.curriculum.strategic import OTHERS
from ludus.envs.base import EnvSpec
from ludus.training.config import TrainConfig
from ludus.training.steered import Steering
from ludus.training.steering_adaptive import AdaptiveSteering
from ludus.training.steering_strategic import StrategicSteering, kind_names
from ludus.training.workbench import Workbench, make_rewards


def make_steering(config: TrainConfig, bench: Workbench) -> Steering | None:
    """Makes what steers a run; None if nothing does.

    Raises:
        ConfigError: The settings do not fit the run.
        UnknownNameError: A measure, a reward term or a kind of action does not exist.
    """
    check_steering(bench.env.spec, config)
    if isinstance(config.steering, AdaptiveConfig):
        return AdaptiveSteering(config.steering, bench)
    if isinstance(config.steering, StrategicConfig):
        return StrategicSteering(config.steering, bench, config.total_env_steps)
    return None


def check_steering(spec: EnvSpec, config: TrainConfig) -> None:
    """Raises what `make_steering` does."""
    steering = config.steering
    if steering is None:
        return
    measures: tuple[str, ...]
    if isinstance(steering, AdaptiveConfig):
        measures, terms = (steering.measure,), tuple(steering.exploring)
        length, key = steering.patience, "patience"
    else:
        measures, terms = steering.measures(), tuple(map(goal_term, steering.goals))
        length, key = steering.ahead, "ahead"
        valid = (*kind_names(spec), OTHERS)
        if steering.against not in valid:
            raise UnknownNameError(f"kind of action of {spec.id} to compare with", steering.against, valid)
    for name in measures:
        if name not in spec.measures:
            raise UnknownNameError(f"measure of {spec.id}", name, spec.measures)
    make_rewards(spec, config).steer(dict.fromkeys(terms, 1.0))
    if length >= config.ppo.steps:
        raise ConfigError(
            f"steering.{key} is {length}, but a rollout has {config.ppo.steps} steps; use a smaller one, or longer "
            "rollouts (ppo.steps)"
        )
