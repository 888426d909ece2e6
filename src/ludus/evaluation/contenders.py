"""Who can be played against: the world's bots by name, and agents by their run, their checkpoint or their file."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ludus.core.errors import ConfigError, did_you_mean
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import GYMNASIUM_PREFIX, registered_envs
from ludus.evaluation.players import AgentPlayer, BotPlayer, one_seat
from ludus.policies.agent import CHECKPOINTS_FOLDER, Agent
from ludus.policies.export import EXPORT_SUFFIX
from ludus.policies.policy import Policy

_AN_AGENT = "the folder of a run or a checkpoint, or a file of `ludus export`"


@dataclass(frozen=True, slots=True)
class Contender:
    """Someone to play against.

    Attributes:
        name: As it was asked for.
        policy: Who plays; None for the world's bot of that name.
    """

    name: str
    policy: Policy | None = None

    def sit(self, env: BatchedEnv, seat: int, *, seed: int = 0, deterministic: bool = False) -> AgentPlayer | BotPlayer:
        """Takes the same seat of every game."""
        if self.policy is None:
            return BotPlayer(env, seat, self.name)
        label = short_name(self.name)
        return AgentPlayer(env, one_seat(env, seat), self.policy, name=label, seed=seed, deterministic=deterministic)


def sit_by_team(
    env: BatchedEnv, sides: Sequence[Contender], *, seed: int = 0, deterministic: bool = False
) -> list[AgentPlayer | BotPlayer]:
    """Seats contenders, each in all seats of its team.

    Args:
        env: The games.
        sides: One for each team, in the order of their first seats.
        seed: Of the first seat's actions that are drawn; the next seat has the next one.
        deterministic: Whether the most likely actions are taken instead.

    Raises:
        ConfigError: There are more or fewer teams.
    """
    teams = list(dict.fromkeys(env.spec.teams))
    if len(sides) != len(teams):
        raise ConfigError(f"{env.spec.id} has {len(teams)} sides, got {len(sides)} players")
    return [
        sides[teams.index(team)].sit(env, seat, seed=seed + seat, deterministic=deterministic)
        for seat, team in enumerate(env.spec.teams)
    ]


def find_contender(name: str, env: BatchedEnv) -> Contender:
    """Finds a bot of the world, or loads an agent onto the device of the games.

    Args:
        name: A bot such as `based` or `aggressive:delay=8`, or the folder of a run, whose best agent is meant, or of
            a checkpoint, or a file of `ludus export`. A bot goes before a folder of the same name; `./based` is the
            folder.
        env: The games that shall be played.

    Raises:
        ConfigError: There is neither a bot nor a folder or file of this name, or the bot's settings are wrong.
        CheckpointError: The folder holds no agent.
        StateError: The agent is for another world.
    """
    if is_bot(name, env):
        env.bots([name])  # knows best whether the settings are right
        return Contender(name)
    if not Path(name).exists():
        bots = env.spec.bots
        raise ConfigError(
            f"unknown player {name!r}{did_you_mean(name.partition(':')[0], bots)}: it is no bot of {env.spec.id}, and "
            f"there is no folder or file {Path(name).absolute()}; valid: {', '.join(bots) or 'no bots'}, or {_AN_AGENT}"
        )
    agent = Agent.load(name, env.device)
    agent.check_world(env.spec)
    return Contender(name, agent.policy)


def find_contenders(opponents: Sequence[str | Contender], env: BatchedEnv) -> tuple[Contender, ...]:
    """Finds several, see `find_contender`; those that are found already stay.

    Raises:
        ConfigError: A name comes twice, beside what `find_contender` raises.
    """
    names = [opponent if isinstance(opponent, str) else opponent.name for opponent in opponents]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"named more than once: {', '.join(twice)}; name every opponent once")
    return tuple(find_contender(each, env) if isinstance(each, str) else each for each in opponents)


def load_agent(name: str | Path, device: str | torch.device = "cpu") -> Agent:
    """Loads an agent; nothing in its files can run, and every byte is verified.

    Args:
        name: The folder of a run, whose best agent is meant, or of a checkpoint, or a file of `ludus export`.
        device: Where it shall live.

    Raises:
        ConfigError: There is no such folder or file, or making the agent's world would import a module.
        CheckpointError: It holds no agent.
        DeviceError: The device is not here.
    """
    if not Path(name).exists():
        place = Path(name).absolute()
        raise ConfigError(f"unknown agent {str(name)!r}: there is no folder or file {place}; valid: {_AN_AGENT}")
    agent = Agent.load(name, device)
    _check_harmless(agent)
    return agent


def _check_harmless(agent: Agent) -> None:
    """Raises ConfigError if the world that a file names would import a module that nobody has imported yet."""
    _, is_gymnasium, gym_id = agent.spec.name.rpartition(GYMNASIUM_PREFIX)
    module, names_module, _ = gym_id.partition(":")
    if is_gymnasium and names_module and module not in sys.modules:
        raise ConfigError(
            f"the agent's world {agent.spec.name} imports the module {module!r}, which no file may ask for; "
            "load a file of yours that imports it with --plugin"
        )


def find_world(name: str) -> tuple[str, Agent | None]:
    """Reads a name that may be a world's or an agent's, and returns the world, and the agent if it is one.

    A world goes before a folder of the same name; `./brawl` is the folder.

    Raises:
        ConfigError: There is neither a world nor a folder of this name.
        CheckpointError: The folder holds no agent.
    """
    worlds = registered_envs()
    names = {*worlds, *(world.rpartition("-v")[0] for world in worlds)}
    if name in names or name.startswith(GYMNASIUM_PREFIX):
        return name, None
    if not Path(name).exists():
        raise ConfigError(
            f"unknown world or agent {name!r}{did_you_mean(name, names)}: there is no folder or file "
            f"{Path(name).absolute()}; valid: {', '.join(worlds)}, or {_AN_AGENT}"
        )
    agent = load_agent(name)
    return agent.spec.id, agent


def is_bot(name: str, env: BatchedEnv) -> bool:
    """Says whether the name is that of a bot of the world, whatever its settings."""
    return name.partition(":")[0] in env.spec.bots


def short_name(name: str) -> str:
    """Returns what pictures show of a path: `runs/a/checkpoints/best` is `a/best`, `runs/a` and `a.ludus` are `a`."""
    parts = Path(name).absolute().parts
    if len(parts) > 3 and parts[-2] == CHECKPOINTS_FOLDER:
        return f"{parts[-3]}/{parts[-1]}"
    return parts[-1].removesuffix(EXPORT_SUFFIX)
