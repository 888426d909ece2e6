"""The tiny worlds: rules worked out by hand, best play reaching the best return, and settings that are checked."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, SnapshotError, UnknownNameError
from ludus.envs.base import BatchedEnv, StepResult
from ludus.envs.bots import ObservationView, field_tree
from ludus.envs.registry import make_env


def discrete(*answers: int) -> Tensor:
    return torch.tensor(answers).unsqueeze(1)


def play_episode(env: BatchedEnv, policy: Any) -> tuple[Tensor, StepResult]:
    """Plays one episode of equal length in all games; returns the returns `(games,)` and the last step."""
    observations = {name: tensor.clone() for name, tensor in env.reset().items()}
    total = torch.zeros(env.num_envs)
    for _ in range(10_000):
        result = env.step(policy(observations["vector"][:, 0]))
        total += result.events["reward"][:, 0]
        if bool(result.ended.all()):
            return total, result
        observations = {name: tensor.clone() for name, tensor in result.observations.items()}
    raise AssertionError("the episode never ended")


def test_identity_pays_for_naming_the_cue() -> None:
    env = make_env("identity-v1", 50, config={"cues": 5, "steps": 3})
    total, result = play_episode(env, lambda seen: seen.argmax(dim=1, keepdim=True))
    assert total.tolist() == [3.0] * 50
    assert bool(result.terminated.all())
    assert not bool(result.truncated.any())
    total, _ = play_episode(env, lambda seen: (seen.argmax(dim=1, keepdim=True) + 1) % 5)
    assert total.tolist() == [0.0] * 50


def test_identity_draws_every_cue_about_equally_often() -> None:
    env = make_env("identity-v1", 4000, seed=3)
    counts = env.reset()["vector"].sum(dim=(0, 1))
    assert counts.sum() == 4000
    assert ((counts - 1000).abs() < 130).all()  # five standard deviations of a binomial: 5 * sqrt(750) = 137


def test_recall_shows_the_cue_once_and_asks_at_the_end() -> None:
    env = make_env("recall-v1", 1, config={"cues": 2, "delay": 2})
    first = env.reset()["vector"][0, 0].clone()
    assert first[:2].sum() == 1
    assert first[2] == 0
    cue = int(first[:2].argmax())
    second = env.step(discrete(cue))
    assert second.events["reward"].item() == 0.0  # too early
    assert second.observations["vector"][0, 0].tolist() == [0, 0, 0]
    third = env.step(discrete(cue))
    assert third.observations["vector"][0, 0].tolist() == [0, 0, 1]
    last = env.step(discrete(cue))
    assert last.events["reward"].item() == 1.0
    assert bool(last.terminated)
    assert last.final_observations["vector"][0, 0].tolist() == [0, 0, 0]
    assert last.observations["vector"][0, 0, :2].sum() == 1  # the next episode's cue


def beat_the_style(history: list[Tensor]) -> Tensor:
    """Best reply from the opponent's moves so far, each `(games,)`."""
    if len(history) < 2:
        return torch.zeros(history[0].shape[0] if history else 1, dtype=torch.int64)
    style = (history[-1] - history[-2]) % 3
    return (history[-1] + style + 1) % 3


def test_rps_is_won_by_recognising_the_style() -> None:
    env = make_env("rps-v1", 300, seed=1, config={"rounds": 12})
    env.reset()
    history: list[Tensor] = []
    rewards = []
    for round_number in range(12):
        reply = beat_the_style(history) if history else torch.zeros(300, dtype=torch.int64)
        result = env.step(reply.unsqueeze(1))
        rewards.append(result.events["reward"][:, 0].clone())
        seen = result.final_observations if round_number == 11 else result.observations
        history.append(seen["vector"][:, 0, 1:4].argmax(dim=1))
    assert torch.stack(rewards[2:]).eq(1.0).all()
    assert bool(result.terminated.all())
    # The style is what the measure says it is, and all three occur.
    styles = (history[5] - history[4]) % 3
    assert torch.equal(styles.to(torch.float32), result.state_metrics["style"][:, 0])
    assert set(styles.tolist()) == {0, 1, 2}


def test_rps_without_memory_is_worth_nothing() -> None:
    env = make_env("rps-v1", 3000, seed=2, config={"rounds": 6})
    total, _ = play_episode(env, lambda seen: (seen[:, 1:4].argmax(dim=1, keepdim=True) + 1) % 3)
    assert abs(float(total.mean())) < 0.25  # a round has variance 2/3 and rounds of a style add up: sd about 0.08


