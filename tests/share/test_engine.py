"""The browser build plays the same game: the same bits of state and observations as Python, frame by frame."""

import importlib.util
import sys
from collections.abc import Callable

import pytest
import torch
from benchmarks.browser_parity import ACTION_SEED, GAME_SEED, hashed_tensors, play_in_python, random_actions, state_hash
from tests.share.conftest import Game

from ludus.core.errors import MissingDependencyError, UnsupportedError
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.registry import make_env
from ludus.share.program import capture, capture_world
from ludus.share.wasm import cache_folder, compile_program
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.rocket.env import RocketEnv

pytestmark = pytest.mark.compile

Games = Callable[[str], Game]
FRAMES = 4_000
HAS_WASMTIME = importlib.util.find_spec("wasmtime") is not None


@pytest.fixture
def env(request: pytest.FixtureRequest, game: Games) -> KernelEnv:
    program = game(request.param).program
    made = make_env(program.world, config=program.settings)
    assert isinstance(made, KernelEnv)
    return made


@pytest.mark.skipif(not HAS_WASMTIME, reason="needs wasmtime: pip install wasmtime")
@pytest.mark.parametrize(
    ("world", "bot"), [("brawl", None), ("brawl", "habits"), ("rocket", None), ("rocket", "shooter")]
)
def test_wasmtime_plays_the_same_frames(game: Games, world: str, bot: str | None) -> None:
    played = play_in_python(game(world).program, FRAMES, bot)
    assert played.episodes >= 2  # matches end and restart in between
    assert game(world).wasmtime(FRAMES, bot) == played.hash


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(("world", "bot"), [("brawl", "switcher"), ("rocket", "goalkeeper")])
def test_node_plays_the_same_frames(game: Games, world: str, bot: str) -> None:
    play = """(engine, bot, frames, gameSeed, actionSeed) => {
      engine.reset(gameSeed);
      engine.setBot(1, bot);
      return engine.randomKeys(actionSeed, frames);
    }"""
    found = game(world).node(play, bot, FRAMES, GAME_SEED, ACTION_SEED)
    assert found == play_in_python(game(world).program, FRAMES, bot).hash


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("env", ["brawl", "rocket"], indirect=True)
def test_a_page_steps_like_python(game: Games, env: KernelEnv) -> None:
    """A page sets actions itself, step by step: every end, event and hash is that of Python."""
    frames, seed = 950, 2**63 + 5  # a seed that no JavaScript number holds
    env.reset(seed=seed)
    drawn = list(random_actions(env.spec, 3, frames))
    expected = [state_hash(env)]
    ends, events = [], 0.0
    for actions in drawn:
        result = env.step(actions)
        ends.append([bool(result.terminated[0]), bool(result.truncated[0])])
        events += float(env.working_tensors()["events"].sum())
        expected.append(state_hash(env))
    env.reset()
    expected.append(state_hash(env))
    play = """(engine, seed, rows) => {
      engine.randomKeys(1, 50);  // a used game begins anew too
      engine.reset(BigInt(seed));
      const hashes = [engine.hash()], ends = [];
      let events = 0;
      for (const row of rows) {
        engine.actions.set(row);
        const { terminated, truncated } = engine.step();
        ends.push([terminated, truncated]);
        events += engine.tensor("events").reduce((sum, value) => sum + value, 0);
        hashes.push(engine.hash());
      }
      engine.restart();
      hashes.push(engine.hash());
      return [hashes, ends, events];
    }"""
    rows = [actions.flatten().tolist() for actions in drawn]
    hashes, found_ends, found_events = game(env.spec.name).node(play, str(seed), rows)
    assert hashes == expected
    assert found_ends == ends
    assert [True, False] in ends
    assert found_events == pytest.approx(events, rel=1e-5)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("env", ["brawl", "rocket"], indirect=True)
