"""Scripted players: names, delay, noise, action spaces, both sides alike, and play that can be told apart."""

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, UnknownNameError
from ludus.core.intervals import wilson_interval
from ludus.worlds.rocket.actions import action_table
from ludus.worlds.rocket.bots import BOT_NAMES, BotSpec, nearest_actions, parse_bot
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.rules import Control

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch, Pitch

pytestmark = pytest.mark.train

THINKERS = ("chaser", "shooter", "goalkeeper", "support")


def seated(env: RocketEnv, blue: int, orange: int) -> Tensor:
    """Returns an assignment `(games, seats)` of one bot of the roster to each team."""
    teams = torch.tensor(env.spec.teams, dtype=torch.int32)
    return torch.where(teams == 0, blue, orange).int().expand(env.num_envs, -1).contiguous()


def actions_of(env: RocketEnv) -> Tensor:
    space = env.spec.action_space
    dtype = torch.float32 if env.config.actions == "continuous" else torch.int64
    return torch.zeros((env.num_envs, env.spec.seats, *(space.shape or ())), dtype=dtype)


def play(env: RocketEnv, names: tuple[str, str], steps: int) -> dict[str, Tensor]:
    """Plays the first bot as blue against the second, and returns the sums of all events `(games, seats)`."""
    bots, actions = env.bots(list(names)), actions_of(env)
    assignment = seated(env, 0, 1)
    sums = {name: torch.zeros(env.num_envs, env.spec.seats) for name in env.spec.events}
    for _ in range(steps):
        bots.act(assignment, actions)
        result = env.step(actions)
        for name, values in result.events.items():
            sums[name] += values
    return sums


