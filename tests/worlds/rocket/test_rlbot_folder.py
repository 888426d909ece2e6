"""A bot's folder for RLBot: complete, safe, tested by itself in a process of its own, and loud if anything differs."""

import importlib.util
import json
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.commands import Commands

from ludus.core.errors import (
    CheckpointError,
    ConfigError,
    ReplayDivergedError,
    ReplayError,
    UnsupportedError,
)
from ludus.envs.registry import make_env
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint
from ludus.worlds.rocket.observation import LAYOUT
from ludus.worlds.rocket.rlbot import recording, sense
from ludus.worlds.rocket.rlbot.folder import RlbotFolder, check_folder, export_rlbot, load_folder
from ludus.worlds.rocket.rlbot.observer import Controls
from ludus.worlds.rocket.rlbot.packet import Packet, Physics, PlayerInfo
from ludus.worlds.rocket.rlbot.pilot import AgentDecider, rocket_settings
from ludus.worlds.rocket.rlbot.recording import FIELD, read_recording

pytestmark = pytest.mark.train

FILES = {"bot.toml", "loadout.toml", "bot.py", "agent.ludus", "player.json", "recording.json", "README.md"}
SETTINGS: dict[str, Any] = {"mode": "1v2", "input_delay_ticks": 2, "episode": "match"}


def save(folder: Path, world: str, settings: dict[str, Any], config: PolicyConfig | None = None) -> Path:
    with make_env(world, config=settings) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        policy = Policy(env.spec, config or PolicyConfig())
        policy.get_parameter("head.linear.weight").data.mul_(100.0)  # an untrained one hardly ever changes its mind
    checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), settings)
    save_checkpoint(folder / "checkpoints" / "best", checkpoint)
    return folder


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> RlbotFolder:
    place = tmp_path_factory.mktemp("rlbot")
    config = PolicyConfig(recurrent=RecurrentConfig(size=16))
    return export_rlbot(save(place / "my run!", "rocket", SETTINGS, config), place / "bot")


@pytest.fixture
def copied(bot: RlbotFolder, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bot.path, tmp_path / "elsewhere"))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "bot.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder.parent, timeout=300, check=False)


def test_the_folder_is_complete(bot: RlbotFolder) -> None:
    assert {file.name for file in bot.path.iterdir()} == FILES
    settings = tomllib.loads((bot.path / "bot.toml").read_text())["settings"]
    assert settings == {
        "agent_id": "ludus/my-run",
        "name": "my-run",
        "loadout_file": "loadout.toml",
        "run_command": "python bot.py",
        "run_command_linux": "python3 bot.py",
    }
    assert tomllib.loads((bot.path / "bot.toml").read_text())["details"]["tags"] == ["1v1", "teamplay"]
    assert tomllib.loads((bot.path / "loadout.toml").read_text())["blue_loadout"]["car_id"] == 23  # an Octane
    readme = (bot.path / "README.md").read_text()
    for words in ("offline play only", "python bot.py --self-test", 'pip install -e ".[rlbot]"', "| `mode` | 1v2 |"):
        assert words in readme
    assert bot.exported.path == bot.path / "agent.ludus"
    assert bot.tested.decisions == 4 * 39  # two scenes, two players, 2.5 s
    assert bot.tested.packets == 4 * 305
    assert bot.tested.actions > 100
    assert 0.0 < bot.tested.difference < 1e-5


def test_it_tests_itself_in_a_process_of_its_own(copied: Path) -> None:
    done = run(copied, "--self-test")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[OK] 1220 packets replayed: 156 observations equal")


def test_without_rlbot_the_way_to_it_is_told(copied: Path, commands: Commands) -> None:
    if importlib.util.find_spec("rlbot") is not None:
        pytest.skip("the package rlbot is installed")
    bot = commands.start(copied / "bot.py", folder=copied.parent)
    assert bot.wait(120.0) == 1, bot.said
    assert "[ERROR] playing in RLBot needs rlbot 2; install it with: pip install -e " in bot.said
    assert '[rlbot]"' in bot.said


def test_a_damaged_agent_is_found(copied: Path) -> None:
    raw = bytearray((copied / "agent.ludus").read_bytes())
    raw[-5] ^= 1
    (copied / "agent.ludus").write_bytes(raw)
    with pytest.raises(CheckpointError, match=r"agent\.ludus"):
        check_folder(copied)


