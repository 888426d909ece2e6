"""The shipped agents: their files, their cards, what their names mean, and that each plays as well as it should."""

import shlex
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmarks.shipped_agents import sentence

import ludus
from ludus.core.errors import ConfigError, FormatError, StateError, UnknownNameError
from ludus.envs import bots
from ludus.envs.registry import make_env
from ludus.envs.world import find_world as find_record
from ludus.envs.world import registered_envs
from ludus.evaluation.entries import load_entries
from ludus.evaluation.evaluate import Evaluation, stored_modes
from ludus.evaluation.players import find_player, find_world
from ludus.policies import shipped
from ludus.policies.agent import Agent
from ludus.policies.policy import Policy
from ludus.training.agent_opponents import agent_file, is_known_agent
from ludus.training.presets import load_run_config

pytestmark = pytest.mark.train

WORLDS = {
    "builder": "city-v1", "champion": "brawl-v1", "novice": "rocket-v2", "rookie": "brawl-v1", "striker": "rocket-v2",
    "walker": "mimic-v1",
}  # fmt: skip
MAX_BYTES = 3_000_000
SUFFIXES = (".ludus", ".md")
MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]


class Bound(NamedTuple):
    """What an agent plays, and what a number of the evaluation must reach in it."""

    asked: Mapping[str, Any]
    number: str
    least: float


# Until the first goal, for at most 30 s: a whole match of rocket takes minutes.
GOAL = {"mode": "1v1", "episode": "goal", "episode_s": 30.0, "no_touch_s": 15.0, "setters": {"kickoff": 1}}
PLAYED = {
    "champion": Bound({"opponents": ["aggressive"], "matches": 32}, "win_rate", 0.9),
    "rookie": Bound({"opponents": ["random"], "matches": 32}, "win_rate", 0.5),
    "striker": Bound({"opponents": ["chaser"], "matches": 64, "config": GOAL}, "win_rate", 0.55),
    "novice": Bound({"opponents": ["idle"], "matches": 64, "config": GOAL}, "win_rate", 0.05),
    "walker": Bound({"scenarios": ["walk"], "matches": 2}, "mean_length", 1000.0),
    "builder": Bound({"matches": 2}, "population_most", 300.0),
}


def mean(evaluation: Evaluation, number: str) -> float:
    """Return the mean of a number over all rows: there are two where teams differ in size."""
    return statistics.fmean(row[number] for row in evaluation.rows)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_these_agents_are_shipped_and_small() -> None:
    assert shipped.agent_names() == tuple(WORLDS)
    assert shipped.agent_names("brawl-v1") == ("champion", "rookie")
    assert shipped.agent_names("duel-v1") == ()
    folder = shipped.agent_path("champion").parent
    files = [file for file in folder.iterdir() if file.is_file()]
    assert sorted(file.name for file in files) == [f"{name}{end}" for name in WORLDS for end in SUFFIXES]
    assert 0 < sum(file.stat().st_size for file in files) <= MAX_BYTES


@pytest.mark.parametrize("name", WORLDS)
def test_an_agent_loads_and_its_card_describes_it(name: str) -> None:
    agent = ludus.load_agent(name)
    described = shipped.describe_agent(name)
    assert agent.spec.id == described.world == WORLDS[name]
    program, command, world, *options = shlex.split(described.command)
    assert (program, command) == ("ludus", "train")
    assert find_record(world).id == described.world
    preset = options[options.index("--preset") + 1] if "--preset" in options else None
    load_run_config(world, preset, overrides=[option for option in options if "=" in option])  # raises if it is wrong
    assert shlex.split(described.measured_with)[:3] == ["ludus", "eval", name]
    assert any(letter.isdigit() for letter in described.result)
    card = shipped.agent_card(name)
    assert card.startswith(f"# {name}\n")
    parameters = sum(parameter.numel() for parameter in agent.policy.parameters())
    assert f"| parameters | {parameters:,} |" in card
    assert "](" not in card, "a link would lead nowhere in the package"


@pytest.mark.parametrize("name", WORLDS)
def test_an_agent_plays_as_well_as_it_should(name: str) -> None:
    asked, number, least = PLAYED[name]
    assert mean(ludus.evaluate(name, **asked, seed=1), number) >= least


@pytest.mark.parametrize(
    ("strong", "weak", "config", "least"), [("champion", "rookie", None, 0.9), ("striker", "novice", GOAL, 0.75)]
)
def test_the_strong_agent_beats_the_weak_one(
    strong: str, weak: str, config: Mapping[str, Any] | None, least: float
) -> None:
    assert mean(ludus.evaluate(strong, [weak], matches=32, seed=1, config=config), "win_rate") >= least


def test_no_world_and_no_bot_has_the_name_of_an_agent() -> None:
    for world in registered_envs():
        with make_env(world) as env:
            assert not set(WORLDS) & {env.spec.name, *bots.bot_names(env.spec)}


def test_a_name_works_in_every_function_that_takes_a_path(here: Path) -> None:
    path = shipped.agent_path("champion")
    assert Agent.load("champion").spec.id == "brawl-v1"
    assert stored_modes("champion") == {}
    world, agent = find_world("champion")
    assert (world, agent is not None) == ("brawl-v1", True)
    with make_env("brawl") as env:
        assert find_player("champion", env).policy is not None
    assert [entry.name for entry in load_entries(["champion", "rookie"]).accepted] == ["champion", "rookie"]
    spec, other = (make_env(world, 1).spec for world in ("brawl", "duel"))
    assert is_known_agent("champion", spec, None)
    assert agent_file("champion", spec, None) == path
    assert not is_known_agent("champion", other, None)  # it means nothing in another world
    exported = ludus.export_agent("champion", "copy.ludus")
    assert exported.path.read_bytes() == path.read_bytes()
    assert not is_known_agent("copy", spec, here)
    # A run that has begun without a copy met somebody else of this name: a bot of a plugin that is not loaded now.
    (here / "checkpoints").mkdir()
    assert not is_known_agent("champion", spec, here)


