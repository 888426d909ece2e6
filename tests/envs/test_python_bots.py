"""Bots in Python: functions and classes play by name, remember, are delayed and disturbed; bad ones are named."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from torch import Tensor

import ludus
from ludus.core.errors import BotError, ConfigError, StateError, UnknownNameError
from ludus.envs import bot_roster, bots
from ludus.envs.base import BatchedEnv
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import RESERVED, BotObservation, as_bot, bot_names, register_bot
from ludus.envs.registry import make_env
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND

pytestmark = pytest.mark.train

ROCK, PAPER, SCISSORS = range(3)
SETTINGS: dict[str, Any] = {
    "world": {"name": "duel-v1", "num_envs": 8},
    "total_env_steps": 512,
    "ppo": {"n_steps": 16, "batch_size": 64, "n_epochs": 1},
    "checkpoints": {"every_iterations": 1},
    "monitoring": {"console": "off", "tensorboard": False, "curves": False},
}


@pytest.fixture(autouse=True)
def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bots, "_REGISTERED", {})


@pytest.fixture
def duel() -> Iterator[BatchedEnv]:
    with make_env("duel", 4) as env:
        yield env


def paper(observation: BotObservation, state: None) -> tuple[Tensor, None]:
    return torch.full(observation.frame.shape, PAPER), state


def counts(observation: BotObservation, state: dict[str, Tensor] | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Plays the number of its calls in this episode, modulo 3."""
    calls = torch.zeros_like(observation.frame) if state is None else state["calls"]
    return calls % 3, {"calls": calls + 1}


class Counts:
    def reset(self) -> None:
        self.calls = -1

    def act(self, observation: BotObservation) -> int:
        self.calls += 1
        return self.calls % 3


def play(env: BatchedEnv, roster: BotRoster, assignment: Tensor, steps: int, *, first: bool = True) -> Tensor:
    """Plays steps and returns what the bots did, `(steps, games, seats)`; -1 where none plays."""
    done, observations = [], env.reset() if first else None
    if first:
        roster.begin(torch.ones(env.num_envs, dtype=torch.bool))
    for _ in range(steps):
        actions = torch.full((env.num_envs, env.spec.seats), -1)
        roster.act(observations or env._observe(), assignment, actions)  # type: ignore[attr-defined]
        done.append(actions)
        result = env.step(actions.clamp(min=0))
        roster.begin(result.ended)
        observations = result.observations
    return torch.stack(done)


def test_the_words_of_a_mix_are_no_names_of_bots() -> None:
    assert RESERVED == (SELF_KIND, MIRROR_KIND)


def test_python_bots_and_those_of_the_world_play_side_by_side(duel: BatchedEnv) -> None:
    register_bot("duel", "paper")(paper)
    assert bot_names(duel.spec) == ("rock", "cycle", "random", "paper")
    roster = BotRoster(duel, ["cycle", "paper", "rock"])
    assignment = torch.tensor([[0, 1], [1, 2], [-1, 1], [2, -1]], dtype=torch.int32)
    done = play(duel, roster, assignment, 4)
    assert done[:, 0].tolist() == [[0, 1], [1, 1], [2, 1], [0, 1]]
    assert done[0].tolist() == [[0, 1], [1, 0], [-1, 1], [0, -1]]
    assert duel._measure()["lead"][1].tolist() == [4.0, -4.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [counts, Counts])
def test_a_state_begins_anew_with_every_episode_of_its_own_game(code: Callable[..., Any]) -> None:
    with make_env("duel", 3, config={"rounds": 5}) as env:
        roster = BotRoster(env, [as_bot(code)])
        assignment = torch.tensor([[0, -1], [-1, 0], [0, 0]], dtype=torch.int32)
        done = play(env, roster, assignment, 7)
        assert done[:, 2, 1].tolist() == [0, 1, 2, 0, 1, 0, 1]
        roster.begin(torch.tensor([False, True, False]))
        more = play(env, roster, assignment, 1, first=False)
        assert more[0].tolist() == [[2, -1], [-1, 0], [2, 2]]


def test_a_delay_gives_what_was_decided_before_and_nothing_at_first(duel: BatchedEnv) -> None:
    register_bot("duel", "counts", delay=2)(counts)
    assignment = torch.zeros((4, 2), dtype=torch.int32)
    assert play(duel, BotRoster(duel, ["counts"]), assignment, 5)[:, 0, 0].tolist() == [0, 0, 0, 1, 2]
    assert play(duel, BotRoster(duel, ["counts:delay=0"]), assignment, 4)[:, 0, 0].tolist() == [0, 1, 2, 0]


