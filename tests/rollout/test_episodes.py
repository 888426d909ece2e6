"""The trace: episodes put together by hand over several rollouts, an account that adds up, and a state that goes on."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.core.errors import StateError
from ludus.envs.base import StepResult
from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.manager import RewardManager
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import RewardConfig
from ludus.rollout import episodes as trace_module
from ludus.rollout.episodes import EpisodeRecorder, Episodes, find_ends
from ludus.rollout.learner_batch import LearnerBatch
from ludus.training.components import Components
from ludus.training.config import TrainConfig


class Lineup:
    """Two opponents, one a game."""

    names = ("left", "right")
    sides = ("1v1", "1v1")
    opponents = torch.tensor([0, 1])


def make_trace(steps: int = 4, episode_metrics: EpisodeMetrics | None = None) -> EpisodeRecorder:
    env = make_env("duel", 2)
    manager = RewardManager(
        "duel", env.spec.events, (RewardConfig.model_validate({"weights": {"reward": 1.0, "wins": 10.0}}),), {}
    )
    trace = EpisodeRecorder(env.spec, manager, episode_metrics or EpisodeMetrics(), Lineup())
    trace.begin(steps, LearnerBatch(env, torch.tensor([[True, False], [False, True]])))
    return trace


def result(reward: tuple[float, float], *, wins: tuple[float, float] = (0, 0), ended: tuple[int, int] = (0, 0),
           losses: tuple[float, float] = (0, 0)) -> StepResult:  # fmt: skip
    def seated(numbers: tuple[float, float]) -> Tensor:
        """Gives game 0's number to its seat 0 and game 1's to its seat 1; the others get one that must not count."""
        return torch.tensor([[numbers[0], 777.0], [777.0, numbers[1]]])

    events = {"reward": seated(reward), "wins": seated(wins), "losses": seated(losses), "draws": torch.zeros(2, 2)}
    none = torch.zeros(2, dtype=torch.bool)
    return StepResult({}, torch.tensor(ended).bool(), none, {}, events, {"lead": torch.zeros(2, 2)})


def play(trace: EpisodeRecorder, *steps: StepResult) -> Episodes:
    for t, step in enumerate(steps):
        trace.record(t, step)
    trace.rewards()
    return trace.read()


def test_episodes_by_hand() -> None:
    trace = make_trace()
    first = play(
        trace,
        result((1, 2)),
        result((1, 2), ended=(0, 1), losses=(0, 1)),
        result((1, 0.5)),
        result((1, 0.5), ended=(0, 1), wins=(0, 1)),
    )
    assert trace.rewards().tolist() == [[1, 2], [1, 2], [1, 0.5], [1, 10.5]]
    assert first.rewards.tolist() == [4.0, 11.0]
    assert first.lengths.tolist() == [2, 2]
    assert first.outcomes.tolist() == [-1, 1]
    assert [first.names[index] for index in first.opponents] == ["right", "right"]
    assert {name: values.tolist() for name, values in first.terms.items()} == {
        "reward": [4.0, 1.0], "wins": [0.0, 10.0],
    }  # fmt: skip
    assert trace.totals() == {"reward": 9.0, "wins": 10.0}
    second = play(trace, result((1, 8)), result((1, 8), ended=(1, 0)), result((5, 8)), result((5, 8), ended=(1, 1)))
    assert second.rewards.tolist() == [6.0, 10.0, 32.0], "the first episode began in the rollout before"
    assert second.lengths.tolist() == [6, 2, 4]
    assert [second.names[index] for index in second.opponents] == ["left", "left", "right"]
    third = play(trace, *[result((1, 1))] * 4)
    assert len(third) == 0
    assert third.names == ("left", "right")
    fourth = play(trace, result((1, 1), ended=(1, 1)), *[result((1, 1))] * 3)
    assert fourth.rewards.tolist() == [5.0, 5.0]
    assert fourth.lengths.tolist() == [5, 5]


def test_ends_are_found_row_by_row() -> None:
    ends = np.zeros((5, 4), dtype=np.bool_)
    for step, row in ((1, 3), (0, 1), (4, 1), (1, 1)):
        ends[step, row] = True
    found = find_ends(ends)
    assert list(zip(found.step.tolist(), found.row.tolist(), found.before.tolist(), strict=True)) == [
        (0, 1, -1), (1, 1, 0), (1, 3, -1), (4, 1, 1),
    ]  # fmt: skip
    assert (found.rows.tolist(), found.finished.tolist()) == ([1, 3], [5, 2])
    assert found.column.tolist() == [0, 0, 1, 0]
    assert len(find_ends(np.zeros((5, 4), dtype=np.bool_)).rows) == 0


def test_nothing_of_an_episode_reaches_the_next() -> None:
    trace = make_trace()
    play(trace, *[result((100, 100))] * 3, result((100, 100), ended=(1, 1)))
    after = play(trace, *[result((1, 1))] * 3, result((1, 1), ended=(1, 1)))
    assert after.rewards.tolist() == [4.0, 4.0]


def test_a_state_goes_on_and_another_one_is_refused() -> None:
    trace, other = make_trace(), make_trace()
    play(trace, *[result((1, 3))] * 4)
    other.load_state(trace.state())
    last = [*[result((1, 3))] * 3, result((1, 3), ended=(1, 1))]
    assert play(other, *last).rewards.tolist() == play(trace, *last).rewards.tolist() == [8.0, 24.0]
    with pytest.raises(StateError, match="does not fit"):
        trace.load_state({"running": torch.zeros(1, 2), "lengths": torch.zeros(2, dtype=torch.int64)})


@pytest.mark.parametrize("few_rows", [0, 64])
@pytest.mark.parametrize("plays_all", [True, False])
def test_episodes_over_many_rollouts_equal_those_of_a_plain_loop(
    plays_all: bool, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "_FEW_ROWS", few_rows)
    env, generator = make_env("duel", 2), torch.Generator().manual_seed(0)
    config = RewardConfig.model_validate({"weights": {"reward": 1.0, "wins": 10.0}})
    episode_metrics = EpisodeMetrics(
        lambda info: {"leads": (info.state_metrics["lead"] > 0).float()}, lambda sums, _lengths, _rate_hz: dict(sums)
    )
    manager = RewardManager("duel", env.spec.events, (config,), {})
    trace = EpisodeRecorder(env.spec, manager, episode_metrics, None if plays_all else Lineup())
    seats = [(0, 0), (0, 1), (1, 0), (1, 1)] if plays_all else [(0, 1), (1, 0)]
    learner = torch.tensor([[False, True], [True, False]])
    trace.begin(5, LearnerBatch(env, None if plays_all else learner))
    running = {row: [0.0, 0.0, 0] for row in range(len(seats))}
    for _ in range(20):
        expected = []
        for t in range(5):
            draw = torch.rand(3, 2, 2, generator=generator)
            ended = torch.rand(2, generator=generator) < 0.2
            events = {"reward": draw[0].round(decimals=2), "wins": (draw[1] > 0.9).float()}
            events |= {"losses": torch.zeros(2, 2), "draws": torch.zeros(2, 2)}
            none, lead = torch.zeros(2, dtype=torch.bool), draw[2] - 0.5
            trace.record(t, StepResult({}, ended, none, {}, events, {"lead": lead}))
            for row, (game, seat) in enumerate(seats):
                weighed = manager.contributions(StepInfo({n: e[game, seat] for n, e in events.items()}, {}, 0.1))
                running[row][0] += float(weighed.double().sum())
                running[row][1] += float(lead[game, seat] > 0)
                running[row][2] += 1
                if ended[game]:
                    expected.append((*running[row], -1 if plays_all else game))
                    running[row] = [0.0, 0.0, 0]
        trace.rewards()
        found = trace.read()
        assert len(found) == len(expected)
        if expected:
            columns = (found.rewards, found.episode_metrics["leads"], found.lengths, found.opponents)
            assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def run_brawl(iterations: int, **changes: Any) -> tuple[list[Episodes], list[Tensor], list[dict[str, float]]]:
    config = TrainConfig.model_validate(
        {
            "world": {"name": "brawl", "num_envs": 8, "settings": {"step_limit": 40}},
            "policy": {"net_arch": {"pi": [8], "vf": [8]}},
            "ppo": {"n_steps": 32, "batch_size": 64, "n_epochs": 1},
            "opponents": {"aggressive": 1, "random": 1},
            **changes,
        }
    )
    episodes, rewards, totals = [], [], []
    with Components(config) as components:
        for _ in range(iterations):
            components.learner.iterate()
            episodes.append(components.trace.read())
            rewards.append(components.learner.rollout.rewards.clone())
            totals.append(components.trace.totals())
    return episodes, rewards, totals


def test_the_account_of_a_real_world_adds_up_exactly() -> None:
    episodes, rewards, totals = run_brawl(5)
    for table, reward, total in zip(episodes, rewards, totals, strict=True):
        assert sum(total.values()) == reward.double().sum().item()
        if len(table):
            assert np.array_equal(np.sum(list(table.terms.values()), axis=0), table.rewards)
    lengths = np.concatenate([table.lengths for table in episodes])
    assert len(lengths) >= 8 * (5 * 32 // 40)
    assert lengths.max() == 40
    finished = sum(table.rewards.sum() for table in episodes)
    everything = sum(reward.double().sum().item() for reward in rewards)
    assert abs(everything - finished) < 8 * 20, "only the eight unfinished episodes are missing"
    assert {"damage_ratio", "survival_s", "danger_share"} <= set(episodes[-1].episode_metrics)


@pytest.mark.parametrize("plays_all", [True, False])
def test_shared_rewards_of_the_rows_are_those_of_all_seats(plays_all: bool) -> None:
    """Rows move between seats; each is rewarded by what all seats of its game did, and behaves as itself."""
    env, generator = make_env("duel", 2), torch.Generator().manual_seed(0)
    config = RewardConfig.model_validate({"weights": {"reward": 1.0, "wins": 8.0}, "team_spirit": 0.5})
    manager = RewardManager("duel", env.spec.events, (config,), {}, (0, 0))
    episode_metrics = EpisodeMetrics(
        lambda info: {"lead": info.state_metrics["lead"]}, lambda sums, _lengths, _hz: dict(sums)
    )
    trace = EpisodeRecorder(env.spec, manager, episode_metrics, None if plays_all else Lineup())
    rows = LearnerBatch(env, None if plays_all else torch.tensor([[True, False], [False, True]]))
    trace.begin(4, rows)
    none, expected, leads = torch.zeros(2, dtype=torch.bool), [], torch.zeros(rows.count)
    for t in range(4):
        reward = torch.randint(0, 9, (2, 2), generator=generator).float()
        lead = torch.randint(0, 9, (2, 2), generator=generator).float()
        wins = torch.tensor([[0.0, 1.0], [0.0, 0.0]]) * (t == 2)
        zeros = torch.zeros(2, 2)
        events = {"reward": reward, "wins": wins, "losses": zeros, "draws": zeros}
        ends = torch.tensor([t == 3, t == 3])
        trace.record(t, StepResult({}, ends, none, {}, events, {"lead": lead}))
        own = reward + 8.0 * wins
        expected.append((0.75 * own + 0.25 * own.flip(1)).flatten()[rows.index].tolist())
        leads += lead.flatten()[rows.index]
        if not plays_all:
            rows.index.copy_(torch.tensor([1 - t % 2, 2 + t % 2]))  # they move after the step
    assert trace.rewards().tolist() == expected
    found = trace.read()
    assert found.rewards.tolist() == torch.tensor(expected).sum(0).tolist()
    assert found.episode_metrics["lead"].tolist() == leads.tolist()


def test_the_account_of_shared_rewards_adds_up_exactly() -> None:
    episodes, rewards, totals = run_brawl(2, rewards={"team_spirit": 0.5})
    for table, reward, total in zip(episodes, rewards, totals, strict=True):
        assert sum(total.values()) == reward.double().sum().item()
        if len(table):
            assert np.array_equal(np.sum(list(table.terms.values()), axis=0), table.rewards)
