"""Attention over frames: by hand, within the window, and beside what the opponent did."""

import numpy as np
import pytest
import torch

from ludus.analysis.attention import (
    AttentionClip,
    attention_by_delay,
    attention_clips,
    attention_flow,
    attention_to_tracks,
)
from ludus.analysis.recording import Plan, record
from ludus.envs.registry import make_env
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

SMALL = {"layers": 2, "heads": 2, "width": 8, "feedforward": 8, "window": 6, "latent": 4, "pooling": 4}


def test_the_flow_by_hand() -> None:
    # Three frames; the pooling looks at the frame before (or itself, at the first), the layer at two frames evenly.
    pooling = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]])
    layer = torch.tensor([[[[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]]])
    flow = attention_flow({"pooling": pooling, "layer0": layer}, 1, 3)
    assert flow[0, 0].tolist() == [1.0, 0.0, 0.0]
    assert flow[0, 1].tolist() == [1.0, 0.0, 0.0]  # frame 0, which sees itself alone
    assert flow[0, 2].tolist() == [0.25, 0.75, 0.0]  # frame 1: half itself, half of half either
    short = attention_flow({"pooling": pooling, "layer0": layer}, 1, 2)
    assert short[0, 2].tolist() == [0.0, 1.0, 0.0]


def test_clips_of_a_real_policy() -> None:
    with make_env("duel", 9, config={"rounds": 12}) as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"strategy": SMALL}))
        plan = Plan(("rock", "cycle", "random"), 3, 2.0, 0.1, clip_s=2.0)
        clips = attention_clips(policy, record(policy, env, plan))
    assert [clip.style for clip in clips] == ["rock", "cycle", "random"]
    for clip in clips:
        assert clip.weights.shape == (12, 12)  # the match was over then
        assert clip.weights.sum(1) == pytest.approx(1.0)
        frames = np.arange(12)
        outside = (frames[None] > frames[:, None]) | (frames[None] < frames[:, None] - 5)
        assert clip.weights[outside].max() == 0.0
        assert clip.weights[~outside].min() > 0.0
    rock, cycle, _ = clips
    assert rock.tracks["input 0"].tolist() == [0.0] + [1.0] * 11  # its last move was rock
    assert cycle.tracks["input 1"].tolist() == [0.0, 0.0] + [1.0, 0.0, 0.0] * 3 + [1.0]


def test_no_clips_without_encoder() -> None:
    with make_env("duel", 9) as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 4}}))
        plan = Plan(("rock", "cycle", "random"), 3, 1.0, 0.1, 1.0, "memory")
        assert attention_clips(policy, record(policy, env, plan)) == []


def test_no_clips_of_an_encoder_of_events() -> None:
    with make_env("brawl", 3) as env:
        policy = Policy(
            env.spec, PolicyConfig.model_validate({"strategy": SMALL | {"events": ["opponent.state_stun"]}})
        )
        assert attention_clips(policy, record(policy, env, Plan(("constant",), 3, 1.0, 0.1, 1.0))) == []


def test_brawl_says_what_the_fighter_does() -> None:
    with make_env("brawl", 2) as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"strategy": SMALL}))
        clips = attention_clips(policy, record(policy, env, Plan(("aggressive", "constant"), 1, 3.0, 1.0, clip_s=3.0)))
    assert {"walking", "in air"} & set(clips[0].tracks)
    assert all(values.shape == (90,) for values in clips[0].tracks.values())
    assert clips[1].tracks["standing"].any()


def test_attention_by_delay_by_hand() -> None:
    weights = np.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.8, 0.2, 0], [0, 0, 0.6, 0.4]])
    later, got = attention_by_delay(AttentionClip("one", weights, {}, 2, 10.0))
    # The first latent has no whole window; frame 3 is never looked back upon.
    assert later == pytest.approx(np.array([[np.nan, 0.5, 0.2, 0.4], [0.5, 0.8, 0.6, np.nan]]), nan_ok=True)
    usual, after = 1.1 / 3, 1.9 / 3
    assert got == pytest.approx([0.5 / after, 1.3, 0.8, 0.4 / usual])


def test_attention_to_what_happens_by_hand() -> None:
    weights = np.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.8, 0.2, 0], [0, 0, 0.6, 0.4]])
    tracks = {"hit": np.array([0.0, 1.0, 0.0, 1.0]), "never": np.zeros(4), "always": np.ones(4)}
    found = attention_to_tracks([AttentionClip("one", weights, tracks, 2, 10.0)])
    # The rows 2 and 3 look back on whole windows: attention 0.8 and 0.4; evenly it were 0.5 and 0.5.
    assert found == {"hit": {"share": 0.5, "attention": pytest.approx(0.6), "ratio": pytest.approx(1.2)}}
    quiet = AttentionClip("two", weights, {}, 2, 10.0)  # in which nobody hits
    both = attention_to_tracks([AttentionClip("one", weights, tracks, 2, 10.0), quiet])
    assert both["hit"] == {"share": 0.25, "attention": pytest.approx(0.3), "ratio": pytest.approx(1.2)}