def test_noise_has_its_share_and_does_not_depend_on_the_batch() -> None:
    played = {}
    for games, first in ((64, 0), (1, 5)):
        with make_env("duel", games, seed=3, first_game=first, config={"rounds": 1000}) as env:
            roster = BotRoster(env, [as_bot(paper, noise=0.3)])
            played[games] = play(env, roster, torch.zeros((games, 2), dtype=torch.int32), 400)
    share = (played[64] != PAPER).float().mean()  # a third of the random actions is paper too
    assert abs(float(share) - 0.2) < 0.02
    assert torch.equal(played[64][:, 5], played[1][:, 0])
    assert not torch.equal(played[64][:, 5], played[64][:, 6])
    assert not torch.equal(played[64][:, 5, 0], played[64][:, 5, 1])


def test_random_numbers_are_the_same_for_the_same_seed_and_differ_by_number(duel: BatchedEnv) -> None:
    seen: list[Tensor] = []

    def look(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        seen.append(torch.stack([observation.uniform(), observation.uniform(1)]))
        return torch.zeros_like(observation.frame), state

    for _ in range(2):
        duel.reset(seed=9)
        play(duel, BotRoster(duel, [as_bot(look)]), torch.zeros((4, 2), dtype=torch.int32), 2)
    assert torch.equal(seen[0], seen[2])
    assert torch.equal(seen[1], seen[3])
    assert len({round(float(number), 6) for number in torch.cat([each.flatten() for each in seen[:2]])}) == 32
    assert bool(((seen[0] >= 0) & (seen[0] < 1)).all())


def test_named_views_show_the_fields_of_the_spec() -> None:
    with make_env("brawl", 2) as env:
        names, vector = env.spec.fields["vector"], env.reset()["vector"]
        seen: list[BotObservation] = []

        def look(observation: BotObservation, state: None) -> tuple[Tensor, None]:
            seen.append(observation)
            return torch.zeros((len(observation.frame), 10), dtype=torch.int8), state

        actions = torch.zeros((2, 2, 10), dtype=torch.int8)
        BotRoster(env, [as_bot(look)]).act({"vector": vector}, torch.zeros((2, 2), dtype=torch.int32), actions)
        rows = vector.flatten(0, 1)
        assert torch.equal(seen[0].opponent.x, rows[:, names.index("opponent.x")])
        assert torch.equal(seen[0].self.damage, rows[:, names.index("self.damage")])
        assert torch.equal(seen[0]["vector"], rows)
        assert "opponent" in dir(seen[0])
        with pytest.raises(AttributeError, match=r"oponent.*did you mean 'opponent'"):
            seen[0].oponent  # noqa: B018


def test_worlds_without_names_give_their_blocks(duel: BatchedEnv) -> None:
    def beat_the_last(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        return (observation.opponent.paper + 2 * observation.opponent.scissors + 1).long() % 3, state

    roster = BotRoster(duel, [as_bot(beat_the_last), "rock"])
    assert play(duel, roster, torch.tensor([[0, 1]] * 4, dtype=torch.int32), 3)[:, :, 0].tolist() == [[PAPER] * 4] * 3


BAD: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (lambda o, _: o.nothing, "AttributeError.*test_python_bots.py:"),
    "no tuple": (lambda o, _: torch.zeros_like(o.frame), r"\(actions, state\)"),
    "no tensor": (lambda _, s: ([0], s), "list"),
    "shape": (lambda o, s: (torch.zeros((len(o.frame), 2), dtype=torch.int64), s), r"\(4, 2\).*\(4,\)"),
    "floats": (lambda o, s: (torch.zeros(len(o.frame)), s), "float32"),
    "range": (lambda o, s: (torch.full_like(o.frame, 3), s), "3"),
    "state type": (lambda o, _: (torch.zeros_like(o.frame), 7), "state.*7"),
    "state shape": (lambda o, _: (torch.zeros_like(o.frame), torch.zeros(2)), r"\(2,\)"),
    "state form": (
        lambda o, s: (torch.zeros_like(o.frame), None if s is not None else o.frame),
        "nothing.*tensor|tensor",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_functions_are_named_with_their_place(duel: BatchedEnv, case: str) -> None:
    code, expected = BAD[case]
    roster = BotRoster(duel, [as_bot(code, "wrong")])
    with pytest.raises(BotError, match=expected) as caught:
        play(duel, roster, torch.tensor([[0, -1]] * 4, dtype=torch.int32), 2)
    assert re.search(r"bot 'wrong' \(.*test_python_bots\.py:\d+\)", str(caught.value))


class Raises:
    def reset(self) -> None: ...

    def act(self, observation: BotObservation) -> int:
        return int(observation.frame) // 0


class Shapeless(Counts):
    def act(self, observation: BotObservation) -> Any:
        return [1, 2]


@pytest.mark.parametrize(("code", "expected"), [(Raises, "ZeroDivisionError.*py:"), (Shapeless, r"\(2,\)")])
def test_bad_classes_are_named_with_their_place(duel: BatchedEnv, code: type, expected: str) -> None:
    roster = BotRoster(duel, [as_bot(code)])
    with pytest.raises(BotError, match=expected):
        play(duel, roster, torch.zeros((4, 2), dtype=torch.int32), 1)


def test_nan_is_refused_and_what_is_out_of_bounds_is_clipped() -> None:
    with make_env("rocket", 2, config={"actions": "continuous"}) as env:
        actions = torch.zeros((2, 2, 8))
        for value in (5.0, float("nan")):
            roster = BotRoster(env, [as_bot(lambda o, s, v=value: (torch.full((len(o.frame), 8), v), s))])
            if value == 5.0:
                roster.act(env.reset(), torch.zeros((2, 2), dtype=torch.int32), actions)
                assert float(actions.max()) == 1.0
                continue
            with pytest.raises(BotError, match="NaN"):
                roster.act(env.reset(), torch.zeros((2, 2), dtype=torch.int32), actions)


def test_a_bot_that_never_returns_is_ended_and_named(duel: BatchedEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot_roster, "TIME_LIMIT_S", 0.4)

    def ponders(_: BotObservation, __: None) -> tuple[Tensor, None]:
        while True:
            time.sleep(0.01)

    roster = BotRoster(duel, [as_bot(ponders)])
    with pytest.raises(BotError, match=r"0\.4 s.*test_python_bots\.py:\d+"):
        play(duel, roster, torch.zeros((4, 2), dtype=torch.int32), 1)
    roster = BotRoster(duel, [as_bot(paper)])
    play(duel, roster, torch.zeros((4, 2), dtype=torch.int32), 3)


def test_costs_are_counted(duel: BatchedEnv) -> None:
    roster = BotRoster(duel, ["rock", as_bot(paper)])
    play(duel, roster, torch.tensor([[0, 1]] * 4, dtype=torch.int32), 5)
    ((name, (seconds, decisions)),) = roster.costs().items()
    assert "bot 'paper'" in name
    assert decisions == 20
    assert seconds > 0


@pytest.mark.parametrize(
    ("world", "name", "numbers", "error"),
    [
        ("duell", "x", {}, UnknownNameError),
        ("duel", "self", {}, ConfigError),
        ("duel", "Two Words", {}, ConfigError),
        ("duel", "x", {"delay": 32}, ConfigError),
        ("duel", "x", {"delay": 1.5}, ConfigError),
        ("duel", "x", {"noise": "high"}, ConfigError),
    ],
)
def test_names_and_numbers_are_checked(world: str, name: str, numbers: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        register_bot(world, name, **numbers)(paper)


def test_registering_checks_the_code_and_the_name(duel: BatchedEnv, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reset and act"):
        register_bot("duel", "x")(type("Empty", (), {}))
    register_bot("duel", "rock")(paper)
    with pytest.raises(ConfigError, match=r"'rock'.*has the name of a bot of duel-v1"):
        bot_names(duel.spec)
    bots._REGISTERED.clear()
    register_bot("duel", "mine")(paper)
    register_bot("duel", "mine")(counts)  # a notebook's cell that runs again
    (tmp_path / "other.py").write_text("def bot(observation, state): ...")
    scope: dict[str, Any] = {}
    exec(compile((tmp_path / "other.py").read_text(), tmp_path / "other.py", "exec"), scope)  # noqa: S102
    with pytest.raises(ConfigError, match="registered for duel already"):
        register_bot("duel", "mine")(scope["bot"])
    with pytest.raises(UnknownNameError, match=r"did you mean 'mine'.*--plugin"):
        BotRoster(duel, ["mime"])
    with pytest.raises(ConfigError, match="delay must be a number from 0 to 31"):
        BotRoster(duel, ["mine:delay=40"])


@pytest.mark.parametrize("code", [counts, Counts])
def test_a_saved_state_goes_on_where_it_was(code: Callable[..., Any]) -> None:
    def made() -> tuple[BatchedEnv, BotRoster]:
        env = make_env("duel", 4, seed=2)
        return env, BotRoster(env, [as_bot(code, delay=3, noise=0.2)])

    assignment = torch.zeros((4, 2), dtype=torch.int32)
    env, roster = made()
    play(env, roster, assignment, 5)
    saved, snapshot = roster.state(), env.snapshot()
    expected = play(env, roster, assignment, 12, first=False)
    env, roster = made()
    env.restore(snapshot)
    roster.load_state(saved)
    assert torch.equal(play(env, roster, assignment, 12, first=False), expected)


@pytest.mark.parametrize(
    "change",
    [
        {"frames": torch.full((4,), -1)},
        {"frames": torch.zeros(3, dtype=torch.int64)},
        {"0.memory.calls": torch.zeros(3)},
        {"0.delayed": torch.zeros(1)},
        {"7.memory.calls": torch.zeros(8)},
        {"1.objects": torch.tensor([255], dtype=torch.uint8)},
        {"1.objects": torch.frombuffer(bytearray(b'{"0": [1]}'), dtype=torch.uint8)},
    ],
    ids=str,
)
def test_a_hostile_state_is_refused(duel: BatchedEnv, change: dict[str, Tensor]) -> None:
    roster = BotRoster(duel, [as_bot(counts, delay=1), as_bot(Counts)])
    play(duel, roster, torch.tensor([[0, 1]] * 4, dtype=torch.int32), 1)
    with pytest.raises(StateError):
        roster.load_state(roster.state() | change)


def test_objects_that_cannot_be_saved_begin_anew(duel: BatchedEnv, caplog: pytest.LogCaptureFixture) -> None:
    class Keeps(Counts):
        def reset(self) -> None:
            super().reset()
            self.lock = object()

    roster = BotRoster(duel, [as_bot(Keeps)])
    play(duel, roster, torch.zeros((4, 2), dtype=torch.int32), 2)
    saved = roster.state()
    assert "0.objects" not in saved
    assert "cannot be saved" in caplog.text
    resumed = BotRoster(duel, [as_bot(Keeps)])
    resumed.load_state(saved)
    assert play(duel, resumed, torch.zeros((4, 2), dtype=torch.int32), 2, first=False)[:, 0, 0].tolist() == [0, 1]


@pytest.mark.parametrize("code", [counts, Counts])
def test_a_run_resumes_to_the_same_bytes(code: Callable[..., Any], tmp_path: Path) -> None:
    register_bot("duel", "mine", delay=1, noise=0.1)(code)
    settings = SETTINGS | {"opponents": {"mine": 2, "rock": 1, "self": 1}}
    whole = ludus.train(settings, folder=tmp_path / "whole")
    ludus.train(settings, folder=tmp_path / "part")
    checkpoints = sorted((tmp_path / "part" / "checkpoints").iterdir())
    for folder in [*checkpoints[-2:], *(each for each in checkpoints if each.name == "final")]:
        for file in folder.iterdir() if folder.exists() else ():
            file.unlink()
        folder.rmdir() if folder.exists() else None
    went_on = ludus.resume(tmp_path / "part")
    assert went_on.env_steps == whole.env_steps
    parts = [run / "checkpoints" / "final" / "policy.safetensors" for run in (whole.folder, went_on.folder)]
    assert parts[0].read_bytes() == parts[1].read_bytes()
    rows = ludus.evaluate(whole.folder, ["mine", "mine:delay=4", "rock"], matches=6).rows
    assert [row["opponent"] for row in rows] == ["mine", "mine:delay=4", "rock"]


def test_a_bot_that_fails_in_training_saves_the_run(tmp_path: Path) -> None:
    calls = iter(range(10**6))

    @register_bot("duel", "fails")
    def fails(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        if next(calls) > 60:
            raise RuntimeError("out of ideas")
        return torch.zeros_like(observation.frame), state

    with pytest.raises(BotError, match=r"out of ideas.*test_python_bots\.py:\d+"):
        ludus.train(SETTINGS | {"opponents": "fails"}, folder=tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "interrupted").is_dir()


def test_gymnasium_takes_a_name_a_function_and_a_class() -> None:
    register_bot("brawl", "stands")(lambda o, s: (torch.zeros((len(o.frame), 10), dtype=torch.int8), s))

    class Stands:
        def reset(self) -> None: ...

        def act(self, observation: BotObservation) -> Tensor:
            assert float(observation.frame) >= 0
            return torch.zeros(10, dtype=torch.int8)

    seen = []
    for opponent in ("stands", bots._REGISTERED["brawl", "stands"].code, Stands, "constant"):
        env = gymnasium.make("ludus/Brawl-v1", opponent=opponent)
        env.reset(seed=1)
        env.action_space.seed(1)
        seen.append([env.step(env.action_space.sample())[0].tolist() for _ in range(40)])
        env.close()
    assert seen[0] == seen[1] == seen[2] == seen[3]
    with pytest.raises(ConfigError, match="name an opponent"):
        gymnasium.make("ludus/Brawl-v1", opponent=7)
