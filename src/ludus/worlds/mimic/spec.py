"""What a Mimic environment is, before any walker of it exists: its spec, and which settings fit each other."""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from ludus.core.errors import ConfigError
from ludus.envs import base
from ludus.envs.base import EnvSpec
from ludus.worlds.mimic import observation
from ludus.worlds.mimic.body import Joint
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.reference import Part, Reference
from ludus.worlds.mimic.scoring import Scorer

_OF_BUILT_IN_BODIES = frozenset(("walker", "height_m", "mass_kg", "joint_damping", "solver_iterations"))


def make_spec(config: MimicConfig, joints: tuple[Joint, ...], reference: Reference) -> EnvSpec:
    """Describe an environment with these settings, whose walker has these joints and this reference to imitate."""
    parts, heights = reference.parts, observed_heights(reference)
    mirror, motions = None, observed_motions(parts)
    mirrored = observation.mirrored_motions(parts)
    if not config.mirror and mirrored is not None:
        reflection = observation.observation_reflection(joints, mirrored[: len(motions)], heights, stride=True)
        mirror = base.Mirror({"vector": reflection}, observation.joint_reflection(joints))
    return EnvSpec(
        name="mimic",
        version=1,
        teams=(0,),
        observation_space=observation.observation_space(len(joints), len(motions), heights),
        action_space=spaces.Box(-1.0, 1.0, (len(joints),), np.float32),
        rate_hz=config.control_rate_hz,
        step_limit=round(config.episode_s * config.control_rate_hz),
        events=(*Scorer.events(joints), "distance", "pushes", "falls", "completed", "faults"),
        state_metrics=(*Scorer.state_metrics(joints), "desired", "phase"),
        blocks={"vector": observation.observation_blocks(len(joints), len(motions), heights)},
        fields={"vector": observation.observation_fields(joints, motions, heights)},
        device_types=("cpu",) if config.physics == "mujoco" or heights else ("cpu", "cuda"),
        mirror=mirror,
    )


def observed_motions(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the names of the motions that an observation tells apart; a single one is not told."""
    return tuple(part.name for part in parts) if len(parts) > 1 else ()


def observed_heights(reference: Reference) -> int:
    """Return how many heights of the ground an observation has; none where it is level."""
    return 0 if reference.stairs is None else len(observation.AHEAD_M)


def check_settings(config: MimicConfig) -> None:
    """Raise ConfigError where settings do not fit each other."""
    names = [str(motion) for motion in config.motions]
    if config.motions and (config.motion is not None or len(names) < 2 or len({*names}) < len(names)):
        raise ConfigError(f"motions must be two or more different ones, without motion beside them; got {names}")
    if config.command is not None and config.command not in names:
        raise ConfigError(f"command {config.command} is none of motions; valid: {', '.join(names) or 'none'}")
    steps = 1.0 / (config.control_rate_hz * config.physics_step_s)
    if steps < 0.999 or abs(steps - round(steps)) > 1e-6:
        raise ConfigError(
            f"a decision at {config.control_rate_hz:g} Hz takes {steps:g} physics steps of {config.physics_step_s:g} "
            "s; it must be a whole number: change control_rate_hz or physics_step_s"
        )
    of_people = sorted(_OF_BUILT_IN_BODIES & config.model_fields_set)
    if config.body is not None and of_people:
        raise ConfigError(f"{', '.join(of_people)} cannot be set for a body of your own, whose file decides")
    low, high = config.speed_range
    if low > high:
        raise ConfigError(f"speed_range must go from low to high, got {low:g} to {high:g}")
