"""The file of a shared page: what is in it, how large it is, and what is refused."""

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.strategies import TINY_STRATEGY

from ludus.core.errors import ConfigError, MissingDependencyError, StateError, UnsupportedError
from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.shipped import agent_path
from ludus.share.page import SharedPlayer, _spread, _that_fit, share_agent
from ludus.store import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.compile

HOSTILE = "</script><img src=x onerror=alert(1)>"


def _data(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Make the folder of a run with untrained agents at these steps, of which `best` is the last."""

    def make(*steps: int, **policy: Any) -> Path:
        folder = tmp_path / "my-run"
        folder.mkdir()
        (folder / "run.json").write_text("{}")
        (folder / "config.yaml").write_text("")
        with make_env("brawl") as env, torch.random.fork_rng(devices=[]):
            for number, at in enumerate(steps):
                torch.manual_seed(number)
                made = Policy(env.spec, PolicyConfig(**({"net_arch": {"pi": [16], "vf": [16]}} | policy)))
                checkpoint = agent_checkpoint(env.spec, made.config, made.state())
                name = "best" if at == steps[-1] else f"step-{at:012d}"
                save_checkpoint(folder / "checkpoints" / name, checkpoint, step=at, sequence=number + 1)
        return folder

    return make


def test_it_is_one_small_file_that_may_load_nothing(champion_page: Path, rocket_page: Path) -> None:
    for page, most in ((champion_page, 2_000_000), (rocket_page, 4_000_000)):
        text = page.read_text()
        assert len(text.encode()) <= most
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        assert policy[1].startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-")
        assert "unsafe-inline" not in policy[1]
        assert "://" not in re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
        assert text.count("<script") == 2


def test_its_data_say_who_plays_and_what_compression_lost(champion_page: Path) -> None:
    data = _data(champion_page)
    assert data["title"] == "Play brawl against champion"
    kinds = [(player["id"], player["name"], player["kind"]) for player in data["players"][:3]]
    assert kinds == [("agent", "champion", "agent"), ("agent-1", "rookie", "agent"), ("constant", "constant", "bot")]
    about = dict(data["about"])
    assert about["World"] == "brawl-v1"
    assert about["Weights of champion"] == "float32, as trained: nothing is lost"
    assert about["Trained"].endswith("env steps")
    assert data["replay"]["dtype"] == "int8"
    assert data["replay"]["shape"] == [10]


def test_earlier_selves_of_a_run_are_levels(make_run: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    page = share_agent(str(make_run(0, 1_000, 2_000, 3_000, 2_500_000)), tmp_path / "page.html", snapshots=3)
    data = _data(page.file)
    earlier = [(player["name"], player["note"]) for player in data["players"] if player["kind"] == "snapshot"]
    assert earlier == [
        ("untrained", "level 1 of 3"),
        ("after 2k steps", "level 2 of 3"),
        ("after 3k steps", "level 3 of 3"),
    ]
    about = dict(data["about"])
    assert about["Trained"] == "2,500,000 env steps"
    assert "of 4,096 decisions" in about["Weights of untrained"]  # 16 games of 256 frames
    assert page.left_out == ()
    assert data["players"][0]["name"] == "my-run"


def test_names_are_text(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    folder = tmp_path / "agents"
    folder.mkdir()
    agent = folder / f"{HOSTILE.replace('/', '-')}.ludus"
    shutil.copy(agent_path("rookie"), agent)
    text = share_agent(str(agent), tmp_path / "page.html").file.read_text()
    assert "<img" not in text
    assert "<title>Play brawl against &lt;-script&gt;&lt;img" in text


def test_a_long_name_and_classes_of_a_hostile_agent_are_cut_and_escaped(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    strategy = TINY_STRATEGY.model_copy(update={"classify": 1.0})
    checkpoint = make_run(100, strategy=strategy) / "checkpoints" / "best"
    found: Any = load_checkpoint(checkpoint)
    bots = found.documents["agent"]["bots"]
    found.documents["agent"]["bots"] = [HOSTILE, "\x1b[2J\u202e", "b" * 200, *bots[3:]]
    save_checkpoint(tmp_path / "agent", found, step=1, sequence=1)
    agent = (tmp_path / "agent").rename(tmp_path / f"{'a' * 210}\u202e<b>")
    page = share_agent(str(agent), tmp_path / "page.html").file
    text, data = page.read_text(), _data(page)
    assert "<img" not in text
    assert "<b>" not in text
    assert "\u202e" not in text
    assert text.count("</script>") == 2
    assert len(text) < 2_000_000
    assert data["players"][0]["name"] == f"{'a' * 197}..."
    classes = data["players"][0]["policy"]["readout"]["classes"]
    assert classes[:3] == [HOSTILE, "\\x1b[2J\\u202e", "b" * 200]


def test_an_encoder_that_names_its_opponent_comes_along(make_run: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    page = share_agent(str(make_run(100, strategy=TINY_STRATEGY)), tmp_path / "page.html")
    player = _data(page.file)["players"][0]
    assert "strategy encoder" in dict(_data(page.file)["about"])["Network"]
    assert player["policy"]["codeWords"] > 0


def test_a_file_is_replaced_only_if_asked(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    with pytest.raises(ConfigError, match="--overwrite"):
        share_agent("rookie", page)
    assert page.read_text() == "mine"
    with pytest.raises(ConfigError, match=r"must end in \.html"):
        share_agent("rookie", tmp_path / "page.htm")


def test_what_cannot_be_shared_is_said(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with pytest.raises(UnsupportedError, match="city-v1 cannot be played in a browser; valid: brawl, mimic, rocket"):
        share_agent("builder", page)
    with pytest.raises(ConfigError, match="aggressive is a bot"):
        share_agent("rookie", page, against=["aggressive"])
    with pytest.raises(StateError, match="rocket-v"):
        share_agent("rookie", page, against=["novice"])
    assert not page.exists()


def test_without_the_compiler_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_run: Callable[..., Path]
) -> None:
    run, found = make_run(100), importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "ziglang" else found(name, *rest)
    )
    with pytest.raises(MissingDependencyError, match=r"needs the compiler in ziglang; .*\[web\]"):
        share_agent(str(run), tmp_path / "page.html")


@pytest.mark.parametrize(
    ("steps", "count", "chosen"),
    [
        ([1, 2, 3], 4, [1, 2, 3]),
        ([1, 2, 3, 4, 5], 3, [1, 3, 5]),
        ([10, 20, 30, 40, 50, 60, 70], 4, [10, 30, 50, 70]),
        ([1, 2, 3], 1, [2]),
        ([], 4, []),
    ],
)
def test_levels_are_evenly_spread(steps: list[int], count: int, chosen: list[int]) -> None:
    assert _spread(steps, count) == chosen


def test_later_selves_come_first_where_room_is_short() -> None:
    players = [SharedPlayer(str(k), str(k), "snapshot", data=torch.randn(300).numpy().tobytes()) for k in range(3)]
    size = len(json.dumps(players[0].document(), separators=(",", ":"))) + 1
    shown, left_out = _that_fit(players, 2 * size + 40)
    assert [player.name for player in shown] == ["1", "2"]
    assert [player.name for player in left_out] == ["0"]