def test_another_agent_is_found(copied: Path, tmp_path: Path) -> None:
    config = PolicyConfig(recurrent=RecurrentConfig(size=8))
    other = export_rlbot(save(tmp_path / "other", "rocket", SETTINGS, config), tmp_path / "other-bot")
    shutil.copy(other.exported.path, copied / "agent.ludus")
    with pytest.raises(ReplayDivergedError, match="the action is"):
        check_folder(copied)


def change(folder: Path, edit: Callable[[Any], None]) -> None:
    document = json.loads((folder / "recording.json").read_text())
    edit(document)
    (folder / "recording.json").write_text(json.dumps(document))


def test_a_changed_observation_is_found(copied: Path) -> None:
    place = [field.name for field in LAYOUT.fields].index("ball.nearness")

    def edit(document: Any) -> None:
        document["scenes"][0]["choices"][7]["observation"][place] += 2e-5

    change(copied, edit)
    with pytest.raises(
        ReplayDivergedError, match=r"scene 'kickoff', frame 24, player 1: ball\.nearness is 0\.\d+, but"
    ):
        check_folder(copied)


def test_code_that_sees_otherwise_is_found(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sense, "mirrored_spin", lambda spin: spin)  # the spin of a left-handed world
    with pytest.raises(ReplayDivergedError, match=r"self\.spin_(ahead|left|above) is"):
        check_folder(copied)


def test_changed_packets_are_found(copied: Path) -> None:
    def edit(document: Any) -> None:
        document["scenes"][0]["packets"][50]["players"][0]["last_input"][1] = 0.5

    change(copied, edit)
    with pytest.raises(ReplayDivergedError, match=r"frame 50, player 0: .*controls"):
        check_folder(copied)


def test_lost_packets_are_found(copied: Path) -> None:
    def edit(document: Any) -> None:
        del document["scenes"][1]["packets"][80]

    change(copied, edit)
    with pytest.raises(ReplayDivergedError, match="frames"):
        check_folder(copied)


def test_nothing_to_compare_is_no_success(bot: RlbotFolder) -> None:
    loaded = load_folder(bot.path)
    with pytest.raises(ReplayDivergedError, match="action"):
        recording.run_self_test(loaded.agent, loaded.config, [])


@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "No such file"), ("{}", "recording"), ("\x80", "recording"), ("[1, 2", "recording")],
)
def test_damaged_recordings_are_found(copied: Path, content: str | None, fault: str) -> None:
    path = copied / "recording.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ReplayError, match=fault):
        check_folder(copied)


def test_recordings_of_another_version_are_found(copied: Path) -> None:
    change(copied, lambda document: document.update(version=2))
    with pytest.raises(ReplayError, match="version 2, expected 'ludus-rlbot-recording' version 1"):
        check_folder(copied)


def test_how_it_plays_can_be_set(copied: Path) -> None:
    assert not load_folder(copied).settings.deterministic
    path = copied / "player.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"deterministic": True}))
    assert load_folder(copied).settings.deterministic
    for wrong in ("{", '{"deterministic": "yes"}', '{"determinstic": true}'):
        path.write_text(wrong)
        with pytest.raises(ConfigError, match=r"player\.json"):
            load_folder(copied)
    path.unlink()
    with pytest.raises(ConfigError, match=r"player\.json"):
        load_folder(copied)


@pytest.mark.parametrize(
    "settings",
    [
        {"setters": {"goalie": 1.0}},
        {"actions": "continuous", "ticks": 4, "input_delay_ticks": 4, "boost": "unlimited", "episode_s": 1.0},
    ],
)
def test_all_action_spaces(tmp_path: Path, settings: dict[str, Any]) -> None:
    tested = export_rlbot(save(tmp_path / "run", "rocket", settings), tmp_path / "bot").tested
    assert tested.actions > 20


def test_other_agents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"brawl-v\d+.*rocket"):
        export_rlbot(save(tmp_path / "fighter", "brawl", {}), tmp_path / "bot")
    with pytest.raises(ConfigError, match="unknown agent"):
        export_rlbot(tmp_path / "nobody", tmp_path / "bot")
    assert not (tmp_path / "bot").exists()


def test_agents_that_see_something_else_are_refused(make_arena: Any, policy_kinds: dict[str, PolicyConfig]) -> None:
    agent = Agent(Policy(make_arena(1, picture=True).spec, policy_kinds["cnn"]))
    agent.spec = replace(agent.spec, name="rocket")
    with pytest.raises(UnsupportedError, match=r"picture, vector.*'vector'"):
        rocket_settings(agent, "painter")
    agent = Agent(Policy(make_arena(1).spec, PolicyConfig()))
    agent.spec = replace(agent.spec, name="rocket")
    with pytest.raises(UnsupportedError, match="rocket of this version"):
        rocket_settings(agent, "stranger")


