"""What a Mimic environment is, before any walker of it exists: its spec, and which settings fit each other."""

import numpy as np
from gymnasium import spaces

from ludus.core.errors import ConfigError
from ludus.envs import base
from ludus.envs.base import EnvSpec
from ludus.worlds.mimic import observation
from ludus.worlds.mimic.body import Joint
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.scoring import Scorer

_OF_BUILT_IN_BODIES = frozenset(("walker", "height_m", "mass_kg", "joint_damping", "solver_iterations"))


def make_spec(config: MimicConfig, joints: tuple[Joint, ...]) -> EnvSpec:
    """Describe an environment with these settings, whose walker has these joints."""
    mirror = None
    if not config.mirror:
        reflection = observation.observation_reflection(joints, stride=True)
        mirror = base.Mirror({"vector": reflection}, observation.joint_reflection(joints))
    return EnvSpec(
        name="mimic",
        version=1,
        teams=(0,),
        observation_space=observation.observation_space(len(joints)),
        action_space=spaces.Box(-1.0, 1.0, (len(joints),), np.float32),
        rate_hz=config.control_rate_hz,
        step_limit=round(config.episode_s * config.control_rate_hz),
        events=(*Scorer.events(joints), "distance", "pushes", "falls", "completed", "faults"),
        state_metrics=(*Scorer.state_metrics(joints), "desired", "phase"),
        blocks={"vector": observation.observation_blocks(len(joints))},
        fields={"vector": observation.observation_fields(joints)},
        device_types=("cpu",) if config.physics == "mujoco" else ("cpu", "cuda"),
        mirror=mirror,
    )


def check_settings(config: MimicConfig) -> None:
    """Raise ConfigError where settings do not fit each other."""
    steps = 1.0 / (config.control_rate_hz * config.physics_step_s)
    if steps < 0.999 or abs(steps - round(steps)) > 1e-6:
        raise ConfigError(
            f"a decision at {config.control_rate_hz:g} Hz takes {steps:g} physics steps of {config.physics_step_s:g} "
            "s; it must be a whole number: change control_rate_hz or physics_step_s"
        )
    of_people = sorted(_OF_BUILT_IN_BODIES & config.model_fields_set)
    if config.body is not None and of_people:
        raise ConfigError(f"{', '.join(of_people)} cannot be set for a body of your own, whose file decides")
    for name, pair in (("speed_range", config.speed_range), ("friction_range", config.friction_range)):
        if pair is not None and pair[0] > pair[1]:
            raise ConfigError(f"{name} must go from low to high, got {pair[0]:g} to {pair[1]:g}")
