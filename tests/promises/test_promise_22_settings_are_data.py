"""Promise 22: settings inside a stranger's agent, replay or run are data, which name nothing outside.

Every hostile agent has correct hashes, as an attacker would write it. Where a command would start a program, that would
leave a file `PWNED`; where it would write, a folder `written`; where it would read, the secret would be printed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from pydantic import BaseModel
from tests.agents import MakePolicy
from tests.commands import Commands

from ludus import evaluate, make_env
from ludus.config.layers import field_annotation
from ludus.core.errors import CheckpointError, ConfigError, ConfigFileError, ReplayError
from ludus.envs.registry import settings_model
from ludus.envs.replay import Replay, ReplayRecorder, replay_env, verify_replay
from ludus.envs.stored import ALLOW_VARIABLE, StoredSettings, allow_files, outside_names
from ludus.envs.world import registered_envs
from ludus.evaluation.evaluate import stored_modes
from ludus.evaluation.players import load_playable_agent
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.shipped import agent_path
from ludus.scale.config import read_sweep
from ludus.scale.population import read_league
from ludus.scale.stored import write_stored
from ludus.share.page import share_agent
from ludus.store import Checkpoint, load_checkpoint, read_single_file, save_checkpoint, write_single_file
from ludus.training.api import resume
from ludus.training.config import TrainConfig
from ludus.training.presets import load_run_config
from ludus.training.run_folder import read_run_config

pytestmark = pytest.mark.fault

SECRET = "root:$y$j9T$secret:20000"  # noqa: S105 - a line of a file that is to stay unread
EVIL = f"""
extends: micropolis
launch: {{command: [{shutil.which("touch")}, PWNED]}}
"""
AGENTS = {"city": "builder", "brawl": "champion", "mimic": "walker"}

HOSTILE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "a profile beside it": ("city", {"game": "./evil.yaml"}),
    "a profile in the working folder": ("city", {"game": "evil.yaml"}),
    "a profile by its whole path": ("city", {"game": "{folder}/evil.yaml"}),
    "a profile above": ("city", {"game": "../evil.yaml"}),
    "a profile without an ending": ("city", {"game": "evil"}),
    "a profile by an address": ("city", {"game": "http://127.0.0.1/evil.yaml"}),
    "a profile by a file address": ("city", {"game": "file:///evil.yaml"}),
    "a profile with a null": ("city", {"game": "micropolis\0"}),
    "a folder to write into": ("city", {"learned": "{folder}/written"}),
    "a secret as move table": ("brawl", {"move_table": "{folder}/secret"}),
    "a move table above": ("brawl", {"move_table": "../secret"}),
    "a secret as profile": ("city", {"game": "{folder}/secret"}),
    "a secret as body": ("mimic", {"body": {"file": "{folder}/secret", "joints": {}}}),
    "a secret as motion": ("mimic", {"motion": "{folder}/secret"}),
    "a secret among motions": ("mimic", {"motions": ["walk-slow", "{folder}/secret"]}),
    "an unknown key with a path": ("brawl", {"moves": "{folder}/secret"}),
    "a path as a key": ("brawl", {"{folder}/secret": 1}),
}
GYMNASIUM: dict[str, Mapping[str, Any]] = {
    "a file of an environment": {"env_kwargs": {"xml_file": "./evil.xml"}},
    "a file without a folder": {"env_kwargs": {"xml_file": "evil.xml"}},
    "a module": {"env_kwargs": {"entry_point": "os:system"}},
    "a home": {"env_kwargs": {"path": "~"}},
    "a nested path": {"env_kwargs": {"options": [{"file": "a/b"}]}},
    "a drive": {"env_kwargs": {"path": "c:evil"}},
}


def filled(value: Any, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return {filled(key, folder): filled(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, folder) for inner in value]
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, "")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that a stranger filled, in which the user stands."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for place in (folder, tmp_path):
        (place / "evil.yaml").write_text(EVIL)
        (place / "evil").write_text(EVIL)
        (place / "secret").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


def hostile_agent(world: str, settings: Mapping[str, Any], folder: Path) -> Path:
    """Writes an agent that says these settings of its world."""
    content = read_single_file(agent_path(AGENTS[world]))
    document: Any = content.documents["agent"]
    document["settings"] = filled(settings, folder)
    write_single_file(folder / "agent.ludus", Checkpoint(content.tensors, {"agent": document}))
    return folder / "agent.ludus"


def check_untouched(folder: Path) -> None:
    found = {path.name for path in folder.rglob("*")} | {path.name for path in folder.parent.iterdir()}
    assert not found & {"PWNED", "written"}


USES: dict[str, Callable[[Path], object]] = {
    "settings": lambda file: Agent.load(file).settings,
    "evaluate": lambda file: evaluate(file, matches=1),
    "share": lambda file: share_agent(str(file), Path("page.html")),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("case", HOSTILE)
def test_an_agent_names_nothing_outside(case: str, use: str, downloads: Path) -> None:
    file = hostile_agent(*HOSTILE[case], downloads)
    with pytest.raises(ConfigError) as caught:
        USES[use](file)
    assert "secret:2" not in str(caught.value)
    assert len(str(caught.value)) < 2_000
    assert str(caught.value).isascii()
    check_untouched(downloads)


@pytest.mark.parametrize(
    "command",
    [
        "eval agent.ludus --matches 1",
        "demo agent.ludus --frames 2 --video demo.gif",
        "benchmark agent.ludus --matches 1",
        "share agent.ludus",
    ],
)
def test_no_command_starts_the_program_of_an_agent(command: str, downloads: Path, commands: Commands) -> None:
    hostile_agent("city", {"game": "./evil.yaml"}, downloads)
    code, said = commands.run(*command.split(), folder=downloads)
    assert code == 2, said
    assert "game" in said
    assert "Traceback" not in said
    check_untouched(downloads)


@pytest.mark.parametrize("case", GYMNASIUM)
def test_arguments_of_a_gymnasium_environment_are_plain_words(case: str) -> None:
    with pytest.raises(ConfigError, match="env_kwargs"):
        StoredSettings(GYMNASIUM[case]).checked("gym:CartPole-v1")


def test_settings_of_a_file_are_few() -> None:
    drawn = {"env_kwargs": {"desc": ["F" * 150] * 150}}  # a map of 22,500 cells
    with pytest.raises(ConfigError, match="22514 values and letters"):
        StoredSettings(drawn).checked("gym:FrozenLake-v1")


@pytest.mark.parametrize("settings", [{"actions": [0] * 2_000}, {"game": [0] * 2_000}, {"x" * 9_000: 1}])
def test_wrong_settings_are_a_short_error(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        make_env("city", config=settings)
    assert len(str(caught.value)) < 2_000


def test_plain_settings_are_used_as_they_are() -> None:
    plain = {"env_kwargs": {"render_mode": "rgb_array", "map_name": "4x4", "size": [1, 2.5, None, True]}, "workers": 2}
    assert StoredSettings(plain).checked("gym:FrozenLake-v1") == plain


@pytest.mark.parametrize("world", registered_envs())
def test_every_text_in_a_model_of_settings_is_a_word_or_refused(world: str) -> None:
    """Whatever field of whatever model is given a path, it is found: nobody has to remember to mark it."""

    def fields(model: type[BaseModel], path: tuple[str, ...]) -> list[tuple[str, ...]]:
        found = []
        for name, field in model.model_fields.items():
            inner = [each for each in walk(field_annotation(field)) if isinstance(each, type)]
            models = [each for each in inner if issubclass(each, BaseModel)]
            found += [place for each in models for place in fields(each, (*path, name))] or [(*path, name)]
        return found

    def walk(annotation: Any) -> list[Any]:
        return [annotation, *(each for part in get_args(annotation) for each in walk(part))]

    model = settings_model(world)
    for place in [] if model is None else fields(model, ()):
        for evil in ("./evil.yaml", "/etc/shadow", "evil.yaml", "~", "a\0b", "http://127.0.0.1"):
            settings: Any = evil
            for key in reversed(place):
                settings = {key: settings}
            assert [each.path for each in outside_names(world, settings)] == [place], place


def test_what_ships_with_ludus_may_be_named() -> None:
    assert StoredSettings({"game": "micropolis"}).checked("city") == {"game": "micropolis"}
    assert StoredSettings({"game": "embedded"}).checked("city") == {"game": "embedded"}
    assert StoredSettings({"motions": ["walk-slow", "walk-fast"]}).checked("mimic")
    assert StoredSettings({"guide": {"name": "careful"}}).checked("city")  # a plugin that the user has loaded


@pytest.mark.parametrize("name", AGENTS.values())
def test_shipped_agents_name_nothing_outside(name: str) -> None:
    assert Agent.load(name).settings == dict(Agent.load(name).stored.values)


def test_arguments_of_an_own_network_are_plain_words(downloads: Path) -> None:
    content = read_single_file(agent_path("champion"))
    document: Any = content.documents["agent"]
    document["config"] |= {"module": "mine.py:Net", "module_kwargs": {"weights": "/etc/shadow"}}
    write_single_file(downloads / "agent.ludus", Checkpoint(content.tensors, {"agent": document}))
    with pytest.raises(CheckpointError, match="module_kwargs"):
        Agent.load("agent.ludus")


def test_a_plugin_that_an_agent_names_is_quoted_where_people_copy_it(downloads: Path) -> None:
    content = read_single_file(agent_path("champion"))
    document: Any = content.documents["agent"]
    document |= {"world": "mygame-v1", "plugins": ["x.py; touch PWNED", "\x1b[2J"]}
    write_single_file(downloads / "agent.ludus", Checkpoint(content.tensors, {"agent": document}))
    with pytest.raises(ConfigError) as caught:
        load_playable_agent("agent.ludus")
    assert "--plugin 'x.py; touch PWNED'" in str(caught.value)
    assert "\x1b" not in str(caught.value)


# --- what the user allows ---


def test_a_folder_that_is_allowed(downloads: Path) -> None:
    shutil.copy(Path(sys.modules["ludus.worlds.brawl"].__path__[0]) / "moves.yaml", downloads / "mine.yaml")
    file = hostile_agent("brawl", {"move_table": "{folder}/mine.yaml"}, downloads)
    with pytest.raises(ConfigError, match="--allow-files"):
        evaluate(file, ["constant"], matches=1)
    allow_files(downloads)
    assert evaluate(file, ["constant"], matches=1).rows[0]["matches"] == 1
    with pytest.raises(ConfigError, match="move_table"):
        Agent.load(hostile_agent("brawl", {"move_table": "/etc/hostname"}, downloads)).settings  # noqa: B018


def test_a_link_out_of_an_allowed_folder_leads_nowhere(downloads: Path, tmp_path: Path) -> None:
    (downloads / "link").symlink_to(tmp_path / "secret")
    allow_files(downloads)
    with pytest.raises(ConfigError, match="move_table"):
        StoredSettings({"move_table": str(downloads / "link")}).checked("brawl")


def test_an_allowed_folder_allows_no_program_but_naming_the_profile_does(downloads: Path) -> None:
    stored = StoredSettings({"game": "evil.yaml"})
    allow_files(downloads)
    with pytest.raises(ConfigError, match="programs"):
        stored.checked("city")
    allow_files(downloads / "evil.yaml")
    assert stored.checked("city") == {"game": "evil.yaml"}


def test_allowing_what_is_not_there_is_an_error(downloads: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        allow_files(downloads / "nowhere")


def test_what_the_user_says_on_the_command_line_needs_no_permission(downloads: Path, commands: Commands) -> None:
    shutil.copy(Path(sys.modules["ludus.worlds.brawl"].__path__[0]) / "moves.yaml", downloads / "mine.yaml")
    hostile_agent("brawl", {"move_table": "/home/somebody/moves.yaml"}, downloads)
    ask = ("eval", "agent.ludus", "--against", "constant", "--matches", "1")
    code, said = commands.run(*ask, folder=downloads)
    assert (code, "move_table" in said) == (2, True), said
    code, said = commands.run(*ask, "--set", "move_table=mine.yaml", folder=downloads)
    assert code == 0, said


# --- configurations ---


def test_a_configuration_may_name_files_but_no_programs(downloads: Path) -> None:
    (downloads / "mine.yaml").write_text("extends: quick\nworld: {settings: {move_table: moves.yaml}}\n")
    assert load_run_config("brawl", file=Path("mine.yaml")).world.settings == {"move_table": "moves.yaml"}
    (downloads / "city.yaml").write_text("extends: quick\nworld: {settings: {game: evil.yaml}}\n")
    with pytest.raises(ConfigFileError, match=r"city\.yaml:2:\d+: world\.settings\.game: .*programs"):
        load_run_config("city", file=Path("city.yaml"))
    named = load_run_config("city", file=Path("city.yaml"), overrides=["world.settings.game=evil.yaml"])
    assert named.world.settings["game"] == "evil.yaml"
    allow_files("evil.yaml")
    assert load_run_config("city", file=Path("city.yaml")).world.settings["game"] == "evil.yaml"


@pytest.mark.parametrize(
    "text",
    [
        "evaluation: {settings: {game: evil.yaml}}",
        "evaluation: {modes: {a: {game: evil.yaml}}}",
        "curriculum: [{name: a, opponents: {}, world: {settings: {game: evil.yaml}}}]",
    ],
)
def test_a_program_is_found_anywhere_in_a_configuration(text: str, downloads: Path) -> None:
    (downloads / "city.yaml").write_text(f"extends: quick\n{text}\n")
    with pytest.raises(ConfigFileError, match="programs"):
        load_run_config("city", file=Path("city.yaml"))


@pytest.mark.parametrize("command", ["train city --config city.yaml", "verify city.yaml", "resume run"])
def test_no_command_starts_the_program_of_a_configuration(command: str, downloads: Path, commands: Commands) -> None:
    config = "world: {name: city, settings: {game: evil.yaml}}\n"
    (downloads / "city.yaml").write_text(f"extends: quick\n{config}")
    (downloads / "run").mkdir()
    (downloads / "run" / "config.yaml").write_text(config)
    code, said = commands.run(*command.split(), folder=downloads)
    assert code == 2, said
    assert "programs" in said
    check_untouched(downloads)


# --- runs ---


def trained_with_own_table(folder: Path, commands: Commands) -> Path:
    shutil.copy(Path(sys.modules["ludus.worlds.brawl"].__path__[0]) / "moves.yaml", folder / "own.yaml")
    words = ("total_env_steps=64", "world.num_envs=4", "ppo.n_steps=8", "ppo.batch_size=32", "evaluation=null")
    code, said = commands.run(
        "train", "brawl", *words, "world.settings.move_table=own.yaml", "--run-dir", "own", folder=folder,
        environment={"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]},
    )  # fmt: skip
    assert code == 0, said
    return folder / "own"


def test_an_own_run_keeps_what_the_user_named_and_a_copied_one_does_not_gain_it(
    downloads: Path, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained_with_own_table(downloads, commands)
    own = {"move_table": "own.yaml"}
    assert read_run_config(run).world.settings == own
    assert Agent.load(run).settings == own
    assert evaluate(run, ["constant"], matches=1).rows[0]["matches"] == 1

    # A stranger passes the user's own run on, with a file of the same name beside it.
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(downloads, elsewhere)
    monkeypatch.chdir(elsewhere)
    for use in (lambda: read_run_config(elsewhere / "own"), lambda: Agent.load(elsewhere / "own").settings):
        with pytest.raises(ConfigError, match="move_table"):
            use()

    # Or changes its settings.
    monkeypatch.chdir(downloads)
    text = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(text + "\n")
    with pytest.raises(ConfigError, match="move_table"):
        resume(run)


def test_an_agent_in_an_own_run_gains_nothing_that_the_run_does_not_name(downloads: Path, commands: Commands) -> None:
    run = trained_with_own_table(downloads, commands)
    folder = run / "checkpoints" / "final"
    stored = load_checkpoint(folder)
    documents: Any = dict(stored.documents)
    documents["agent"] = {**documents["agent"], "settings": {"move_table": str(downloads / "secret")}}
    shutil.rmtree(folder)
    save_checkpoint(folder, Checkpoint(stored.tensors, documents))
    with pytest.raises(ConfigError, match="move_table"):
        Agent.load(folder).settings  # noqa: B018


def test_modes_of_a_downloaded_run_name_nothing_outside(downloads: Path, fresh: MakePolicy) -> None:
    policy = fresh("brawl")
    content = agent_checkpoint(policy.spec, policy.config, policy.state())
    modes = {"a": {"move_table": str(downloads / "secret")}}
    config: Any = {"world": {"name": "brawl", "settings": {}}, "evaluation": {"modes": modes}}
    (downloads / "run" / "checkpoints").mkdir(parents=True)
    target = downloads / "run" / "checkpoints" / "final"
    documents: Any = {**content.documents, "config": config}
    save_checkpoint(target, Checkpoint(content.tensors, documents))
    with pytest.raises(ConfigError, match="move_table"):
        stored_modes(downloads / "run")


@pytest.mark.parametrize(
    ("name", "read", "section"),
    [
        ("sweep.yaml", read_sweep, "ppo: {learning_rate: {sweep: log_uniform, low: 1e-4, high: 3e-3}}"),
        ("league.yaml", read_league, "population: {}"),
    ],
)
def test_a_downloaded_sweep_or_league_names_nothing_outside(
    name: str, read: Callable[[Path], Any], section: str, downloads: Path
) -> None:
    for settings, fault in (("{move_table: ../secret}", "move_table"), ("{}", "")):
        world = f"world: {{name: brawl, settings: {settings}}}\nopponents: {{based: 1}}\n"
        text = f"{section}\n{world}evaluation: {{every_env_steps: 1000}}\n"
        (downloads / name).write_text(text)
        if fault:
            with pytest.raises(ConfigError, match=fault):
                read(downloads)
        else:
            read(downloads)


@pytest.mark.parametrize(
    ("name", "read", "section"),
    [
        ("sweep.yaml", read_sweep, "ppo: {learning_rate: {sweep: log_uniform, low: 1e-4, high: 3e-3}}"),
        ("league.yaml", read_league, "population: {}"),
    ],
)
def test_a_downloaded_sweep_or_league_reports_to_nobody(
    name: str, read: Callable[[Path], Any], section: str, downloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUDUS_CONFIG", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(downloads / "config"))
    world = "world: {name: brawl}\nopponents: {based: 1}\nevaluation: {every_env_steps: 1000}\n"
    (downloads / name).write_text(f"{section}\n{world}monitoring: {{webhook: {{address_env: SOME_ADDRESS}}}}\n")
    plan = read(downloads)
    assert plan.base.monitoring.webhook is None
    own = TrainConfig.model_validate(
        {"world": {"name": "brawl"}, "monitoring": {"webhook": {"address_env": "SOME_ADDRESS"}}}
    )
    write_stored(downloads / "own.yaml", replace(plan, base=own))  # as a sweep or league of the user's does
    assert read(downloads).base.monitoring.webhook is not None


# --- replays ---


def replay_with(config: Mapping[str, Any], world: str = "city") -> Replay:
    return Replay(world, 1, 0, 0, 0, torch.zeros((1, 1, 2), dtype=torch.int64), "0" * 64, config=dict(config))


@pytest.mark.parametrize("case", HOSTILE)
def test_a_replay_names_nothing_outside(case: str, downloads: Path) -> None:
    world, settings = HOSTILE[case]
    hostile = replay_with(filled(settings, downloads), world)
    with pytest.raises(ReplayError) as caught:
        verify_replay(hostile)
    assert "secret:2" not in str(caught.value)
    check_untouched(downloads)


def test_a_replay_of_a_package_motion_goes_as_recorded() -> None:
    settings = {"motions": ["walk-slow", "walk-fast"], "episode_s": 0.1}
    with make_env("mimic", config=settings) as env:
        env.reset(seed=0)
        recorder = ReplayRecorder(env)
        actions = torch.zeros((1, 1, *env.spec.action_space.shape))  # type: ignore[misc]
        recorder.record(actions, env.step(actions))
    assert recorder.replay().config["motions"] == ["walk-slow", "walk-fast"]
    verify_replay(recorder.replay())


def test_a_replay_asks_for_the_files_that_it_was_recorded_with(downloads: Path) -> None:
    shutil.copy(Path(sys.modules["ludus.worlds.brawl"].__path__[0]) / "moves.yaml", downloads / "own.yaml")
    with make_env("brawl", config={"move_table": "own.yaml"}) as env:
        env.reset(seed=0)
        recorder = ReplayRecorder(env)
        actions = torch.zeros((1, 2, 10), dtype=torch.int8)
        recorder.record(actions, env.step(actions))
    recorded = recorder.replay()
    assert (dict(recorded.config), set(recorded.files)) == ({}, {"move_table"})
    with pytest.raises(ReplayError, match="move_table"):
        replay_env(recorded)
    verify_replay(recorded, {"move_table": Path("own.yaml")})


# --- the live page, and the fuzzer ---


def test_looking_at_a_downloaded_run_starts_nothing(downloads: Path) -> None:
    """`ludus watch` plays a match of the selected run by itself."""
    content = read_single_file(hostile_agent("city", {"game": "evil.yaml"}, downloads))
    best = downloads / "run" / "checkpoints" / "best"
    best.parent.mkdir(parents=True)
    save_checkpoint(best, content)
    (downloads / "run" / "metrics.jsonl").write_text('{"env_steps": 1}\n')
    (downloads / "run" / "replays").mkdir()
    replay_with({"game": "evil.yaml"}).save(downloads / "run" / "replays" / "a.replay")
    asked = [
        {"run": str(downloads / "run"), "name": "run", "source": source, "seed": 0}
        for source in ("checkpoints/best", "replays/a.replay")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "ludus.cli.watch_matches"], input="".join(json.dumps(each) + "\n" for each in asked),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert ["game" in each["error"] for each in answers] == [True, True], answers
    check_untouched(downloads)


@pytest.mark.slow
def test_a_fuzzer_finds_nothing_in_three_minutes(tmp_path: Path) -> None:
    fuzzer = Path(__file__).with_name("fuzz_agents.py")
    done = subprocess.run(
        [sys.executable, str(fuzzer), str(tmp_path), "180"], capture_output=True, text=True, timeout=900, check=True
    )
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["found"] == []
    assert min(outcome["refused"], outcome["played"]) > 20