def test_what_is_there_is_not_replaced_unless_it_is_a_bot(tmp_path: Path) -> None:
    agent = save(tmp_path / "run", "rocket", {})
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("")
    for name in ("papers", "file", "run"):
        with pytest.raises(ConfigError, match="export"):
            export_rlbot(agent, tmp_path / name)
    (tmp_path / "empty").mkdir()
    first = export_rlbot(agent, tmp_path / "empty")
    (first.path / "recording.json").unlink()
    export_rlbot(agent, tmp_path / "empty")
    assert check_folder(first.path) == first.tested
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "papers", "run"]


def test_near_draws_are_told_from_clear_choices() -> None:
    """Action 5 instead of 4 if the first value is larger than the second."""
    with make_env("rocket") as env:
        policy = Policy(env.spec, PolicyConfig())
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        for name in ("actor.layers.0.weight", "actor.layers.1.weight"):
            policy.get_parameter(name)[:2, :2] = torch.eye(2)
        policy.get_parameter("head.linear.weight")[5, :2] = torch.tensor([1000.0, -1000.0])
        policy.get_parameter("head.linear.bias")[4:6] = 1.0
    decider = AgentDecider(Agent(policy), deterministic=True)
    seen = np.zeros(LAYOUT.size, np.float32)
    for first, second, action, clear in ((0.1, 0.5, 4, True), (0.5, 0.1, 5, True), (0.5, 0.5, 4, False)):
        seen[:2] = first, second
        assert decider.is_clear(seen, first=True) == clear
        assert decider(seen, first=True) == action


def flat_of(part: Any) -> Any:
    """A part of a packet with the fields of RLBot's types."""
    if isinstance(part, Physics):
        names = {"x": 0, "y": 1, "z": 2}, {"pitch": 0, "yaw": 1, "roll": 2}
        vectors = {name: getattr(part, name) for name in ("location", "velocity", "angular_velocity")}
        spots = {key: SimpleNamespace(**{n: value[i] for n, i in names[0].items()}) for key, value in vectors.items()}
        return SimpleNamespace(**spots, rotation=SimpleNamespace(**{n: part.rotation[i] for n, i in names[1].items()}))
    if isinstance(part, PlayerInfo):
        plain = {field.name: getattr(part, field.name) for field in fields(part)}
        touch = None if part.touched_s is None else SimpleNamespace(game_seconds=part.touched_s)
        return SimpleNamespace(**plain | {"physics": flat_of(part.physics), "latest_touch": touch})
    assert isinstance(part, Packet)
    match = {field.name: getattr(part, field.name) for field in fields(part)}
    return SimpleNamespace(
        match_info=SimpleNamespace(**match),
        teams=[SimpleNamespace(team_index=team, score=goals) for team, goals in enumerate(part.goals)],
        balls=[SimpleNamespace(physics=flat_of(part.ball))],
        players=[flat_of(player) for player in part.players],
        boost_pads=[SimpleNamespace(is_active=pad is None, timer=pad or 0.0) for pad in part.pads],
    )


def test_it_answers_packet_by_packet(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package `rlbot` sends the packets of a recorded kickoff; RLBot itself is late by a tick."""
    (copied / "player.json").write_text('{"deterministic": true}')
    packets = read_recording(copied / "recording.json")[0].packets
    field = SimpleNamespace(boost_pads=[SimpleNamespace(location=SimpleNamespace(x=x, y=y, z=z)) for x, y, z in FIELD])
    answers: list[Controls] = []

    class Bot:
        def __init__(self, agent_id: str) -> None:
            self.agent_id, self.index, self.field_info = agent_id, 1, field

        def run(self, **_wants: bool) -> None:
            assert self.agent_id == "ludus/my-run"
            self.initialize()  # type: ignore[attr-defined]
            answers.extend(self.get_output(flat_of(packet)) for packet in packets)  # type: ignore[attr-defined]

    for name, content in (
        ("rlbot", {}),
        ("rlbot.flat", {"ControllerState": Controls}),
        ("rlbot.managers", {"Bot": Bot}),
    ):
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    threads = torch.get_num_threads()
    runpy.run_path(str(copied / "bot.py"))["run_bot"]()
    torch.set_num_threads(threads)
    assert len(answers) == len(packets)
    expected = [packet.players[1].last_input for packet in packets]
    # An input delay of two ticks was trained with: the bot waits for one, RLBot for the other.
    assert answers[:-2] == expected[2:]
    assert len(set(expected)) > 5
