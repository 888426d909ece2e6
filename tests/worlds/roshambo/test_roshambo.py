"""Roshambo by hand: the rules, what a seat sees, and bots whose throws are known."""

import pytest
import torch
from torch import Tensor

from ludus import make_env
from ludus.core.errors import ConfigError, SnapshotError, UnknownNameError
from ludus.envs.base import BatchedEnv
from ludus.envs.check import CheckOptions, check_env
from ludus.worlds.roshambo.rules import observation_fields

pytestmark = pytest.mark.train

ROCK, PAPER, SCISSORS = range(3)


def make(games: int, seed: int = 5, first_game: int = 0, device: str = "cpu", **settings: int) -> BatchedEnv:
    return make_env("roshambo", games, device, seed=seed, first_game=first_game, config=settings)


def play(env: BatchedEnv, names: list[str], steps: int, bots: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Play bots, `(games, seats)` indices into the names, by default one per seat; return throws and rewards."""
    roster = env.bots(names)
    if bots is None:
        bots = torch.arange(2, dtype=torch.int32).expand(env.num_envs, 2).contiguous()
    actions = torch.zeros((env.num_envs, 2), dtype=torch.int64, device=env.device)
    throws, rewards = [], []
    for _ in range(steps):
        roster.act(bots.to(env.device), actions)
        throws.append(actions.cpu().clone())
        rewards.append(env.step(actions).events["reward"].cpu().clone())
    return torch.stack(throws), torch.stack(rewards)


def test_conformance() -> None:
    report = check_env(
        lambda games, seed, first: make(games, seed, first, throws=30, last_throws=5, clock_period=7),
        CheckOptions(random=False),  # the game itself has no chance in it
    )
    assert {"bots", "snapshot", "batch", "ends"} <= set(report.passed)


def test_a_match_of_three_throws_by_hand() -> None:
    env = make(1, throws=3)
    fields = observation_fields(1)
    first = env.reset()["vector"].clone()
    assert not first.any()
    rewards, leads = [], []
    for pair in ((PAPER, ROCK), (ROCK, ROCK), (SCISSORS, ROCK)):
        result = env.step(torch.tensor([pair]))
        rewards.append(result.events["reward"][0].tolist())
        leads.append(result.state_metrics["lead"][0].tolist())
        if pair == (PAPER, ROCK):
            for seat, shown, lead in ((0, "paper_rock", 1 / 3), (1, "rock_paper", -1 / 3)):
                own, _, other = shown.partition("_")
                seen = dict(zip(fields, result.observations["vector"][0, seat].tolist(), strict=True))
                marked = {name.removeprefix("last.") for name in fields[2:] if seen[name] == 1.0}
                assert marked == {f"own_{own}", f"opponent_{other}", shown}
                assert (seen["clock.progress"], seen["clock.lead"]) == pytest.approx((1 / 3, lead))
            assert not bool(result.terminated)
    assert rewards == [[1.0, -1.0], [0.0, 0.0], [-1.0, 1.0]]
    assert leads == [[1.0, -1.0], [1.0, -1.0], [0.0, 0.0]]
    assert bool(result.terminated)
    assert not bool(result.truncated)
    assert result.final_observations["vector"][0, 0, fields.index("clock.progress")] == 1.0
    assert torch.equal(result.observations["vector"], first)


def test_the_last_throws_are_shown_latest_first_and_forgotten_with_the_match() -> None:
    env = make(1, throws=4, last_throws=3)
    fields = env.spec.fields["vector"]
    env.reset()
    shown = []
    for pair in ((PAPER, ROCK), (ROCK, SCISSORS), (SCISSORS, PAPER), (ROCK, ROCK)):
        result = env.step(torch.tensor([pair]))
        latest = result.final_observations if bool(result.terminated) else result.observations
        for seat in (0, 1):
            values = latest["vector"][0, seat, 17:].tolist()
            shown.append([name for name, value in zip(fields[17:], values, strict=True) if value])
    assert shown == [
        [],
        [],
        ["last_2.own_paper", "last_2.opponent_rock"],
        ["last_2.own_rock", "last_2.opponent_paper"],
        ["last_2.own_rock", "last_2.opponent_scissors", "last_3.own_paper", "last_3.opponent_rock"],
        ["last_2.own_scissors", "last_2.opponent_rock", "last_3.own_rock", "last_3.opponent_paper"],
        ["last_2.own_scissors", "last_2.opponent_paper", "last_3.own_rock", "last_3.opponent_scissors"],
        ["last_2.own_paper", "last_2.opponent_scissors", "last_3.own_scissors", "last_3.opponent_rock"],
    ]
    assert not result.observations["vector"].any()
    assert fields == observation_fields(3)
    assert env.spec.blocks["vector"] == {"self": (0, 2), "opponent": (2, 29)}


def test_the_clock_shows_its_phase() -> None:
    env = make(1, throws=5, last_throws=2, clock_period=3)
    fields = env.spec.fields["vector"]
    seen = [env.reset()["vector"].clone()]
    seen += [env.step(torch.tensor([[ROCK, PAPER]])).observations["vector"].clone() for _ in range(4)]
    hot = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert [each[0, :, -3:].tolist() for each in seen] == [[hot[throw % 3]] * 2 for throw in range(5)]
    assert fields == (*observation_fields(2), "clock.phase_0", "clock.phase_1", "clock.phase_2")
    assert env.spec.blocks["vector"]["opponent"] == (2, 26)


def test_every_throw_beats_the_one_before_it() -> None:
    env = make(9)
    actions = torch.tensor([(own, other) for own in range(3) for other in range(3)])
    assert env.step(actions).events["reward"][:, 0].tolist() == [0, -1, 1, 1, 0, -1, -1, 1, 0]


def test_bots_that_look_at_no_one() -> None:
    throws, _ = play(make(60), ["constant:noise=0", "cycle:noise=0"], 60)
    constant, cycle = throws[..., 0], throws[..., 1]
    assert (constant == constant[0]).all()
    assert set(constant[0].tolist()) == {0, 1, 2}  # drawn for every match
    periods = torch.stack([(cycle[period:] == cycle[:-period]).all(0) for period in range(2, 10)])
    assert periods.any(0).all()
    assert periods[:2].sum() < 60  # and not all are short


def test_bots_that_answer_the_last_throw() -> None:
    throws, rewards = play(make(40), ["beat-last:noise=0", "random"], 30)
    assert torch.equal(throws[1:, :, 0], (throws[:-1, :, 1] + 1) % 3)
    assert rewards.sum(-1).eq(0).all()
    throws, _ = play(make(40), ["memory-one:noise=0", "random"], 200)
    pairs = 3 * throws[:-1, :, 0] + throws[:-1, :, 1]
    for game in range(40):
        answers = set(zip(pairs[:, game].tolist(), throws[1:, game, 0].tolist(), strict=True))
        assert len(answers) == len(set(pairs[:, game].tolist()))  # one answer to each pair


def test_flat_plays_all_throws_equally_often() -> None:
    throws, _ = play(make(16, throws=24), ["flat:noise=0", "random"], 24)
    counts = torch.stack([(throws[..., 0] == throw).sum(0) for throw in range(3)])
    assert (counts == 8).all()


@pytest.mark.parametrize("bot", ["frequency", "rotation", "markov-1", "markov-2", "markov-3", "matcher"])
def test_predictors_have_the_measure_of_a_rock(bot: str) -> None:
    env = make(32)
    roster, bots = env.bots([f"{bot}:noise=0"]), torch.tensor([[0, -1]] * 32, dtype=torch.int32)
    actions = torch.full((32, 2), ROCK)
    for _ in range(40):
        roster.act(bots, actions)
        rewards = env.step(actions).events["reward"][:, 0]
        last = actions[:, 0].clone()
    # Three of four beat their prediction, the others second-guess; those that are behind may have given up.
    assert (rewards == 1).float().mean() > 0.5
    assert (last == PAPER).sum() == (rewards == 1).sum()


def counted(history: list[tuple[int, int]], order: int, kinds: tuple[int, ...]) -> list[int]:
    """Count what seat 1 threw after the same throws as the last ones; the plain version of the kernel's scan."""
    counts = [0, 0, 0]
    wanted = [[pair[kind] for kind in kinds] for pair in history[len(history) - order :]]
    for place in range(order, len(history)):
        if [[pair[kind] for kind in kinds] for pair in history[place - order : place]] == wanted:
            counts[history[place][1]] += 1
    return counts


def test_markov_bots_beat_what_they_counted() -> None:
    steps, games = 24, 64
    throws, _ = play(make(games), ["markov-2:noise=0", "biased"], steps + 1)
    kinds = ((1,), (0,), (0, 1))  # of the opponent, of itself, of both
    agreeing = 0
    for game in range(games):
        history = [(int(own), int(other)) for own, other in throws[:steps, game]]
        answer = int(throws[steps, game, 0])
        # Which kind and rotation it drew is not known: one must explain all throws with a clear favourite.
        agreeing += any(
            all(
                int(throws[place, game, 0]) == (counts.index(max(counts)) + turn) % 3
                for place in range(3, steps + 1)
                if (counts := counted(history[:place], 2, kind)).count(max(counts)) == 1
            )
            for kind in kinds
            for turn in range(3)
        )
        assert answer in range(3)
    assert agreeing > 0.75 * games  # a third of those that fall far behind give up


def test_meta_beats_all_bots_that_repeat_themselves() -> None:
    styles = ["constant", "cycle", "beat-last", "reaction", "memory-one", "copycat"]
    games = 8 * len(styles)
    env = make(games, throws=300)
    bots = torch.stack([torch.zeros(games), 1 + torch.arange(games) % len(styles)], 1).int()
    _, rewards = play(env, ["meta", *styles], 300, bots)
    won = rewards[..., 0].sum(0).view(8, -1).mean(0)
    assert (won > 60).all(), dict(zip(styles, won.tolist(), strict=True))


def test_random_is_even() -> None:
    _, rewards = play(make(64), ["random", "meta"], 500)
    # 64 * 500 throws with a deviation of sqrt(2 / 3) each: 5 standard errors are 0.023.
    assert abs(float(rewards[..., 0].mean())) < 0.023


def test_games_do_not_depend_on_their_batch() -> None:
    names = [*make(1).spec.bots]
    together = make(20, first_game=3)
    bots = torch.stack([torch.arange(20), torch.arange(20).flip(0)], 1).int()
    throws, _ = play(together, names, 40, bots)
    for game in (0, 7, 17, 19):
        alone, _ = play(make(1, first_game=3 + game), names, 40, bots[game : game + 1])
        assert torch.equal(alone[:, 0], throws[:, game]), names[game]
    other, _ = play(make(20, seed=6, first_game=3), names, 40, bots)
    assert not torch.equal(other, throws)


def test_snapshots_hold_what_bots_remember_and_asking_twice_changes_nothing() -> None:
    env = make(20)
    names = [*env.spec.bots]
    bots = torch.stack([torch.arange(20), torch.full((20,), names.index("meta"))], 1).int()
    play(env, names, 30, bots)
    snapshot = env.snapshot()
    first, _ = play(env, names, 30, bots)
    env.restore(snapshot)
    roster, actions = env.bots(names), torch.zeros((20, 2), dtype=torch.int64)
    roster.act(bots, actions)
    again, _ = play(env, names, 30, bots)
    assert torch.equal(first, again)
    assert torch.equal(actions, first[0])


def test_hostile_snapshots_are_refused() -> None:
    env = make(2, throws=10)
    for name, value in (("history", 3), ("history", -1), ("history", 12), ("matches", 10), ("bot_memory", 2**30 + 1)):
        snapshot = env.snapshot()
        snapshot[name][0].fill_(value)
        with pytest.raises(SnapshotError, match="roshambo"):
            env.restore(snapshot)


def test_names_and_settings() -> None:
    env = make(1)
    with pytest.raises(UnknownNameError, match=r"markov-1"):
        env.bots(["markov-9"])
    with pytest.raises(ConfigError, match="noise=SHARE"):
        env.bots(["cycle:delay=3"])
    with pytest.raises(ConfigError, match="from 0 to 1"):
        env.bots(["cycle:noise=2"])
    throws, _ = play(make(300), ["constant:noise=1", "constant:noise=0"], 30)
    shares = torch.stack([(throws[..., 0] == throw).float().mean() for throw in range(3)])
    assert torch.allclose(shares, torch.full((3,), 1 / 3), atol=0.03)


@pytest.mark.cuda
def test_a_gpu_computes_the_same_bits() -> None:
    names = [*make(1).spec.bots]
    bots = torch.stack([torch.arange(400) // 20, torch.arange(400) % 20], 1).int()
    on_cpu, on_gpu = (play(make(400, device=device, throws=120), names, 150, bots) for device in ("cpu", "cuda"))
    assert torch.equal(on_cpu[0], on_gpu[0])
    assert torch.equal(on_cpu[1], on_gpu[1])
