"""`ludus rocket rlbot AGENT [DIR]`: a folder for RLBot, or one line that says why not."""

import json
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rewards.plugins import load_plugin
from ludus.store import save_checkpoint
from ludus.worlds.rocket.rlbot.folder import check_folder

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.train

MakeAgent = Callable[[str], Path]
NETWORK = """
from torch import nn

class Net(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.layer = nn.Linear(spec.observation_space["vector"].shape[0], 8)

    def forward(self, observations):
        return self.layer(observations["vector"])
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_written_and_tested(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    agent = make_agent("rocket")
    code, out, err = run("rocket", "rlbot", agent)
    assert code == 0, err
    assert out.startswith("[OK] rocket-run-rlbot: a bot for RLBot v5, offline; 1220 packets replayed, 156 ")
    assert check_folder(place / "rocket-run-rlbot").packets == 1220
    code, out, err = run("rocket", "rlbot", agent, "bots/mine", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert (said["folder"], said["packets"], said["file"]) == ("bots/mine", 1220, "bots/mine/agent.ludus")
    assert (place / "bots" / "mine" / "agent.ludus").stat().st_size == said["bytes"]


def test_what_is_wrong_is_one_line(run: "Run", make_agent: MakeAgent, place: Path) -> None:
    (place / "full").mkdir()
    (place / "full" / "letters.txt").write_text("")
    for arguments, fault in (
        ((make_agent("brawl"),), "brawl-v1"),
        ((make_agent("rocket"), "full"), "export"),
    ):
        code, _, err = run("rocket", "rlbot", *arguments)
        assert code == 2
        assert err.startswith("[ERROR]")
        assert fault in err
    assert sorted(path.name for path in place.iterdir()) == ["brawl-run", "full", "rocket-run"]


def test_an_agent_with_a_network_of_the_user_needs_its_plugin(
    run: "Run", place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget() -> None:
        monkeypatch.setattr("ludus.rewards.plugins._LOADED", {})
        monkeypatch.delitem(sys.modules, "rlbot_net", raising=False)

    forget()
    plugin = place / "nets" / "rlbot_net.py"
    plugin.parent.mkdir()
    plugin.write_text(NETWORK, encoding="utf-8")
    load_plugin(plugin)
    with make_env("rocket") as env, torch.random.fork_rng(devices=[]):
        policy = Policy(env.spec, PolicyConfig(module="rlbot_net.py:Net"))
    save_checkpoint(place / "mine", agent_checkpoint(policy.spec, policy.config, policy.state()))
    forget()
    code, _, err = run("rocket", "rlbot", "mine", "bot")
    assert code == 2
    assert "--plugin rlbot_net.py" in err
    assert not Path("bot").exists()
    code, _, err = run("rocket", "rlbot", "mine", "bot", "--plugin", "nets/rlbot_net.py")
    assert code == 0, err
    # RLBot starts the bot with the plugin, from any folder.
    command = shlex.split(tomllib.loads(Path("bot/bot.toml").read_text(encoding="utf-8"))["settings"]["run_command"])
    assert command == ["python", "bot.py", "--plugin", str(plugin)]
    forget()
    monkeypatch.setattr(sys, "argv", [*command[1:], "--self-test"])
    assert runpy.run_path("bot/bot.py")["main"]() == 0