def test_fields_of_the_state_can_be_read_by_name(game: Games, env: KernelEnv) -> None:
    env.reset(seed=11)
    for actions in random_actions(env.spec, 5, 40):
        env.step(actions)
    read = """(engine, buffer, rows) => {
      engine.reset(11);
      for (const row of rows) { engine.actions.set(row); engine.step(); }
      const seat = (index) => engine.fields(buffer).map(({ name }) => [name, engine.field(buffer, index, name)]);
      return [0, 1].map((index) => Object.fromEntries(seat(index)));
    }"""
    rows = [actions.flatten().tolist() for actions in random_actions(env.spec, 5, 40)]
    buffer = {"brawl": "players", "rocket": "cars"}[env.spec.name]
    found = game(env.spec.name).node(read, buffer, rows)
    assert isinstance(env, BrawlEnv | RocketEnv)
    views = env.fields()
    assert set(found[0]) == set(views)
    for seat in range(2):
        for name, view in views.items():
            assert torch.tensor(found[seat][name], dtype=view.dtype).equal(view[0, seat]), name


@pytest.mark.usefixtures("node")
def test_unknown_names_are_refused_with_those_that_are_valid(game: Games) -> None:
    attempt = """(engine) => [() => engine.setBot(0, "nobody"), () => engine.tensor("nothing")].map((call) => {
      try { call(); return ""; } catch (error) { return error.message; }
    })"""
    bot, tensor = game("brawl").node(attempt)
    assert "nobody" in bot
    assert "aggressive" in bot
    assert "nothing" in tensor
    assert "players" in tensor


@pytest.mark.usefixtures("node", "game")
def test_any_world_of_kernels_can_be_captured() -> None:
    """Roshambo declares nothing for web pages; its kernels are all that is needed."""
    with make_env("roshambo") as env:
        program = capture(env)
    found = Game(program, compile_program(program)).node(
        "(engine, ...seeds) => { engine.reset(seeds[0]); return engine.randomKeys(seeds[1], 2500); }",
        GAME_SEED,
        ACTION_SEED,
    )
    played = play_in_python(program, 2_500)
    assert found == played.hash
    assert played.episodes >= 2


def test_the_hash_covers_state_and_observations(game: Games) -> None:
    with make_env("brawl", config=game("brawl").program.settings) as env:
        assert isinstance(env, KernelEnv)
        env.reset(seed=1)
        before = state_hash(env)
        for tensor in hashed_tensors(env):
            flat = tensor.view(-1)
            kept = flat[-1].clone()
            flat[-1] = kept + 1
            assert state_hash(env) != before
            flat[-1] = kept
        assert state_hash(env) == before


def test_what_was_compiled_is_kept(game: Games) -> None:
    first = game("brawl")
    files = {file: file.stat().st_mtime_ns for file in cache_folder().iterdir()}
    assert compile_program(first.program) == first.wasm
    assert {file: file.stat().st_mtime_ns for file in cache_folder().iterdir()} == files


def test_other_settings_need_no_other_kernels(game: Games) -> None:
    game("brawl")
    objects = set(cache_folder().glob("*.o"))
    compile_program(capture_world("brawl", {"step_limit": 1_234}))
    assert len(set(cache_folder().glob("*.o")) - objects) <= 1  # the memory with its numbers


def test_without_the_compiler_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    program = capture_world("brawl")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(MissingDependencyError, match=r"\[web\]"):
        compile_program(program)


def test_a_world_without_kernels_cannot_be_shared() -> None:
    with pytest.raises(UnsupportedError, match="brawl, mimic, rocket"):
        capture_world("city")
    with pytest.raises(UnsupportedError, match=r"world of kernels.*MimicEnv"):
        capture_world("mimic")  # which has a page, but no kernels


def test_only_one_game_is_captured() -> None:
    with make_env("brawl", 2) as env, pytest.raises(UnsupportedError, match="2 games"):
        capture(env)


def test_a_captured_environment_plays_on(game: Games) -> None:
    with make_env("brawl", seed=3, config=game("brawl").program.settings) as env:
        assert isinstance(env, KernelEnv)
        before = state_hash(env)
        capture(env)
        assert (env.seed, state_hash(env)) == (3, before)
