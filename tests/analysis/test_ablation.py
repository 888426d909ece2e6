"""The ablation and the recording, on encoders made by hand whose knowledge and use are known."""

import pytest
import torch
from tests.strategies import MINIMAL, STYLES, Numb, Replies, make_duel_policy

from ludus.analysis.ablation import HARMFUL, NEEDED, NO_DIFFERENCE, Shuffled, ablate, compare
from ludus.analysis.analysed_policy import AnalysedPolicy, check_features, untrained_twin
from ludus.analysis.probe import probe_held_out
from ludus.analysis.recording import Plan, record
from ludus.core.errors import ConfigError
from ludus.core.intervals import wilson_interval
from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import Evaluation, PolicyEvaluator
from ludus.evaluation.players import find_players
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train


def make_evaluator(matches: int = 40) -> PolicyEvaluator:
    env = make_env("duel", len(STYLES) * matches, config={"rounds": 9})
    return PolicyEvaluator(env, find_players(STYLES, env), matches=matches, seed=3)


def test_a_policy_that_uses_its_latent_loses_without_it() -> None:
    found = ablate(make_duel_policy(Replies), make_evaluator(), 40)
    assert found.score == "win_rate"
    for row in (*found.rows, found.mean):
        assert row.scores["as is"].estimate == 1.0
        assert row.scores["zeroed"].estimate < 0.75  # a reply drawn evenly
        assert row.verdict("zeroed") == NEEDED
        assert row.losses["zeroed"].estimate == pytest.approx(1.0 - row.scores["zeroed"].estimate)
    # Paper, which beats rock, draws nine rounds against a cycle; a cycle's replies still beat rock by two rounds.
    assert found.rows[1].scores["shuffled"].estimate < 0.8
    assert [row.verdict("shuffled") for row in found.rows] == [NO_DIFFERENCE, NEEDED]


def test_a_policy_that_ignores_its_latent_plays_on() -> None:
    found = ablate(make_duel_policy(Replies, uses_latent=False), make_evaluator(), 40)
    assert [row.verdict(name) for row in found.rows for name in ("zeroed", "shuffled")] == [NO_DIFFERENCE] * 4
    assert found.rows[0].scores["zeroed"] == found.rows[0].scores["as is"] == wilson_interval(40, 40)


def test_the_probe_knows_what_the_encoder_knows() -> None:
    plan = Plan(STYLES, 16, 1.0, 0.1)
    shares = []
    for encoder in (Replies, Numb):
        policy = make_duel_policy(encoder)
        with make_env("duel", 32) as env:
            recording = record(policy, env, plan)
        assert recording.features["trained"].shape == (10, 32, 3)
        found = probe_held_out(recording.features["trained"], recording.labels, recording.valid, 2)
        shares.append([interval.estimate for interval in found.by_time])
    # Before the third frame both styles look alike; later the replies differ unless both say paper, every third frame.
    assert shares[0][:2] == [0.5, 0.5]
    assert shares[0][2:6] == [1.0, 0.5, 1.0, 1.0]
    assert shares[1] == [0.5] * 10


def test_the_recording_is_that_of_the_plan() -> None:
    policy = make_duel_policy(Replies)
    with make_env("duel", 8, config={"rounds": 6}) as env:
        recording = record(policy, env, Plan(STYLES, 4, 1.0, 0.2, seed=5))
    assert recording.styles == STYLES
    assert recording.labels.tolist() == [0] * 4 + [1] * 4
    assert recording.times_s.tolist() == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    assert recording.valid.all(1).tolist() == [True, True, True, False, False]
    last_moves = recording.features["observation"][1, :, 5:]  # opponent's, after two rounds, whichever side it is on
    assert last_moves.argmax(1).tolist() == [0] * 4 + [1] * 4
    own_moves = recording.features["observation"][1, :, 2:5]
    assert own_moves.argmax(1).tolist() == [1] * 8  # paper twice