def test_rps_noise_makes_the_opponent_slip() -> None:
    env = make_env("rps-v1", 2000, config={"rounds": 3, "noise": 1.0})
    env.reset()
    moves = [env.step(torch.zeros(2000, 1, dtype=torch.int64)).observations["vector"][:, 0, 1:4].argmax(1)]
    moves.append(env.step(torch.zeros(2000, 1, dtype=torch.int64)).observations["vector"][:, 0, 1:4].argmax(1))
    shifts = torch.bincount((moves[1] - moves[0]) % 3, minlength=3)
    assert ((shifts - 667).abs() < 110).all()  # five standard deviations


def test_point_moves_as_computed_by_hand() -> None:
    env = make_env("point-v1", 1, config={"step_limit": 3})
    start = env.reset()["vector"][0, 0].clone()
    result = env.step(torch.tensor([[[1.0, -0.5]]]))
    seen = result.observations["vector"][0, 0]
    # velocity = push * 2 * 0.1 s; position = start + velocity * 0.1 s (starts away from the walls)
    assert seen[2:4].tolist() == pytest.approx([0.2, -0.1])
    assert seen[:2].tolist() == pytest.approx([float(start[0]) + 0.02, float(start[1]) - 0.01], abs=1e-6)
    distance = float((seen[4:] ** 2).sum().sqrt())
    assert result.events["reward"].item() == pytest.approx(-distance)
    assert result.state_metrics["distance"].item() == pytest.approx(distance)
    env.step(torch.full((1, 1, 2), 5.0))  # clipped to 1: the velocity grows by 0.2
    result = env.step(torch.zeros(1, 1, 2))
    assert result.final_observations["vector"][0, 0, 2:4].tolist() == pytest.approx([0.4, 0.1])
    assert bool(result.truncated)
    assert not bool(result.terminated)


def test_point_is_solved_by_a_spring_with_damping() -> None:
    env = make_env("point-v1", 200)
    _, result = play_episode(env, lambda seen: (2.0 * seen[:, 4:] - 2.0 * seen[:, 2:4]).clamp(-1, 1).unsqueeze(1))
    assert result.state_metrics["distance"].max() < 0.05
    assert bool(result.truncated.all())


def test_endless_is_cut_off_not_ended() -> None:
    env = make_env("endless-v1", 2, config={"step_limit": 2})
    env.reset()
    assert not bool(env.step(discrete(0, 1)).ended.any())
    result = env.step(discrete(0, 1))
    assert result.truncated.tolist() == [True, True]
    assert result.terminated.tolist() == [False, False]
    assert result.events["reward"].tolist() == [[1.0], [1.0]]
    ending = make_env("endless-v1", 1, config={"step_limit": 1, "terminates": True})
    ending.reset()
    assert bool(ending.step(discrete(0)).terminated)


def test_duel_scores_both_seats() -> None:
    env = make_env("duel-v1", 2, config={"rounds": 2})
    env.reset()
    first = env.step(torch.tensor([[1, 0], [2, 0]]))  # paper beats rock; scissors lose to rock
    assert first.events["reward"].tolist() == [[1, -1], [-1, 1]]
    assert first.events["wins"].tolist() == [[0, 0], [0, 0]]
    assert first.observations["vector"][0, 0].tolist() == [0.5, 0.5, 0, 1, 0, 1, 0, 0]
    assert first.observations["vector"][0, 1].tolist() == [0.5, -0.5, 1, 0, 0, 0, 1, 0]
    second = env.step(torch.tensor([[1, 1], [1, 0]]))
    assert second.events["wins"].tolist() == [[1, 0], [0, 0]]
    assert second.events["losses"].tolist() == [[0, 1], [0, 0]]
    assert second.events["draws"].tolist() == [[0, 0], [1, 1]]
    assert second.state_metrics["lead"].tolist() == [[1, -1], [0, 0]]


def test_duel_bots_play_their_part_only() -> None:
    env = make_env("duel-v1", 3)
    env.reset()
    bots = env.bots(["cycle", "rock"])
    actions = torch.full((3, 2), 2)
    env.step(actions)  # the second round: cycle plays paper
    bots.act(torch.tensor([[0, -1], [1, 0], [-1, -1]], dtype=torch.int32), actions)
    assert actions.tolist() == [[1, 2], [0, 1], [2, 2]]
    with pytest.raises(UnknownNameError, match="did you mean 'rock'"):
        env.bots(["rok"])


