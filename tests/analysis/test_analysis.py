"""The whole analysis on tiny worlds: everything is there, twice the same, and pictures can be looked at."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ludus.analysis.figures import draw_analysis
from ludus.analysis.recording import Plan, record
from ludus.analysis.summary import analyse
from ludus.core.errors import ConfigError, MissingDependencyError
from ludus.envs.registry import make_env
from ludus.envs.world_parts import current_styles, styles_of
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.export import export_agent
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint

pytestmark = pytest.mark.train

TINY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 16, "window": 6, "latent": 6, "pooling": 8}
PNG = b"\x89PNG"


def make_agent(world: str, settings: dict[str, Any]) -> Agent:
    with make_env(world) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Agent(Policy(env.spec, PolicyConfig.model_validate(settings)))


def test_everything_is_found_twice_the_same(tmp_path: Path) -> None:
    agent = make_agent("duel", {"strategy": TINY})
    shares: list[float] = []
    analysis = analyse(agent, matches=6, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    document = analysis.as_json()
    assert document["styles"] == ["rock", "cycle", "random"]
    assert document["chance"] == pytest.approx(1 / 3)
    assert set(document["probes"]) == {"trained", "untrained", "observation"}
    assert len(document["probes"]["trained"]["by_time"]) == len(document["times_s"]) == 10
    assert document["drift"] is None
    assert "duel-v1" in document["notes"][0]
    assert [row["opponent"] for row in document["ablation"]["opponents"]] == ["rock", "cycle", "random"]
    again = analyse(make_agent("duel", {"strategy": TINY}), matches=6).as_json()
    for each in (document, again):
        assert each.pop("seconds") > 0.0
    assert json.dumps(document, allow_nan=False) == json.dumps(again, allow_nan=False)
    assert document["belief"]["source"] == "probe"
    assert np.array(document["belief"]["confusion_by_time"]).shape == (10, 3, 3)
    assert document["behaviour"]["actions"] == ["rock", "paper", "scissors"]
    answers = {finding["question"]: finding["answer"] for finding in document["verdict"]}
    assert answers["Does it notice a switch of style?"] == "not known"
    pictures = draw_analysis(analysis, tmp_path)
    names = {picture.name for picture in pictures}
    assert names == {
        "latent_pca.png", "latent_tsne.png", "probe_curve.png", "probe_confusion.png", "ablation.png",
        "attention_rock.png", "attention_cycle.png", "attention_random.png",
    }  # fmt: skip
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)


def test_a_recurrent_memory_is_probed_in_the_same_way(tmp_path: Path) -> None:
    agent = make_agent("duel", {"recurrent": {"size": 5}})
    analysis = analyse(agent, ["rock", "cycle"], matches=4, features="memory", ablation=False)
    assert analysis.recording.features["trained"].shape[2] == 5
    assert analysis.ablation is None
    assert analysis.clips == []
    assert {"memory_pca.png", "probe_curve.png"} <= {path.name for path in draw_analysis(analysis, tmp_path)}


def test_a_world_of_hidden_styles() -> None:
    agent = make_agent("rps", {"strategy": TINY})
    analysis = analyse(agent, matches=8)
    assert analysis.recording.styles == ("style 0", "style 1", "style 2")
    assert analysis.ablation is not None
    assert analysis.ablation.score == "mean_return"
    assert [clip.style for clip in analysis.clips] == ["style 0", "style 1", "style 2"]
    moves = np.stack(list(analysis.clips[0].tracks.values()))[:, 1:]
    assert (moves == moves[:, :1]).all()  # style 0 repeats itself


def test_an_agent_with_a_head_against_bots_that_switch() -> None:
    strategy = TINY | {"classify": 0.5}
    analysis = analyse(make_agent("brawl", {"strategy": strategy}), ["based", "aggressive"], matches=3, seconds=1.0,
                       ablation=False)  # fmt: skip
    document = json.loads(json.dumps(analysis.as_json(), allow_nan=False))
    belief, (match, *_) = document["belief"], document["switching"]
    assert belief["source"] == "head"
    assert belief["classes"] == ["based", "aggressive", "another bot"]
    assert len(belief["top"][0]) == len(document["times_s"])
    assert np.sum(match["probabilities"], axis=1) == pytest.approx(1.0, abs=1e-3)
    assert match["opponent"] == "switcher"
    assert len(match["styles"]) >= 2  # it switches every 6 to 15 s; 45 s are recorded, unless it is beaten
    assert document["behaviour"]["actions"][:2] == ["up", "left"]
    assert document["behaviour"]["effects"]["zeroed"]["mean"]["estimate"] > 0.0


def test_without_scikit_learn_the_install_command_is_named_before_any_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingDependencyError, match=r"\[analysis\]"):
        analyse(make_agent("rps", {"strategy": TINY}), matches=8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matches": 2}, "matches"),
        ({"styles": ["rock"]}, "styles"),
        ({"styles": ["rock", "nobody"]}, "'nobody'.* not a bot of duel-v1.* valid: rock, cycle, random"),
        ({"features": "memory"}, "--features latent"),
    ],
)
def test_what_cannot_be_done_is_said(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"matches": 3, "ablation": False} | changes
    with pytest.raises(ConfigError, match=message):
        analyse(make_agent("duel", {"strategy": TINY}), **arguments)


def test_agents_are_told_apart_like_bots(tmp_path: Path) -> None:
    """Two agents that always do one thing are as different as two bots that do."""
    files = []
    for move, name in enumerate(("stone", "sheet")):
        agent = make_agent("duel", {})
        with torch.no_grad():
            agent.policy.head.linear.weight.zero_()
            agent.policy.head.linear.bias.copy_(100.0 * (torch.arange(3) == move))
        policy = agent.policy
        save_checkpoint(tmp_path / name, agent_checkpoint(policy.spec, policy.config, policy.state()))
        files.append(str(export_agent(tmp_path / name, tmp_path / f"{name}.ludus").path))
    found = analyse(make_agent("duel", {"strategy": TINY}), styles=[*files, "cycle"], matches=8, ablation=False)
    assert found.recording.styles == ("stone", "sheet", "cycle")
    # The last move gives both away, but for the first frame, and the third of them in which the cycle does the same.
    by_frame = found.probes["observation"]
    assert by_frame.confusion[0, 0] > 0.6
    assert by_frame.confusion[1, 1] > 0.6


def test_a_switching_bot_is_seen_to_switch() -> None:
    policy = make_agent("brawl", {"strategy": TINY}).policy
    with make_env("brawl", 4) as env:
        assert styles_of(env.spec.id).switching_bots == ("switcher",)
        recording = record(policy, env, Plan(("switcher",), 4, 20.0, 0.2, controls=False))
        seats = torch.tensor([[True, False]] * 4)
        assert current_styles(env, seats).dtype == torch.int64
    styles = recording.styles_now
    assert styles.min() >= 5
    assert styles.max() <= 11
    running = recording.valid[1:] & recording.valid[:-1]
    changes = ((styles[1:] != styles[:-1]) & running).sum(0)
    assert 1 <= changes.sum() <= 12  # every 6 to 15 s
    with make_env("duel", 2) as env:
        assert styles_of(env.spec.id).switching_bots == ()
        assert current_styles(env, torch.tensor([[True, False]] * 2)).tolist() == [-1, -1]