def test_changes_by_hand() -> None:
    shuffled = Shuffled()
    rows = torch.arange(7.0).unsqueeze(1)
    once, again = shuffled(rows), shuffled(rows)
    assert torch.equal(once, again)
    assert (once != rows).all()
    assert sorted(once.flatten().tolist()) == rows.flatten().tolist()
    assert shuffled(rows[:1]).item() == 0.0


def test_as_is_is_the_policy_itself() -> None:
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"strategy": MINIMAL, "recurrent": {"size": 4}}))
    plain, watched = (make_evaluator(10).play(each).rows for each in (policy, AnalysedPolicy(policy, "memory")))
    assert plain == watched
    assert all(
        parameter is other
        for parameter, other in zip(policy.parameters(), AnalysedPolicy(policy, "latent").parameters(), strict=True)
    )


def test_a_memory_that_is_zeroed_is_no_memory() -> None:
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 4, "critic": "separate"}}))
    forgetful = AnalysedPolicy(policy, "memory", torch.zeros_like)
    seen, no_start = {"vector": torch.rand(3, 8)}, torch.zeros(3, dtype=torch.bool)
    step = forgetful.step(seen, forgetful.initial(3), no_start)
    assert set(step.memory) == set(policy.initial(1))
    assert all(not tensor.any() for tensor in step.memory.values())
    again = forgetful.step(seen, step.memory, no_start)
    assert torch.equal(step.values, again.values)
    assert forgetful.seen.any()


def test_an_untrained_twin_sees_alike_and_knows_nothing_of_the_training() -> None:
    with make_env("duel") as env:
        settings = {"strategy": MINIMAL, "normalize": {"observations": True}}
        policy = Policy(env.spec, PolicyConfig.model_validate(settings))
    policy.observe({"vector": torch.randn(50, 8)})
    twin = untrained_twin(policy)
    same = {name for name, tensor in policy.state().items() if torch.equal(twin.state()[name], tensor)}
    assert {name for name in policy.state() if name.startswith("normaliser.")} <= same
    assert "parameter.strategy.embedding.weight" not in same
    assert torch.equal(untrained_twin(policy).state()["parameter.head.linear.weight"],
                       twin.state()["parameter.head.linear.weight"])  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "features", "message"),
    [
        ({}, "latent", "policy.strategy or policy.recurrent"),
        ({"recurrent": {}}, "latent", "--features memory"),
        ({"strategy": MINIMAL}, "memory", "--features latent"),
    ],
)
def test_a_missing_part_is_named(settings: dict[str, object], features: str, message: str) -> None:
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig.model_validate(settings))
    with pytest.raises(ConfigError, match=message):
        check_features(policy, features)  # type: ignore[arg-type]


def test_verdicts_follow_the_intervals() -> None:
    def won(count: int) -> Evaluation:
        rate = wilson_interval(count, 40)
        row = {"opponent": "one", "win_rate": rate.estimate, "win_rate_low": rate.low, "win_rate_high": rate.high}
        return Evaluation("duel-v1", (row,), 0.0)

    assert compare([won(30), won(10), won(28)], 40).rows[0].verdict("zeroed") == NEEDED
    assert compare([won(30), won(10), won(28)], 40).rows[0].verdict("shuffled") == NO_DIFFERENCE
    assert compare([won(10), won(30), won(10)], 40).rows[0].verdict("zeroed") == HARMFUL
    both = compare([won(30), won(20), won(28)], 40)
    row, mean = both.rows[0].losses["zeroed"], both.mean.losses["zeroed"]
    assert mean.low < row.estimate == mean.estimate
    assert row.estimate - row.low == pytest.approx((mean.estimate - mean.low) * 2.2414 / 1.95996, rel=1e-4)


def test_worlds_without_styles_are_refused() -> None:
    with make_env("recall", 3) as env:
        policy = Policy(env.spec, PolicyConfig.model_validate({"recurrent": {"size": 4}}))
        with pytest.raises(ConfigError, match="'style'"):
            record(policy, env, Plan((), 3, 1.0, 0.1, 0.0, "memory"))
