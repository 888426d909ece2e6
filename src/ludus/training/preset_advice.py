"""What to run instead of a preset that would take hours on its device: the world's default preset, with its own time.

The budgets of presets do not tell how long they take: a preset with a large network can have fewer env steps than the
default and take many times as long on a CPU. So the other preset is measured like the run itself, which takes a few
seconds.
"""

from typing import NamedTuple

from ludus.core.faults import let_pass
from ludus.envs.registry import make_env
from ludus.training import estimates
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.presets import default_preset, load_run_config
from ludus.training.resolve import resolve

_MUCH_FASTER = 0.5  # of the run's own time; what saves less is no advice


class FasterPreset(NamedTuple):
    """A preset that takes much less time than a run."""

    name: str
    seconds: float  # of all its env steps, without evaluations


def faster_preset(config: TrainConfig, needed_s: float) -> FasterPreset | None:
    """Return the default preset of a run's world if it takes much less than `needed_s` on the run's device.

    None also if it cannot be measured here.
    """
    try:
        name = default_preset(config.world.name)
        if name is None:
            return None
        devices = [f"world.device={config.world.device}", f"learner_device={config.learner_device}"]
        run = load_run_config(config.world.name, name, overrides=devices)
        seconds = step_seconds(run) * run.total_env_steps
    except BaseException as error:  # advice about a run that is about to start is no reason for it to fail
        let_pass(error)
        return None
    return FasterPreset(name, seconds) if seconds < _MUCH_FASTER * needed_s else None


def step_seconds(asked: TrainConfig) -> float:
    """Measure how long an env step of a run takes, without evaluations and checkpoints."""
    run = resolve(asked)
    config, world = run.own, run.own.at_phase(0).world
    with make_env(world.name, 1, world.device, config=world.settings or None) as env:
        small = estimates.small_copy(config, env.spec)
    with Components(small) as components:
        components.learner.collect()  # compiles and allocates, which no later iteration does
        components.learner.update()
        estimate = estimates.estimate_time(config, components, config.total_env_steps)
    return estimate.step_s / run.process.count
