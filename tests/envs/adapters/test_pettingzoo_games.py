"""PettingZoo parallel games as batches: seats, teams, padding, masks, agents that leave, results, faults."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import parallel_games  # type: ignore[import-not-found,unused-ignore]  # beside this file
import pytest
import torch
from gymnasium import spaces
from parallel_games import Arms, Hunt, Pick  # type: ignore[import-not-found,unused-ignore]
from torch import Tensor

from ludus.core.errors import ConfigError, EnvFaultError, UnsupportedError, WorkerError
from ludus.envs import BatchedEnv, make_env, register_env
from ludus.envs import world as world_module
from ludus.envs.adapters.pettingzoo_factory import teams_of
from ludus.envs.check import CheckOptions, check_env

pytestmark = pytest.mark.train

FILE = re.escape(parallel_games.__file__)


@pytest.fixture(autouse=True)
def _own_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_module, "_WORLDS", dict(world_module.known_worlds()))
    register_env("pick-v2", Pick)
    register_env("hunt-v1", Hunt)
    register_env("arms-v1", Arms)


def game(name: str, games: int = 1, seed: int = 0, workers: int = 0, **kwargs: Any) -> BatchedEnv:
    settings: dict[str, Any] = {key: kwargs.pop(key) for key in ("teams", "agent_id") if key in kwargs}
    return make_env(name, games, seed=seed, config={"workers": workers, "env_kwargs": kwargs, **settings})


def picks(*rows: list[int]) -> Tensor:
    return torch.tensor(rows)


def test_the_spec_says_what_the_game_is() -> None:
    spec = game("pick-v2").spec
    assert (spec.id, spec.teams, spec.rate_hz, spec.bots) == ("pick-v2", (0, 1), 5.0, ("random",))
    assert spec.events == ("reward", "wins", "losses", "draws")
    assert dict(spec.observation_space.spaces) == {"vector": spaces.Box(-100.0, 1000.0, (3,), np.float32)}
    assert (spec.action_space, spec.actions.mask, spec.snapshots) == (spaces.Discrete(4), None, True)


@pytest.mark.parametrize("workers", [0, 1])
def test_who_has_the_larger_sum_of_rewards_wins(workers: int) -> None:
    with game("pick-v2", workers=workers) as env:
        env.reset()
        assert env.step(picks([3, 1])).events["reward"].tolist() == [[2.0, -2.0]]
        result = env.step(picks([0, 1]))
        assert result.events["reward"].tolist() == [[-1.0, 1.0]]
        assert not any(result.events[name].any() for name in ("wins", "losses", "draws"))
        result = env.step(picks([2, 2]))  # 2 - 1 + 0 for the first
        assert (result.terminated.tolist(), result.truncated.tolist()) == ([True], [False])
        assert result.events["wins"].tolist() == [[1.0, 0.0]]
        assert result.events["losses"].tolist() == [[0.0, 1.0]]
        assert result.final_observations["vector"][0, :, 0].tolist() == [3.0, 3.0]
        assert result.observations["vector"][0, :, 0].tolist() == [0.0, 0.0]
        for _ in range(3):
            result = env.step(picks([1, 1]))  # the next match begins with nothing of the last one
        assert result.events["draws"].tolist() == [[1.0, 1.0]]
        assert not result.events["wins"].any()


def test_a_match_that_is_cut_off_is_truncated_and_has_a_winner() -> None:
    env = game("pick-v2", rounds=1, cuts=True)
    env.reset()
    result = env.step(picks([0, 3]))
    assert (result.terminated.tolist(), result.truncated.tolist()) == ([False], [True])
    assert result.events["wins"].tolist() == [[0.0, 1.0]]


def test_agents_of_different_spaces_share_one() -> None:
    spec = game("hunt-v1").spec
    assert spec.teams == (0, 0, 1)
    assert spec.action_space == spaces.Discrete(4)
    seen = spec.observation_space.spaces
    assert seen["agent"].shape == (3,)
    assert seen["vector"] == spaces.Box(0.0, 99.0, (3,), np.float32)  # 0 for agents that are not there
    assert spec.actions.mask == "action_mask"
    env = game("hunt-v1")
    first = env.reset()
    assert first["vector"][0].tolist() == [[1, 50, 0], [1, 50, 0], [1, 50, 9]]
    assert first["agent"][0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert first["action_mask"][0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_agent_that_leaves_sees_zeros_and_its_actions_are_ignored(workers: int) -> None:
    with game("hunt-v1", workers=workers) as env:
        env.reset()
        result = env.step(picks([1, 3, 3]))  # 3 is none of the wolf's two actions: the first one is played
        assert result.observations["vector"][0].tolist() == [[2, 6, 0], [2, 5, 0], [2, 3, 9]]
        result = env.step(picks([0, 0, 2]))  # the sheep leaves
        assert not bool(result.ended.any())
        assert result.events["reward"].tolist() == [[1.0, 1.0, 3.0]]
        assert result.observations["vector"][0].tolist() == [[3, 5, 0], [3, 5, 0], [0, 0, 0]]
        assert result.observations["agent"][0, 2].tolist() == [0, 0, 0]
        assert result.observations["action_mask"][0, 2].tolist() == [1, 1, 1, 1]
        result = env.step(picks([0, 0, 2]))
        assert result.events["reward"].tolist() == [[1.0, 1.0, 0.0]]
        result = env.step(picks([1, 1, 2]))  # the wolves are cut off
        assert (result.terminated.tolist(), result.truncated.tolist()) == ([False], [True])
        assert result.final_observations["vector"][0].tolist() == [[5, 6, 0], [5, 6, 0], [0, 0, 0]]
        assert result.events["wins"].tolist() == [[1.0, 1.0, 0.0]]  # 8 to 6
        assert result.observations["vector"][0, :, 0].tolist() == [1, 1, 1]  # all are back


def test_a_game_ends_by_its_rules_if_one_of_the_last_agents_does() -> None:
    env = game("hunt-v1", leaves=2, length=2)
    env.reset()
    env.step(picks([0, 0, 0]))
    result = env.step(picks([0, 0, 0]))
    assert (result.terminated.tolist(), result.truncated.tolist()) == ([True], [False])


@pytest.mark.parametrize("masks", ["observation", "info"])
def test_masks_of_the_game_are_taken_over_and_obeyed(masks: str) -> None:
    env = game("hunt-v1", masks=masks, leaves=9)
    assert list(env.spec.observation_space) == ["action_mask", "agent", "vector"]
    env.reset()
    seen = env.step(picks([0, 0, 2])).observations
    assert seen["action_mask"][0, 2].tolist() == [1, 1, 1, 1]  # a mask of zeros allows everything
    assert seen["vector"][0, 2].tolist() == [2, 2, 9]
    seen = env.step(picks([1, 0, 2])).observations
    assert seen["action_mask"][0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 1]]
    seen = env.step(picks([1, 0, 2])).observations  # which is not allowed
    assert seen["vector"][0, 2, 1] == 0.0


def test_boxes_of_different_sizes_and_bounds_are_padded_and_stretched() -> None:
    env = game("arms-v1")
    low, high = np.array([-1.0, -1.0], np.float32), np.array([4.0, 1.0], np.float32)
    assert env.spec.action_space == spaces.Box(low, high)
    env.reset()
    # -1 ... 4 is stretched onto -1 ... 1 of the arm and 0 ... 4 of the leg: 1.5, the middle, is 0 and 2.
    seen = env.step(torch.tensor([[[1.5, 0.5], [1.5, 0.9]]])).observations["vector"]
    assert seen[0].tolist() == [[0.0, 0.5], [2.0, 0.0]]
    seen = env.step(torch.tensor([[[4.0, 9.0], [-1.0, 0.9]]])).observations["vector"]
    assert seen[0].tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_teams_go_by_the_settings_the_game_or_the_names() -> None:
    def teams(agents: list[str], named: Mapping[str, int | str] | None = None, **metadata: Any) -> tuple[int, ...]:
        return teams_of(type("Env", (), {"metadata": metadata}), agents, named or {}, "game")

    assert teams(["player_0", "player_1", "player_2"]) == (0, 1, 2)
    assert teams(["archer_0", "knight_0", "archer_1"]) == (0, 1, 0)
    assert teams(["first", "second"]) == (0, 1)
    assert teams(["solo"]) == (0,)
    assert teams(["a_0", "a_1"], {"a_0": "red", "a_1": "red"}) == (0, 0)
    assert teams(["a_0", "a_1", "a_2"], teams={"a_0": 5, "a_1": 2, "a_2": 5}) == (0, 1, 0)
    assert teams(["piston_0", "piston_1"], name="pistonball_v6") == (0, 0)
    assert teams(["archer_0", "knight_0"], name="knights_archers_zombies_v11") == (0, 0)
    assert teams(["eve_0", "bob_0", "alice_0"], name="simple_crypto_v3") == (0, 1, 1)
    for wrong, said in (({"a_0": 1}, "no team for 'a_1'"), ({"a_0": 1, "a_1": 1, "b": 2}, "unknown agent 'b'")):
        with pytest.raises(ConfigError, match=f"{said}.*: a_0, a_1"):
            teams(["a_0", "a_1"], wrong)


def test_one_team_is_scored_by_its_return_alone() -> None:
    spec = game("pick-v2", teams={"player_0": 0, "player_1": 0}, agent_id=True).spec
    assert (spec.teams, spec.events, spec.bots) == ((0, 0), ("reward",), ())
    assert spec.observation_space["agent"].shape == (2,)


def trace(env: BatchedEnv, steps: int = 12) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(1)
    yield from (tensor.clone() for tensor in env.reset().values())
    for _ in range(steps):
        result = env.step(torch.randint(0, 4, (env.num_envs, env.spec.seats), generator=generator))
        yield from (tensor.clone() for tensor in (*result.observations.values(), *result.events.values()))
        yield from (result.terminated.clone(), result.truncated.clone())
        yield from (tensor[result.ended].clone() for tensor in result.final_observations.values())


@pytest.mark.parametrize("name", ["pick-v2", "hunt-v1"])
def test_games_are_the_same_in_process_and_in_workers(name: str) -> None:
    here = list(trace(game(name, 3, seed=5)))
    with game(name, 3, seed=5, workers=2) as env:
        there = list(trace(env))
    assert all(torch.equal(left, right) for left, right in zip(here, there, strict=True))


@pytest.mark.parametrize("name", ["pick-v2", "hunt-v1"])
def test_games_conform(name: str) -> None:
    report = check_env(
        lambda games, seed, first: make_env(name, games, seed=seed, first_game=first),
        CheckOptions(num_envs=3, steps=10, end_steps=20, random=name == "pick-v2"),
    )
    assert {"restart", "partial_reset", "batch", "bots"} <= set(report.passed)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("classic.rps_v2", {"max_cycles": 4}),
        ("mpe.simple_tag_v3", {"max_cycles": 4}),
        ("mpe.simple_speaker_listener_v4", {"max_cycles": 4}),
        ("sisl.multiwalker_v9", {"max_cycles": 4}),
    ],
)
def test_games_of_pettingzoos_own_conform(name: str, kwargs: dict[str, Any]) -> None:
    family, _, module = name.partition(".")
    pytest.importorskip({"mpe": "mpe2"}.get(family, f"pettingzoo.{family}") + f".{module}")
    report = check_env(
        lambda games, seed, first: make_env(
            f"pettingzoo:{name}", games, seed=seed, first_game=first, config={"env_kwargs": kwargs}
        ),
        CheckOptions(num_envs=2, steps=5, end_steps=8, random="rps" not in name),
    )
    assert report.world == f"pettingzoo:{name.replace('_v', '-v')}"


def test_knights_and_archers_play_against_each_other_if_they_are_told_to() -> None:
    pytest.importorskip("pettingzoo.butterfly.knights_archers_zombies_v11")
    teams = {"archer_0": "archers", "archer_1": "archers", "knight_0": "knights", "knight_1": "knights"}
    config = {"teams": teams, "env_kwargs": {"max_cycles": 5, "render_mode": "rgb_array"}}
    with make_env("pettingzoo:butterfly.knights_archers_zombies_v11", 1, config=config) as env:
        assert env.spec.teams == (0, 0, 1, 1)
        env.reset()
        assert env.render().shape == (720, 1280, 3)
        results = [env.step(torch.full((1, 4), 4)) for _ in range(5)]
    assert results[-1].truncated.tolist() == [True]
    assert results[-1].events["draws"].tolist() == [[1.0] * 4]


def test_a_game_can_be_drawn_if_asked_for() -> None:
    with game("pick-v2", render_mode="rgb_array") as env:
        env.reset()
        env.step(picks([0, 0]))
        assert env.render().tolist() == np.ones((4, 6, 3)).tolist()
    with game("hunt-v1", render_mode="rgb_array") as env, pytest.raises(UnsupportedError, match="constructor must"):
        env.render()  # its constructor has no such argument


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raises", r"step\(\) raised RuntimeError: broken"),
        ("nan", r"an array of shape \(3,\) of float32 as observations\['player_1'\], expected finite numbers"),
        ("shape", r"an array of shape \(2,\) of float32 as observations\['player_0'\], expected an array of shape"),
        ("reward", r"inf as rewards\['player_1'\], expected a finite number"),
        ("missing", "a dict of 1 as observations, expected an observation of 'player_1'"),
    ],
)
def test_a_game_that_breaks_the_api_is_one_typed_error(fault: str, said: str) -> None:
    env = game("pick-v2", fault=fault)
    env.reset()
    with pytest.raises(EnvFaultError, match=rf"pick-v2: .*{said}.* \({FILE}:\d+\).*env\.reset\(seed=\d+\)"):
        env.step(picks([0, 0]))


def test_in_workers_faults_stop_the_run_with_the_line() -> None:
    with make_env("pick-v2", 1, config={"workers": 1, "max_faults_in_row": 1, "env_kwargs": {"fault": "nan"}}) as env:
        env.reset()
        with pytest.raises(WorkerError, match=r"parallel_games\.py"):
            env.step(picks([0, 0]))


class Mixed(Arms):  # type: ignore[misc]
    """One agent chooses, the other one moves."""

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(2) if agent == "leg_0" else spaces.Box(-1.0, 1.0, (2,))


class Nobody(Arms):  # type: ignore[misc]
    """A game without agents."""

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents: list[str] = []


class Turns(Arms):  # type: ignore[misc]
    """A game of PettingZoo's turn-based API."""

    def agent_iter(self) -> None: ...
    def last(self) -> None: ...


@pytest.mark.parametrize(
    ("factory", "error", "said"),
    [
        (Mixed, UnsupportedError, r"do not mix: Box\(.*\), Discrete\(2\); valid: all Discrete"),
        (Nobody, UnsupportedError, r"possible_agents is \[\]"),
        (Turns, UnsupportedError, "aec_to_parallel"),
        (lambda: 5, ConfigError, r"made int; expected a gymnasium.Env"),
    ],
)
def test_what_cannot_be_played_is_named(factory: Callable[[], Any], error: type[Exception], said: str) -> None:
    register_env("odd-v1", factory)
    with pytest.raises(error, match=said):
        make_env("odd-v1")