def test_tug_is_pulled_by_teams_and_seen_from_the_own_side() -> None:
    env = make_env("tug-v1", 1, config={"blue": 2, "orange": 1, "rounds": 2})
    assert (env.spec.teams, env.spec.mode) == ((0, 0, 1), "1v2")
    assert [env.spec.side(team) for team in (0, 1)] == ["2v1", "1v2"]
    seen = env.reset()["vector"][0].clone()
    assert seen[:, 2].tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert seen[:, 6].tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    calls = seen[:, 3:6].argmax(1)
    first = env.step(calls.unsqueeze(0))  # everybody pulls
    assert first.events["reward"].tolist() == [[1.0, 1.0, -1.0]]
    assert first.events["wins"].sum() == 0.0
    seen = first.observations["vector"][0].clone()
    assert seen[:, 1].tolist() == pytest.approx([1 / 6, 1 / 6, -1 / 6])
    assert seen[:, 7].tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    answers = (seen[:, 3:6].argmax(1) + torch.tensor([1, 1, 0])) % 3  # orange alone pulls
    last = env.step(answers.unsqueeze(0))
    assert last.events["pulls"].tolist() == [[0.0, 0.0, 1.0]]
    assert last.events["reward"].tolist() == [[-1.0, -1.0, 1.0]]
    assert last.events["draws"].tolist() == [[1.0, 1.0, 1.0]]
    assert bool(last.terminated)


def test_tug_bots_never_sometimes_and_always_pull() -> None:
    env = make_env("tug-v1", 3000, seed=2, config={"blue": 2, "orange": 3, "rounds": 1})
    env.reset()
    actions = torch.full((3000, 5), 7)
    env.bots(["strong", "idle", "random"]).act(torch.tensor([[0, 1, 2, 2, -1]]).int().expand(3000, 5), actions)
    assert bool((actions[:, 4] == 7).all())
    actions[:, 4] = 0
    pulls = env.step(actions).events["pulls"].mean(0).tolist()
    assert pulls[:2] == [1.0, 0.0]
    assert pulls[2:] == pytest.approx([1 / 3] * 3, abs=0.035)  # four standard deviations of a third among 3,000


@pytest.mark.parametrize(
    ("name", "config", "fragment"),
    [
        ("tug-v1", {"blue": 4}, "less than or equal to 3, got 4"),
        ("identity-v1", {"cue": 3}, "did you mean 'cues'"),
        ("recall-v1", {"delay": 0}, "greater than or equal to 1, got 0"),
        ("rps-v1", {"noise": "much"}, "noise: Input should be a valid number, got 'much'"),
        ("point-v1", {"step_limit": 2.5}, "step_limit"),
    ],
)
def test_wrong_settings_are_named(name: str, config: dict[str, Any], fragment: str) -> None:
    with pytest.raises(ConfigError, match=fragment):
        make_env(name, 1, config=config)


def test_reset_refuses_a_seed_for_some_games_and_a_mask_of_another_shape() -> None:
    env = make_env("identity-v1", 3)
    with pytest.raises(ActionError, match="seed"):
        env.reset(torch.tensor([True, False, False]), seed=1)
    with pytest.raises(ActionError, match=r"bool.*\(3,\)"):
        env.reset(torch.tensor([True, False]))


def test_a_snapshot_of_another_world_or_size_is_refused() -> None:
    snapshot = make_env("identity-v1", 3).snapshot()
    with pytest.raises(SnapshotError, match="recall-v1"):
        make_env("recall-v1", 3).restore(snapshot)
    with pytest.raises(SnapshotError, match="games"):
        make_env("identity-v1", 4).restore(snapshot)


def test_a_snapshot_keeps_seeds_of_64_bits() -> None:
    seed = 2**64 - 5
    env = make_env("identity-v1", 4, seed=seed)
    env.reset()
    other = make_env("identity-v1", 4)
    other.restore(env.snapshot())
    assert other.seed == seed


@pytest.mark.parametrize(
    ("world", "read", "expected"),
    [
        ("identity", lambda seen: seen.cue_0 + seen.cue_1 + seen.cue_2 + seen.cue_3, 1.0),
        ("recall", lambda seen: seen.cue_0 + seen.cue_1 + seen.cue_2 + seen.asked, 1.0),
        ("point", lambda seen: seen.velocity.x + seen.velocity.y, 0.0),
        ("endless", lambda seen: seen.one, 1.0),
        ("dig", lambda seen: seen.strength, 1.0),
        ("rps", lambda seen: seen.self.rounds_left - seen.opponent.rock, 1.0),
        ("duel", lambda seen: seen.self.rounds_left + seen.self.lead + seen.opponent.scissors, 1.0),
        ("tug", lambda seen: seen.self.seats + seen.opponent.seats + seen.opponent.pull, 2 / 3),
    ],
)
def test_bots_read_every_number_by_its_name(world: str, read: Any, expected: float) -> None:
    with make_env(world, 3) as env:
        assert len(env.spec.fields["vector"]) == env.spec.observation_space["vector"].shape[0]  # type: ignore[index]
        seen = {name: tensor[:, 0] for name, tensor in env.reset().items()}
        assert read(ObservationView(seen, field_tree(env.spec))).tolist() == pytest.approx([expected] * 3)
