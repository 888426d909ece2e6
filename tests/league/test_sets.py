"""Sets of matches: who plays stays, the learner remembers, matches remain episodes."""

import pytest
import torch
from tests.own_networks import StepCounter
from torch import Tensor

import ludus
from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.random import stream_hash_tensor
from ludus.envs import bots
from ludus.envs.base import BatchedEnv
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import BotObservation
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies import register_network
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.collector import Collector

ROUNDS, BEST_OF = 4, 3
SET = ROUNDS * BEST_OF  # steps


def make_league(
    env: BatchedEnv, weights: dict[str, float], best_of: int, policy: Policy | None = None
) -> LeagueOpponents:
    learner = policy or Policy(env.spec, PolicyConfig())
    return LeagueOpponents(env, learner, weights, LeagueConfig(best_of=best_of), seed=7)


def drawn_by_match(best_of: int, matches: int) -> tuple[Tensor, Tensor]:
    """Return opponents and whether the learner has the first seat, `(matches, games)`, of matches of one round."""
    env = make_env("duel", 12, config={"rounds": 1})
    observations = env.reset()
    league = make_league(env, {"rock": 1.0, "cycle": 1.0, "random": 1.0}, best_of)
    actions = torch.zeros(12, 2, dtype=torch.int64)
    opponents, seats = [], []
    for _ in range(matches):
        opponents.append(league.opponents.clone())
        seats.append(league.learner[:, 0].clone())
        league.act(observations, actions)
        league.after_step(env.step(actions))
    return torch.stack(opponents), torch.stack(seats)


def test_without_sets_every_match_is_drawn_as_ever() -> None:
    opponents, seats = drawn_by_match(1, 3)
    shown = ["".join(map(str, row)) for row in opponents.tolist()]
    assert shown == ["122101210111", "101001101222", "110021220202"]
    assert ["".join(str(int(first)) for first in row) for row in seats.tolist()] == [
        "001010101100", "111001111101", "110011000110",
    ]  # fmt: skip


