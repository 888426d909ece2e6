"""Writes an agent of Rocket as a folder for RLBot v5, and reads such a folder."""

import re
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ludus.core.errors import ConfigError
from ludus.core.files import discard_temporary, make_temporary_folder, replace_folder, write_text_atomic
from ludus.envs.rocket.config import RocketConfig
from ludus.evaluation.contenders import load_agent, short_name
from ludus.evaluation.rlbot import texts
from ludus.evaluation.rlbot.deciding import rocket_settings
from ludus.evaluation.rlbot.recording import read_recording, write_recording
from ludus.evaluation.rlbot.scenes import record
from ludus.evaluation.rlbot.self_test import SelfTest, run_self_test
from ludus.policies.agent import Agent
from ludus.policies.export import Exported, export_agent
from ludus.store.checkpoint import naming_disk_faults

_FORMAT = "ludus-rlbot"
_TOLD = ("mode", "blue", "orange", "ticks", "input_delay_ticks", "actions", "observation", "episode", "boost")


class PlayerSettings(BaseModel):
    """How the bot plays; people may change it.

    Attributes:
        format: What kind of folder it is.
        version: Of the format.
        deterministic: Whether the most likely action is taken instead of one that is drawn.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: str = _FORMAT
    version: int = 1
    deterministic: bool = False


@dataclass(frozen=True, slots=True)
class RlbotFolder:
    """A folder that was written.

    Attributes:
        path: Where.
        exported: Its agent.
        tested: What its self-test compared.
    """

    path: Path
    exported: Exported
    tested: SelfTest


@dataclass(frozen=True, slots=True)
class LoadedFolder:
    """A folder that was read: the agent, the settings of its world, and how it plays."""

    agent: Agent
    config: RocketConfig
    settings: PlayerSettings


def export_rlbot(agent: str | Path, folder: str | Path) -> RlbotFolder:
    """Writes an agent as a bot for RLBot v5, and tests it.

    Args:
        agent: The folder of a run, whose best agent is meant, or of a checkpoint, or a file of `ludus export`.
        folder: To write; one that was written so before is replaced.

    Raises:
        ConfigError: There is no such agent, or the folder holds something else.
        UnsupportedError: It is no agent of Rocket.
        CheckpointError: The agent is damaged.
        ReplayDivergedError: The self-test fails; nothing is left of the folder.
        StoreError: The folder could not be written.
    """
    target = Path(folder)
    loaded = load_agent(agent)
    config = rocket_settings(loaded, agent)
    _check_free(target)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", short_name(str(agent))).strip("-") or "agent"
    with naming_disk_faults(f"folder {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = make_temporary_folder(target)
        try:
            exported = export_agent(agent, temporary / texts.AGENT_FILE)
            write_recording(temporary / texts.RECORDING_FILE, record(loaded, config))
            _write_texts(temporary, name, config)
            tested = check_folder(temporary)
            replace_folder(temporary, target)
        finally:
            discard_temporary(temporary)
    return RlbotFolder(target, replace(exported, path=target / texts.AGENT_FILE), tested)


def load_folder(folder: Path) -> LoadedFolder:
    """Reads a folder that was written before; nothing in it but its entry can run, and the weights are verified.

    Raises:
        ConfigError: There is no agent, or the settings are wrong.
        CheckpointError: The agent is damaged.
        UnsupportedError: It is no agent of this version's Rocket.
    """
    path = folder / texts.PLAYER_FILE
    try:
        settings = PlayerSettings.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = " ".join(str(error).splitlines()[:3])
        raise ConfigError(f"{path} cannot be used: {fault}; export the agent again") from error
    agent = load_agent(folder / texts.AGENT_FILE)
    return LoadedFolder(agent, rocket_settings(agent, folder / texts.AGENT_FILE), settings)


def check_folder(folder: Path) -> SelfTest:
    """Replays the packets of a folder to its agent.

    Raises:
        ReplayDivergedError: Something came out otherwise than recorded.
        ReplayError: The recording is damaged.
        ConfigError, CheckpointError, UnsupportedError: As `load_folder`.
    """
    loaded = load_folder(folder)
    return run_self_test(loaded.agent, loaded.config, read_recording(folder / texts.RECORDING_FILE))


def _check_free(target: Path) -> None:
    """Raises ConfigError if writing the folder would replace something else."""
    if target.is_dir() and (not any(target.iterdir()) or (target / texts.PLAYER_FILE).is_file()):
        return
    if target.exists():
        raise ConfigError(f"{target} is there already, and no bot of an earlier export; name another folder")


def _write_texts(folder: Path, name: str, config: RocketConfig) -> None:
    mode = f"{config.blue}v{config.orange}"
    tags = ["1v1"] if config.seats == 2 else ["1v1", "teamplay"]
    told = {key: value for key, value in config.model_dump().items() if key in _TOLD and value is not None}
    entry = Path(__file__).with_name(texts.ENTRY_FILE).read_text(encoding="utf-8")
    for file, text in (
        (texts.BOT_TOML, texts.bot_toml(name, f"ludus/{name}", tags, f"rocket {mode}")),
        (texts.LOADOUT_TOML, texts.loadout_toml()),
        (texts.ENTRY_FILE, entry),
        (texts.PLAYER_FILE, PlayerSettings().model_dump_json(indent=2) + "\n"),
        (texts.README, texts.readme(name, version("ludus"), told)),
    ):
        write_text_atomic(folder / file, text)
