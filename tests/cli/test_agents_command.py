"""`ludus agents`, and commands to which shipped agents are given by name."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.cli.completion import complete_agent, complete_agent_name, complete_agent_or_world
from ludus.envs.replay import Replay
from ludus.policies.shipped import agent_card, agent_names, agent_path, describe_agent

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_shows_what_the_cards_say(run: Run) -> None:
    code, out, _ = run("agents")
    assert code == 0
    header, *rows, last = out.splitlines()
    assert header.split() == ["name", "world", "what", "it", "is", "measured", "size", "trained", "with"]
    assert [row.split()[0] for row in rows] == list(agent_names())
    for name, row in zip(agent_names(), rows, strict=True):
        described = describe_agent(name)
        size = f"{agent_path(name).stat().st_size / 1e3:.0f} kB"
        for text in (described.world, described.summary, described.result, size, described.command):
            assert f"  {text}" in row
    assert last == f"[OK] {len(rows)} agents; use a name wherever a command takes an agent: ludus demo NAME"


def test_the_list_and_a_card_as_json(run: Run) -> None:
    code, out, _ = run("agents", "--json")
    assert code == 0
    listed = json.loads(out)["agents"]
    assert [each["name"] for each in listed] == list(agent_names())
    code, out, _ = run("agents", "rookie", "--json")
    assert code == 0
    document = json.loads(out)
    assert document.pop("card") == agent_card("rookie")
    assert document in listed
    assert document["bytes"] == Path(document["path"]).stat().st_size
    assert document["command"] == describe_agent("rookie").command


def test_a_card_is_printed_below_its_description(run: Run) -> None:
    code, out, _ = run("agents", "champion")
    assert code == 0
    described = describe_agent("champion")
    assert f"command: {described.command}\n" in out
    assert f"result: {described.result}\n" in out
    assert "\n# champion\n" in out
    assert out.index("command: ") < out.index("# champion") < out.index("## Training")
    assert out.isascii()


def test_the_agents_of_a_world_are_among_what_is_known_of_it(run: Run) -> None:
    code, out, _ = run("envs", "brawl")
    assert code == 0
    assert "\nagents: champion, rookie\n" in out
    code, out, _ = run("demo", "mimic", "--video", "a.gif", "--frames", 1)
    assert code == 0
    assert "for an agent: ludus demo RUN, or --agent walker" in out


def test_unknown_names_are_explained(run: Run) -> None:
    for arguments, message in (
        (("agents", "champoin"), "[ERROR] unknown shipped agent 'champoin' (did you mean 'champion'?); valid: builder"),
        (("eval", "champoin"), "[ERROR] unknown agent 'champoin' (did you mean 'champion'?): there is no folder or"),
        (("demo", "mimic", "--agent", "walkr"), "[ERROR] unknown agent 'walkr' (did you mean 'walker'?)"),
        (("demo", "mimic", "--agent", "champion"), "it plays brawl-v1, not mimic-v1"),
        (("demo", "rookie", "--agent", "champion"), "rookie is an agent, and so is --agent champion"),
        (("play", "brawl", "--against", "striker"), "it plays rocket-v2, not brawl-v1"),
        (("rocket", "rlbot", "champion"), "was trained in brawl-v1; RLBot needs an agent of rocket"),
        (("eval",), "name the folder of a run or an agent that `ludus agents` lists"),
    ):
        code, out, err = run(*arguments)
        assert code == 2
        assert message in err
        assert "Traceback" not in err + out


def test_agents_are_evaluated_and_meet_in_a_tournament_by_name(run: Run) -> None:
    code, out, err = run("eval", "champion", "--against", "rookie", "--matches", 4, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["agent"] == "champion"
    assert [row["opponent"] for row in document["opponents"]] == ["rookie"]
    code, out, err = run("tournament", "champion", "rookie", "constant", "--matches", 2, "--json")
    assert code == 0, err
    players = {player["name"] for player in json.loads(out)["players"]}
    assert players == {"champion", "rookie", "constant"}


def test_agents_are_shown_by_name(run: Run, here: Path) -> None:
    shown = ("--video", "a.gif", "--frames", 2, "--record", "a.replay")
    for words, players in (
        (("champion", "--against", "rookie"), ("champion", "rookie")),
        (("brawl", "--agent", "rookie", "--against", "constant"), ("rookie", "constant")),
        (("--agent", "champion", "--against", "constant"), ("champion", "constant")),
        (("brawl", "--left", "rookie", "--right", "champion"), ("rookie", "champion")),
    ):
        code, _, err = run("demo", *words, *shown)
        assert code == 0, err
        assert Replay.load(here / "a.replay").players == players
    code, _, err = run("demo", "mimic", "--agent", "walker", "--video", "walk.gif", "--frames", 2)
    assert code == 0, err
    assert (here / "walk.gif").is_file()


def test_a_person_plays_against_a_shipped_agent(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    code, _, err = run("play", "brawl", "--against", "champion", "--frames", 3, "--seed", 1, "--record", "a.replay")
    assert code == 0, err
    assert Replay.load(here / "a.replay").players == ("you", "champion")
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = run("play", "brawl", "--against", "champion")
    assert code == 2
    assert "there is no screen to open a window on; set DISPLAY, or write a video instead (`ludus demo` and" in err


def test_an_agent_of_rocket_becomes_a_bot_of_rlbot(run: Run, here: Path) -> None:
    code, _, err = run("rocket", "rlbot", "novice")
    assert code == 0, err
    assert (here / "novice-rlbot" / "agent.ludus").read_bytes() == agent_path("novice").read_bytes()


def test_names_are_completed_beside_paths(here: Path) -> None:
    assert complete_agent_name("") == list(agent_names())
    assert complete_agent_name("ch") == ["champion"]
    assert complete_agent("r") == ["rookie"]
    (here / "runs").mkdir()
    (here / "rival.ludus").touch()
    (here / ".rc").touch()
    assert complete_agent("r") == ["rookie", "rival.ludus", "runs/"]
    assert complete_agent("ru") == []  # the shell completes paths by itself
    assert complete_agent_or_world("ro") == ["rocket", "rookie", "roshambo"]


def test_listing_and_completing_import_no_torch() -> None:
    code = (
        "import sys\n"
        "from ludus.cli.completion import complete_agent_or_world\n"
        "from ludus.cli.agents import agents\n"
        "complete_agent_or_world('r')\n"
        "agents(None)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