def test_opponent_and_side_stay_for_a_set_and_set_k_is_what_match_k_would_be() -> None:
    opponents, seats = drawn_by_match(BEST_OF, 3 * BEST_OF)
    plain = drawn_by_match(1, 3)
    for match in range(3 * BEST_OF):
        assert torch.equal(opponents[match], plain[0][match // BEST_OF])
        assert torch.equal(seats[match], plain[1][match // BEST_OF])


def counting_collector(weights: dict[str, float], steps: int = 2 * SET) -> tuple[Collector, LeagueOpponents]:
    env = make_env("duel", 6, config={"rounds": ROUNDS})
    policy = Policy(env.spec, PolicyConfig(module=register_network(StepCounter), module_kwargs={"period": ROUNDS}))
    league = make_league(env, weights, BEST_OF, policy)
    config = PpoConfig.model_validate({"n_steps": steps, "sequence_length": steps, "batch_size": steps})
    collector = Collector(env, policy, config, learner=league.learner, opponents=league)
    league.attach(collector.rows)
    return collector, league


def test_the_learner_remembers_over_a_set_forgets_at_its_start_and_matches_stay_episodes() -> None:
    collector, _ = counting_collector({"rock": 1.0})
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        collector.collect(generator)
        buffer, steps = collector.buffer, torch.arange(2 * SET)
        # Rock in the first match of a set, paper in the second, scissors in the third.
        expected = (steps % SET // ROUNDS).unsqueeze(1).expand(-1, 6)
        assert torch.equal(buffer.actions, expected)
        assert torch.equal(buffer.dones, (steps % ROUNDS == ROUNDS - 1).unsqueeze(1).expand(-1, 6))
        assert torch.equal(buffer.episode_starts, (steps % ROUNDS == 0).unsqueeze(1).expand(-1, 6))
        assert torch.equal(buffer.memory_starts, (steps % SET == 0).unsqueeze(1).expand(-1, 6))
        metrics = dict(zip(("episodes", "return", "length"), collector.device_metrics().tolist(), strict=False))
        # Against rock: 4 ties, 4 won, 4 lost in every set.
        assert metrics == {"episodes": 36.0, "return": 0.0, "length": float(ROUNDS)}
        batch = buffer.minibatch(torch.arange(6))
        found = collector.policy.unroll(batch.observations, batch.memory, batch.forgets, batch.actions)
        torch.testing.assert_close(found.log_probs, buffer.log_probs)
        again = collector.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
        assert not torch.allclose(again.log_probs, buffer.log_probs)


def test_a_past_self_remembers_over_the_set_as_the_learner_does() -> None:
    collector, _ = counting_collector({"self": 1.0})
    collector.collect(torch.Generator().manual_seed(0))
    # Both count the same steps, so all throws are ties: a past self that forgot in every match would lose to paper.
    assert torch.equal(collector.buffer.rewards, torch.zeros(2 * SET, 6))


def test_the_state_is_enough_in_the_middle_of_a_set() -> None:
    first, league = counting_collector({"rock": 1.0, "self": 1.0}, steps=ROUNDS + 1)
    generator = torch.Generator().manual_seed(0)
    first.collect(generator)  # ends in the second match
    kept, games, seats = first.state(), first.env.snapshot(), league.state()
    random = generator.get_state()
    first.collect(generator)
    second, other = counting_collector({"rock": 1.0, "self": 1.0}, steps=ROUNDS + 1)
    other.load_state(seats)
    second.load_state(kept, second.env.restore(games))
    generator.set_state(random)
    second.collect(generator)
    for name in ("actions", "rewards", "episode_starts", "memory_starts", "dones"):
        assert torch.equal(getattr(first.buffer, name), getattr(second.buffer, name)), name
    assert first.buffer.memory_starts.sum() == 0
    assert first.buffer.episode_starts.sum() > 0


def test_games_that_restart_begin_a_new_set() -> None:
    env = make_env("duel", 4, config={"rounds": 1})
    observations = env.reset()
    league = make_league(env, {"rock": 1.0}, BEST_OF)
    actions = torch.zeros(4, 2, dtype=torch.int64)
    league.act(observations, actions)
    league.after_step(env.step(actions))
    league.restart()
    assert league.episodes.tolist() == [BEST_OF] * 4


@pytest.mark.parametrize("best_of", [1, BEST_OF])
def test_a_bot_in_python_draws_its_parameters_once_per_set(best_of: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bots, "_REGISTERED", {})
    seen: list[tuple[list[float], list[float]]] = []

    def watcher(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        seen.append((observation.parameter().tolist(), observation.uniform().tolist()))
        return torch.zeros_like(observation.frame), state

    ludus.register_bot("duel", "watcher")(watcher)
    env = make_env("duel", 3, seed=4, config={"rounds": 2})
    observations = env.reset()
    league = make_league(env, {"watcher": 1.0}, best_of)
    actions = torch.zeros(3, 2, dtype=torch.int64)
    for step in range(2 * 2 * BEST_OF):
        league.act(observations, actions)
        league.after_step(env.step(actions))
        if step == 2:  # the numbers do not depend on what the roster has seen before
            state = league.state()
            league.load_state(state)
    by_match = [seen[step][0] for step in range(0, len(seen), 2)]
    assert [seen[step][0] for step in range(1, len(seen), 2)] == by_match, "the same in all steps of a match"
    sets = [by_match[number : number + best_of] for number in range(0, len(by_match), best_of)]
    assert all(each == group[0] for group in sets for each in group)
    assert len({tuple(group[0]) for group in sets}) == len(sets)
    assert len({tuple(chances) for _, chances in seen}) == len(seen), "chances of a step are new in every match"


def test_roshambo_bots_keep_their_parameters_within_a_set_and_draw_new_ones_for_the_next() -> None:
    throws, games = 18, 64
    env = make_env("roshambo", games, seed=5, config={"throws": throws})
    env.play_sets(BEST_OF)
    roster, actions = BotRoster(env, ["cycle:noise=0"]), torch.zeros((games, 2), dtype=torch.int64)
    observations, bots = env.reset(), torch.zeros((games, 2), dtype=torch.int32)
    played = []
    for _ in range(2 * BEST_OF * throws):
        roster.act(observations, bots, actions)
        played.append(actions.clone())
        observations = env.step(actions).observations
    matches = torch.stack(played).view(2, BEST_OF, throws, games, 2)
    assert torch.equal(matches[:, 1:], matches[:, :1].expand(-1, BEST_OF - 1, -1, -1, -1))
    same = (matches[0, 0] == matches[1, 0]).all(0).float().mean()
    assert same < 0.1  # two cycles of 2 to 9 throws are alike by chance
    # A pure function of (seed, game, set): another batch draws the same.
    other = make_env("roshambo", 4, seed=5, first_game=10, config={"throws": throws})
    other.play_sets(BEST_OF)
    few, chosen = BotRoster(other, ["cycle:noise=0"]), torch.zeros((4, 2), dtype=torch.int64)
    few.act(other.reset(), torch.zeros((4, 2), dtype=torch.int32), chosen)
    assert torch.equal(chosen, matches[0, 0, 0, 10:14])


def test_roshambo_bots_without_sets_throw_as_ever() -> None:
    env = make_env("roshambo", 2, seed=5, config={"throws": 8})
    roster, actions = env.bots(["cycle", "memory-one"]), torch.zeros((2, 2), dtype=torch.int64)
    seats, played = torch.tensor([[0, 1], [0, 1]], dtype=torch.int32), []
    for _ in range(24):
        roster.act(seats, actions)
        played.append(actions.clone())
        env.step(actions)
    columns = torch.stack(played).permute(1, 2, 0).flatten(0, 1).tolist()
    assert ["".join(map(str, column)) for column in columns] == [
        "211010201110222101102212", "201010121021021220101001", "012012012101221000111021", "122222211121201221010101",
    ]  # fmt: skip


def test_draws_are_keyed_by_the_number_of_the_set() -> None:
    env = make_env("duel", 8, first_game=3, config={"rounds": 1})
    league = make_league(env, {"rock": 1.0}, 5)
    league.episodes.fill_(14)  # the last match of the third set
    games = torch.arange(8)
    expected = stream_hash_tensor(7, 3 + games, torch.full((8,), 2), 0, 0x5EA7) % 2
    league.after_step(env.step(torch.zeros(8, 2, dtype=torch.int64)))
    assert league.episodes.tolist() == [15] * 8
    assert torch.equal(
        league.learner[:, 1].long(), stream_hash_tensor(7, 3 + games, torch.full((8,), 3), 0, 0x5EA7) % 2
    )
    assert not torch.equal(league.learner[:, 1].long(), expected)
