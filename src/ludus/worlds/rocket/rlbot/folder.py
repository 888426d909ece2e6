"""Export an agent of Rocket as a bot folder for RLBot v5, and load such a folder."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from pydantic import BaseModel, ConfigDict, ValidationError

from ludus.core import __version__
from ludus.core.errors import ConfigError, FormatError
from ludus.core.files import (
    discard_temporary,
    make_temporary_folder,
    read_regular,
    replace_folder,
    wrap_disk_errors,
    write_text_atomic,
)
from ludus.evaluation.players import load_agent, short_name
from ludus.policies.agent import Agent
from ludus.policies.export import Exported, export_agent
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.rlbot.pilot import rocket_settings
from ludus.worlds.rocket.rlbot.recording import SelfTest, read_recording, record, run_self_test, write_recording

AGENT_FILE = "agent.ludus"
ENTRY_FILE = "bot.py"
RECORDING_FILE = "recording.json"
PLAYER_FILE = "player.json"

_FORMAT = "ludus-rlbot"
_TEMPLATES = Path(__file__).with_name("templates")  # of the texts in the folder
_MAX_SETTINGS_BYTES = 1 << 20
_LISTED = ("mode", "blue", "orange", "ticks", "input_delay_ticks", "actions", "episode", "boost")


class PlayerSettings(BaseModel):
    """Settings of the player; users may edit them."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: str = _FORMAT  # kind of the folder
    version: int = 1
    deterministic: bool = False  # whether to take the most likely action instead of sampling one


@dataclass(frozen=True, slots=True)
class RlbotFolder:
    """An exported folder: its path, the exported agent, and what the self-test compared."""

    path: Path
    exported: Exported
    tested: SelfTest


@dataclass(frozen=True, slots=True)
class LoadedFolder:
    """A loaded folder: the agent, the settings of its world, and the settings of the player."""

    agent: Agent
    config: RocketConfig
    settings: PlayerSettings


def export_rlbot(agent: str | Path, folder: str | Path, plugins: Sequence[str] = ()) -> RlbotFolder:
    """Export an agent as a bot for RLBot v5, replacing an earlier export, and run the folder's self-test.

    `agent` is the folder of a run (its best agent) or of a checkpoint, or a file of `ludus export`. `plugins` are those
    that the agent needs, loaded already: the folder holds no copies, and RLBot starts the bot with their paths.

    Raises:
        ConfigError: The agent does not exist, or the folder holds something else.
        UnsupportedError: The agent was not trained in Rocket.
        CheckpointError: The agent is damaged.
        ReplayDivergedError: The self-test failed; the folder is not written.
    """
    target = Path(folder)
    loaded = load_agent(agent)
    config = rocket_settings(loaded, agent)
    _check_free(target)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", short_name(str(agent))).strip("-") or "agent"
    with wrap_disk_errors(f"folder {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = make_temporary_folder(target)
        try:
            exported = export_agent(agent, temporary / AGENT_FILE)
            write_recording(temporary / RECORDING_FILE, record(loaded, config))
            _write_texts(temporary, name, config, plugins)
            tested = check_folder(temporary)
            replace_folder(temporary, target)
        finally:
            discard_temporary(temporary)
    return RlbotFolder(target, replace(exported, path=target / AGENT_FILE), tested)


def load_folder(folder: Path) -> LoadedFolder:
    """Load an exported folder. The weights are verified, and only `bot.py` is executable.

    Raises ConfigError, CheckpointError or UnsupportedError if something is missing, damaged or of another Rocket.
    """
    path = folder / PLAYER_FILE
    try:
        settings = PlayerSettings.model_validate_json(read_regular(path, limit=_MAX_SETTINGS_BYTES))
    except (FormatError, ValidationError) as error:
        fault = " ".join(str(error).splitlines()[:3])
        raise ConfigError(f"{path} is invalid: {fault}; export the agent again") from error
    agent = load_agent(folder / AGENT_FILE)
    return LoadedFolder(agent, rocket_settings(agent, folder / AGENT_FILE), settings)


def check_folder(folder: Path) -> SelfTest:
    """Replay the recorded packets of a folder to its agent; raise ReplayDivergedError if it decides differently."""
    loaded = load_folder(folder)
    return run_self_test(loaded.agent, loaded.config, read_recording(folder / RECORDING_FILE))


def _check_free(target: Path) -> None:
    """Raise ConfigError if the export would replace anything but an earlier export."""
    if target.is_dir() and (not any(target.iterdir()) or (target / PLAYER_FILE).is_file()):
        return
    if target.exists():
        raise ConfigError(f"{target} already exists and is not an earlier export; choose another folder")


def _write_texts(folder: Path, name: str, config: RocketConfig, plugins: Sequence[str]) -> None:
    rows = [(key, value) for key, value in config.model_dump().items() if key in _LISTED and value is not None]
    files = [str(Path(plugin).resolve()) if Path(plugin).is_file() else plugin for plugin in plugins]
    options = "".join(f" --plugin {shlex.quote(file)}" for file in files)
    values = {
        "name": name,
        "version": __version__,
        "settings": "\n".join(f"| `{key}` | {value} |" for key, value in rows),
        # A JSON string in plain ASCII is also a TOML string.
        "quoted_name": json.dumps(name),
        "command": json.dumps(f"python bot.py{options}"),
        "command_linux": json.dumps(f"python3 bot.py{options}"),
        "options": options,
        "agent_id": json.dumps(f"ludus/{name}"),
        "tags": json.dumps(["1v1"] if config.seats == 2 else ["1v1", "teamplay"]),
        "description": json.dumps(f"Trained with Ludus in rocket {config.blue}v{config.orange}; for offline play."),
    }
    for template in _TEMPLATES.iterdir():
        text = Template(template.read_text(encoding="utf-8")).substitute(values)
        write_text_atomic(folder / template.name, text)
    write_text_atomic(folder / ENTRY_FILE, Path(__file__).with_name(ENTRY_FILE).read_text(encoding="utf-8"))
    write_text_atomic(folder / PLAYER_FILE, PlayerSettings().model_dump_json(indent=2) + "\n")