def test_names_and_settings() -> None:
    assert BOT_NAMES == ("idle", "random", "chaser", "shooter", "goalkeeper", "support")
    assert parse_bot("idle") == BotSpec(BOT_NAMES.index("idle"), 0, 0.0)
    assert parse_bot("shooter") == BotSpec(BOT_NAMES.index("shooter"), 1, 0.02)
    assert parse_bot("support:delay=3,noise=0.25") == BotSpec(BOT_NAMES.index("support"), 3, 0.25)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("shoter", UnknownNameError, "did you mean 'shooter'"),
        ("shooter:dely=3", ConfigError, "did you mean 'delay'"),
        ("shooter:delay=32", ConfigError, "from 0 to 31, got '32'"),
        ("shooter:delay=1.5", ConfigError, "whole number of decisions"),
        ("shooter:noise=2", ConfigError, "from 0 to 1"),
        ("shooter:noise=-1", ConfigError, "from 0 to 1"),
        ("shooter:noise", ConfigError, "'noise' is not a setting"),
        ("shooter:noise=0.1,noise=0.2", ConfigError, "given twice"),
    ],
)
def test_wrong_names_are_refused(pitch: "Pitch", name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pitch.env.bots([name])


def test_wrong_tensors_are_refused(pitch: "Pitch") -> None:
    bots, actions = pitch.env.bots(["chaser"]), actions_of(pitch.env)
    with pytest.raises(ActionError, match=r"bot 1.*chaser"):
        bots.act(seated(pitch.env, 0, 1), actions)
    with pytest.raises(ActionError, match="assignment"):
        bots.act(torch.zeros(1, 2), actions)
    with pytest.raises(ActionError, match="actions"):
        bots.act(seated(pitch.env, 0, 0), actions.long())


@pytest.mark.parametrize("space", ["table", "continuous"])
def test_seats_that_no_bot_plays_stay_as_they_are(make_pitch: "MakePitch", space: str) -> None:
    env = make_pitch(3, mode="2v1", actions=space).env
    actions = actions_of(env).fill_(1)
    env.bots(["chaser"]).act(torch.tensor([[-1, 0, -1]] * 3), actions)
    assert bool((actions[:, [0, 2]] == 1).all())
    assert not bool((actions[:, 1] == 1).all())


def test_actions_of_all_spaces_are_the_same_controls(make_pitch: "MakePitch") -> None:
    """From the same states, the table's row is the nearest to the rounded controls."""
    pitches = {space: make_pitch(200, mode="2v2", actions=space, setters={"random": 1.0, "kickoff": 1.0})
               for space in ("table", "continuous")}  # fmt: skip
    names = [f"{name}:delay=0,noise=0" for name in THINKERS]
    assignment = (torch.arange(800, dtype=torch.int32) % 4).view(200, 4)
    seen = {}
    for space, pitch in pitches.items():
        seen[space] = actions_of(pitch.env)
        pitch.env.bots(names).act(assignment, seen[space])
    controls = seen["continuous"]
    assert bool((controls[..., :5].abs() <= 1).all())
    rounded = torch.where(controls.abs() > 0.5, controls.sign(), 0.0)
    rows = torch.tensor(action_table())[seen["table"]]
    on_ground = pitches["table"].cars["on_ground"] == 1
    drives = on_ground & (controls[..., Control.JUMP] < 0)
    for control in (Control.STEER, Control.BOOST, Control.JUMP):
        wanted = rounded if control < 5 else (controls > 0).float()
        assert torch.equal(rows[drives][:, control], wanted[drives][:, control]), control.name
    flies = ~on_ground
    assert torch.equal(rows[flies][:, Control.JUMP], (controls[flies][:, Control.JUMP] > 0).float())
    assert torch.equal(rows[flies][:, Control.PITCH], rounded[flies][:, Control.PITCH])


def test_the_nearest_action_of_an_action_is_itself() -> None:
    table, nearest = action_table(), nearest_actions()
    codes = np.zeros(len(table), np.int64)
    for control in Control:
        codes = (
            codes * 3 + table[:, control].astype(int) + 1 if control < 5 else codes * 2 + table[:, control].astype(int)
        )
    assert nearest[0, codes].tolist() == list(range(len(table)))
    jumps = table[:, Control.JUMP] > 0
    ground = np.arange(len(table)) < 24
    assert nearest[1, codes][jumps | ground].tolist() == np.arange(len(table))[jumps | ground].tolist()


def test_a_delayed_bot_does_the_same_later(make_pitch: "MakePitch") -> None:
    env = make_pitch(16, setters={"random": 1.0}).env
    prompt, late = (env.bots([f"shooter:delay={delay},noise=0"]) for delay in (0, 3))
    assignment, now, then = seated(env, 0, 0), actions_of(env), actions_of(env)
    history = []
    for step in range(20):
        prompt.act(assignment, now)
        late.act(assignment, then)
        history.append(now.clone())
        if step < 3:
            assert bool((then[..., :5] == 0).all())
            assert bool((then[..., 5:] == -1).all())
        else:
            assert torch.allclose(then, history[step - 3], atol=0.5 / 15 + 1e-5)
        env.step(now)
    assert not torch.equal(history[0], history[10])


def test_noise_holds_random_actions_for_its_share_of_the_time(make_pitch: "MakePitch") -> None:
    env = make_pitch(400, actions="table").env
    bots = env.bots(["idle:noise=0.3"])
    actions = actions_of(env)
    rest = int(nearest_actions()[1, 121 * 8])
    noisy, last, changes = [], actions.clone(), 0
    for step in range(30):
        bots.act(seated(env, 0, 0), actions)
        noisy.append((actions != rest).float().mean().item())
        if step % 3:
            changes += int((actions != last).sum())
        last = actions.clone()
        env.step(torch.full_like(actions, rest))
    assert np.mean(noisy) == pytest.approx(0.3 * 89 / 90, abs=0.02)
    assert changes == 0


def test_the_random_player_draws_all_actions_alike(make_pitch: "MakePitch") -> None:
    env = make_pitch(500, mode="3v3", actions="table").env
    bots, actions = env.bots(["random"]), actions_of(env)
    counts = torch.zeros(90)
    for _ in range(15):
        bots.act(seated(env, 0, 0), actions)
        counts += torch.bincount(actions.flatten(), minlength=90)
        env.step(torch.zeros_like(actions))
    assert counts.sum() == 45_000
    assert 400 < counts.min() < 500 < counts.max() < 600


def test_both_sides_decide_alike(make_pitch: "MakePitch") -> None:
    """In a state turned by half a turn with the teams exchanged, the other team does the same, to the last bit."""
    pitch, image = (make_pitch(200, mode="2v2", setters={"random": 1.0}) for _ in range(2))
    order = [2, 3, 0, 1]
    for name, values in pitch.cars.items():
        image.cars[name][:] = 1 - values[:, order] if name == "team" else values[:, order]
    turn = torch.tensor([-1.0, -1.0, 1.0])
    for name in ("position", "velocity", "spin"):
        image.cars[name][:] = pitch.cars[name][:, order] * turn
        image.ball[name][:] = pitch.ball[name] * turn
    x, y, z, w = image.cars["rotation"].clone().unbind(-1)
    image.cars["rotation"][:] = torch.stack([-y, x, w, -z], -1)
    names = [f"{name}:delay=0,noise=0" for name in THINKERS]
    assignment = torch.randint(0, 4, (200, 4), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    ours, theirs = actions_of(pitch.env), actions_of(pitch.env)
    pitch.env.bots(names).act(assignment, ours)
    image.env.bots(names).act(assignment[:, order].contiguous(), theirs)
    assert torch.equal(ours, theirs[:, order])


def test_games_do_not_depend_on_the_batch_and_snapshots_hold_what_bots_remember(make_pitch: "MakePitch") -> None:
    names = ["shooter:delay=4,noise=0.2", "support:delay=2,noise=0.2"]
    whole, other = make_pitch(8, actions="table").env, make_pitch(8, actions="table").env
    bots, actions = whole.bots(names), actions_of(whole)
    for _ in range(40):
        bots.act(seated(whole, 0, 1), actions)
        whole.step(actions)
    other.restore(whole.snapshot())
    twins, others = other.bots(names), actions_of(other)
    for _ in range(40):
        bots.act(seated(whole, 0, 1), actions)
        twins.act(seated(other, 0, 1), others)
        twins.act(seated(other, 0, 1), others)  # asked twice, they say the same
        assert torch.equal(actions, others)
        whole.step(actions)
        other.step(others)
    alone = make_pitch(1, actions="table").env
    lone, action = alone.bots(names), actions_of(alone)
    fresh = make_pitch(8, actions="table").env
    many, actions = fresh.bots(names), actions_of(fresh)
    for _ in range(60):
        lone.act(seated(alone, 0, 1), action)
        many.act(seated(fresh, 0, 1), actions)
        assert torch.equal(action[0], actions[0])
        alone.step(action)
        fresh.step(actions)


@pytest.mark.parametrize("space", ["table", "continuous"])
@pytest.mark.parametrize("name", ["chaser", "shooter", "support", "goalkeeper"])
def test_the_nearest_kicks_off_within_five_seconds(make_pitch: "MakePitch", name: str, space: str) -> None:
    env = make_pitch(40, actions=space, episode="match").env
    sums = play(env, (f"{name}:noise=0", "idle"), 75)
    first_kickoffs = sums["kickoffs"][:, 0] >= 1
    assert bool(first_kickoffs.all())
    assert float(sums["kickoff_touches"][:, 0].sum() / sums["kickoffs"][:, 0].sum()) > 0.97


def test_a_shooter_beats_a_chaser_and_a_keeper_is_harder_to_score_against(make_pitch: "MakePitch") -> None:
    """Who scores the next goal, with intervals; `docs/worlds/rocket.md` has the whole table."""
    goals = {}
    for pair in (("shooter", "chaser"), ("chaser", "idle"), ("chaser", "goalkeeper"), ("chaser", "chaser")):
        env = make_pitch(160, actions="table", episode="match", match_s=36_000.0).env
        sums = play(env, pair, 600)
        goals[pair] = sums["team_goals"].sum(0).tolist()
    for pair in (("shooter", "chaser"), ("chaser", "idle")):
        won, lost = goals[pair]
        assert wilson_interval(int(won), int(won + lost)).low > 0.5, pair
    assert goals["chaser", "goalkeeper"][0] < 0.75 * np.mean(goals["chaser", "chaser"])


def test_a_keeper_stays_home_and_a_second_man_behind_the_ball(make_pitch: "MakePitch") -> None:
    env = make_pitch(32, mode="2v1", actions="table", episode="match").env
    bots, actions = env.bots(["goalkeeper", "support", "chaser"]), actions_of(env)
    assignment = torch.tensor([[0, 1, 2]] * 32, dtype=torch.int32)
    places = []
    for step in range(450):
        bots.act(assignment, actions)
        state_metrics = env.step(actions).state_metrics
        if step > 150:
            goal_side = (state_metrics["y"] < state_metrics["ball_y"]).float()
            places.append(torch.stack([state_metrics["y"][:, 0], goal_side[:, 1], goal_side[:, 2]]).mean(1))
    keeper_y, support_side, chaser_side = torch.stack(places).mean(0).tolist()
    assert keeper_y < -2500
    assert support_side > 0.6
    assert support_side > chaser_side