def test_agents_play_a_match_by_name() -> None:
    short = {"step_limit": 120}
    named = ludus.play_match("champion", "rookie", world="brawl", seed=2, config=short)
    loaded = ludus.play_match(ludus.load_agent("champion"), "rookie", seed=2, config=short)
    assert named.players == ("champion", "rookie")
    assert (named.winner_index, named.steps, named.statistics) == (loaded.winner_index, loaded.steps, loaded.statistics)


def test_a_file_or_folder_of_the_same_name_comes_first(here: Path, fresh: MakePolicy, save_agent: SaveAgent) -> None:
    save_agent(fresh("duel"), here / "champion")
    assert shipped.find_agent_path("champion") == Path("champion")
    assert ludus.load_agent("champion").spec.id == "duel-v1"
    assert find_world("champion")[0] == "duel-v1"
    assert stored_modes("champion") == {}
    assert ludus.load_agent("rookie").spec.id == "brawl-v1"


def test_a_path_is_never_a_name(here: Path) -> None:
    assert shipped.find_agent_path("champion") == shipped.agent_path("champion")
    for path in ("./champion", str(here / "champion"), "champion.ludus", Path("champion"), "Champion"):
        assert shipped.find_agent_path(path) is None
    with pytest.raises(ConfigError, match=r"unknown agent './champion'.*the shipped agents builder, champion"):
        ludus.load_agent("./champion")


def test_a_bot_of_the_same_name_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bots, "_REGISTERED", {})

    @ludus.register_bot("duel", "champion")
    def champion(observation: Any, state: Any) -> Any:
        return observation.vector[:, 0].long() * 0, state

    with make_env("duel") as env:
        assert find_player("champion", env).policy is None
    with make_env("brawl") as env:
        assert find_player("champion", env).policy is not None


def test_unknown_names_list_the_agents_of_the_world() -> None:
    with make_env("rocket") as env, pytest.raises(ConfigError) as raised:
        find_player("strikr", env)
    assert "did you mean 'striker'?" in str(raised.value)
    assert "the shipped agents novice, striker, or the folder of a run" in str(raised.value)
    assert "champion" not in str(raised.value)
    with pytest.raises(ConfigError, match=r"unknown world or agent 'wlker' \(did you mean 'walker'\?\)"):
        find_world("wlker")
    with pytest.raises(UnknownNameError, match=r"did you mean 'walker'\?\); valid: builder, champion"):
        shipped.agent_path("wlker")
    with pytest.raises(UnknownNameError, match=r"did you mean 'champion'\?\).*champion, rookie, self"):
        ludus.train("brawl", preset="debug", opponents={"champoin": 1})


def test_an_agent_of_another_world_is_refused_with_those_that_fit() -> None:
    message = r"it plays rocket-v2, not brawl-v1; .* an agent of brawl-v1 \(shipped: champion, rookie\)$"
    with make_env("brawl") as env, pytest.raises(StateError, match=message):
        find_player("striker", env)
    with pytest.raises(StateError, match=message):
        ludus.play_match("striker", "champion", world="brawl")
    with pytest.raises(StateError, match=message):
        ludus.evaluate("champion", ["striker"], matches=2)


def test_a_run_trains_against_shipped_agents_and_keeps_copies(here: Path) -> None:
    settings: dict[str, Any] = {
        "total_env_steps": 512,
        "world": {"num_envs": 8, "settings": {"step_limit": 120}},
        "ppo": {"n_steps": 32, "batch_size": 128, "n_epochs": 1},
        "monitoring": {"console": "off", "tensorboard": False, "curves": False},
        "evaluation": {"opponents": ["rookie"], "matches": 2, "every_env_steps": 512},
    }
    run = ludus.train("brawl", preset="debug", opponents={"champion": 1, "rookie": 1}, folder="run", **settings)
    copies = sorted(file.name.partition("-")[0] for file in (here / "run" / "opponents").iterdir())
    assert copies == ["champion", "rookie"]
    assert run.evaluate(["rookie"], matches=2).rows[0]["opponent"] == "rookie"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# No front matter\n", "does not begin with front matter"),
        ("---\nworld: duel-v1\n", "does not begin with front matter"),
        ("---\nworld: duel-v1\n---\n# A card\n", "is invalid.*summary"),
    ],
)
def test_a_card_without_a_description_is_an_error(
    text: str, message: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "odd.ludus").touch()
    (here / "odd.md").write_text(text)
    monkeypatch.setattr(shipped, "_folder", lambda: here)
    with pytest.raises(FormatError, match=f"(?s){message}"):
        shipped.describe_agent("odd")


def test_a_measured_result_is_one_sentence() -> None:
    rows = [{"opponent": name, "matches": count, "win_rate": rate} for name, count, rate in
            (("based", 10, 0.5), ("based", 10, 1.0), ("random", 20, 1.0))]  # fmt: skip
    assert sentence("brawl-v1", {"opponents": rows}) == "wins 87.5 % of 40 matches against 2 bots"
    alone = [{"opponent": "", "matches": 10, "stable": 1.0}, {"opponent": "", "matches": 30, "stable": 0.6}]
    assert sentence("mimic-v1", {"opponents": alone}) == "walks stably in 70.0 % of 40 episodes"
