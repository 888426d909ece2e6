"""Agents among a run's opponents: loaded by path or name, and copied into the run folder for an exact resume."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import torch

from ludus.core.files import EXPORT_SUFFIX, make_folder
from ludus.curriculum.config import PhaseConfig
from ludus.envs.base import EnvSpec
from ludus.envs.bots import is_bot
from ludus.evaluation.players import load_agent, short_name
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND
from ludus.policies.agent import CHECKPOINTS_FOLDER, Agent, agent_checkpoint, build_policy
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.policies.shipped import describe_agent, find_agent_path, is_agent
from ludus.store import write_single_file
from ludus.training.config import TrainConfig

AGENTS_FOLDER = "opponents"
_GIVEN: dict[str, Agent] = {}  # agents that a program passed as objects, by name


def agents_in(phase: PhaseConfig, spec: EnvSpec) -> list[str]:
    """Return the opponents of a phase that are neither bots nor the learner itself."""
    return [name for name in phase.opponents if name not in (SELF_KIND, MIRROR_KIND) and not is_bot(name, spec)]


def load_agent_opponents(
    config: TrainConfig, spec: EnvSpec, device: torch.device, folder: Path | None
) -> dict[str, Policy]:
    """Load the agents among the opponents of all phases, by name.

    Args:
        config: Of the run.
        spec: Its world.
        device: Device of the games.
        folder: The run folder, whose copies are used where there are any.

    Raises:
        ConfigError: There is no such agent.
        CheckpointError: It is damaged.
        StateError: It is an agent of another world.
    """
    agents: dict[str, Policy] = {}
    for name in dict.fromkeys(name for phase in config.phases() for name in agents_in(phase, spec)):
        file = agent_file(name, spec, folder)
        agent = _GIVEN[name] if name in _GIVEN and not file.exists() else load_agent(file, device)
        agent.check_world(spec)
        policy = agent.policy
        if agent is _GIVEN.get(name):  # a copy on the device of the games; the user's own stays as it is
            policy = build_policy(PolicyDescription.of(policy.spec, policy.config), policy.state(), device)
        agents[name] = policy
    return agents


def name_agent(agent: Agent) -> str:
    """Return a name by which runs of this process find an agent object; equal weights give equal names."""
    digest = hashlib.sha256()
    for key, tensor in sorted(agent.policy.state().items()):
        digest.update(key.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    name = f"agent-{digest.hexdigest()[:12]}"
    _GIVEN[name] = agent
    return name


def is_known_agent(name: str, spec: EnvSpec, folder: Path | None) -> bool:
    """Return whether there is an agent of this name: an object, a copy in the run folder, a path or a shipped one."""
    return name in _GIVEN or agent_file(name, spec, folder).exists()


def agent_file(name: str, spec: EnvSpec, folder: Path | None) -> Path:
    """Return where an agent is loaded from: its copy in the run folder if there is one, else what its name means.

    The name of a shipped agent means nothing in other worlds, nor in a run that has begun without a copy of it: that
    run met somebody else of this name, such as a bot of a plugin that is not loaded now.
    """
    if folder is not None and _copy_of(name, folder).is_file():
        return _copy_of(name, folder)
    has_begun = folder is not None and (folder / CHECKPOINTS_FOLDER).exists()
    is_shipped = not has_begun and is_agent(name) and describe_agent(name).world == spec.id
    return (find_agent_path(name) if is_shipped else None) or Path(name)


def keep_agent_opponents(agents: Mapping[str, Policy], folder: Path) -> None:
    """Copy agents into the run folder, unless they are there: a run that resumes meets the same ones.

    Raises:
        StoreError: A file could not be written.
    """
    for name, policy in agents.items():
        copy = _copy_of(name, folder)
        if not copy.is_file():
            make_folder(copy.parent)
            write_single_file(copy, agent_checkpoint(policy.spec, policy.config, policy.state()))


def _copy_of(name: str, folder: Path) -> Path:
    """Return the file of an agent's copy: a readable name, and a hash that tells equal ones apart."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", short_name(name))[:40]
    return folder / AGENTS_FOLDER / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}{EXPORT_SUFFIX}"
