"""Commands that agents play in: `ludus eval`, `ludus demo` and `ludus play`."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import imageio_ffmpeg
import pytest

from ludus.cli import console, evaluate
from ludus.envs.replay import Replay, replay_env, verify_replay
from ludus.worlds.brawl.env import BrawlEnv

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]
MakeAgent = Callable[[str], Path]


def test_eval_prints_a_table_of_every_bot(run: Run, make_agent: MakeAgent) -> None:
    code, out, err = run("eval", make_agent("duel"), "--matches", 20, "--device", "cpu")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["opponent", "matches", "won", "%", "drawn", "return", "steps"]
    assert [line.split()[:2] for line in lines[1:4]] == [["rock", "20"], ["cycle", "20"], ["random", "20"]]
    assert lines[4].startswith("[OK] 60 matches in ")
    assert " on cpu, mean win rate " in lines[4]
    assert out.isascii()
    assert "evaluation: 100 % (0 s left)" in err


def test_a_quotient_by_next_to_nothing_is_not_spelt_out() -> None:
    assert evaluate._cell({"damage_ratio": 10_217.89}, "damage_ratio", ".2f") == "> 999"
    assert evaluate._cell({"damage_ratio": 2.5}, "damage_ratio", ".2f") == "2.50"


def test_eval_as_json_is_the_same_twice_and_says_what_was_asked(run: Run, make_agent: MakeAgent) -> None:
    agent = make_agent("duel")
    arguments = ("eval", agent, "--against", "random", "--against", agent, "--matches", 30, "--seed", 7, "--json")
    documents = [json.loads(run(*arguments)[1]) for _ in range(2)]
    for document in documents:
        assert document.pop("seconds") > 0.0
    first = documents[0]
    assert first == documents[1]
    assert (first["agent"], first["seed"], first["deterministic"]) == (str(agent), 7, False)
    assert first["world"] == "duel-v1"
    assert [row["opponent"] for row in first["opponents"]] == ["random", str(agent)]
    for row in first["opponents"]:
        assert row["matches"] == row["wins"] + row["draws"] + row["losses"] == 30
        assert row["win_rate_low"] < row["win_rate"] == row["wins"] / 30 < row["win_rate_high"]
    assert first["mean_win_rate"] == pytest.approx(sum(row["win_rate"] for row in first["opponents"]) / 2)
    likely = json.loads(run(*arguments, "--deterministic", "--games", 7)[1])
    assert likely["deterministic"] is True
    assert likely["opponents"] != first["opponents"]


def test_eval_of_brawl_tells_the_behaviour(run: Run, make_agent: MakeAgent) -> None:
    agent = make_agent("brawl")
    code, out, _ = run("eval", agent, "--against", "based:delay=4", "--matches", 2, "--json")
    assert code == 0
    (row,) = json.loads(out)["opponents"]
    assert row["opponent"] == "based:delay=4"
    assert {"damage_ratio", "knockouts", "knocked_out", "self_destructs", "danger_share", "survival_s"} <= set(row)


def test_eval_of_a_world_of_one_seat(run: Run, make_agent: MakeAgent) -> None:
    code, out, _ = run("eval", make_agent("gym:CartPole-v1"), "--matches", 5)
    assert code == 0
    assert out.splitlines()[0].split() == ["matches", "return", "steps"]
    assert "win rate" not in out
    assert "number" not in out  # it has none beside those


@pytest.mark.usefixtures("stroll_world")
def test_eval_in_trials(run: Run, make_agent: MakeAgent) -> None:
    agent = make_agent("stroll")
    code, out, err = run("eval", agent, "--matches", 5, "--deterministic")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split() == ["trial", "matches", "steps"]
    assert [line.split()[:2] for line in lines[1:4]] == [["calm", "5"], ["wind", "5"], ["storm", "5"]]
    assert lines[5].split() == ["number", "calm", "wind", "storm"]
    numbers = {line.split()[0]: line.split()[1:] for line in lines[6:12]}
    assert list(numbers) == ["distance_m", "speed_m_s", "stable", "distance_min_m", "distance_max_m", "stable_walks"]
    assert all(len(cells) == 3 for cells in numbers.values())
    assert lines[12].startswith("[OK] 15 matches in ")
    code, out, _ = run("eval", agent, "--scenario", "storm", "--matches", 2, "--deterministic", "--json")
    (only,) = json.loads(out)["opponents"]
    assert (code, only["trial"], only["mean_length"]) == (0, "storm", 10.0)
    code, _, err = run("eval", agent, "--scenario", "strom")
    assert code == 2
    assert "[ERROR] unknown scenario 'strom' (did you mean 'storm'?); valid: calm, wind, storm" in err


def test_many_trials_are_broken_into_tables_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {f"joint_{index}_rmse_deg": index / 3.0 for index in range(25)}
    rows = [{"opponent": "", "trial": f"speed-{index}.0", "matches": 20} | numbers for index in range(12)]
    evaluate._show(rows, "walker")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = [name for line in lines if line.startswith("number") for name in line.split()[1:]]
    assert shown == [row["trial"] for row in rows]
    assert sum(line.startswith("joint_24_rmse_deg ") for line in lines) == 3


def test_on_a_terminal_the_table_is_drawn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    console.show_table(("opponent", "damage ratio"), (("[bold]", "1.25"), ("edge-guarder", "12.50")), title="runs/[a]")
    plain = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in plain.splitlines()]
    assert lines[0] == "runs/[a]"
    assert [line.split() for line in lines[2:4]] == [["damage"], ["opponent", "ratio"]]
    assert [line.split() for line in lines[5:7]] == [["[bold]", "1.25"], ["edge-guarder", "12.50"]]


def test_an_agent_fights_in_a_demo_on_the_left(run: Run, make_agent: MakeAgent, tmp_path: Path) -> None:
    agent, video, file = make_agent("brawl"), tmp_path / "videos" / "a.mp4", tmp_path / "a.replay"
    arguments = ("demo", agent, "--against", "constant", "--video", video, "--frames", 15, "--record", file)
    code, out, _ = run(*arguments, "--seed", 3)
    assert code == 0
    assert f"frames written to {video}" in out
    assert imageio_ffmpeg.count_frames_and_secs(str(video))[0] == 16
    replay = Replay.load(file)
    assert replay.players == ("brawl-run", "constant")
    assert replay.actions[:, 0].any()
    assert not replay.actions[:, 1].any()
    with replay_env(replay) as env:
        assert isinstance(env, BrawlEnv)
        assert env.view(0).players[0].x < 0.0
    verify_replay(replay)
    assert run(*arguments, "--seed", 3)[0] == 0
    assert bool((Replay.load(file).actions == replay.actions).all())  # the seed decides what is drawn, too


def test_two_agents_fight_in_a_demo_of_a_world(run: Run, make_agent: MakeAgent, tmp_path: Path) -> None:
    agent, file = make_agent("brawl"), tmp_path / "a.replay"
    best = agent / "checkpoints" / "best"
    sides = ("--left", agent, "--right", best)
    code, _, _ = run("demo", "brawl", *sides, "--video", tmp_path / "a.gif", "--frames", 3, "--record", file)
    assert code == 0
    assert Replay.load(file).players == ("brawl-run", "brawl-run/best")


def test_a_demo_in_a_window(run: Run, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("demo", make_agent("brawl"), "--window", "--frames", 5, "--record", "shown.replay")
    assert code == 0
    assert "[OK] replay of 5 steps written to shown.replay" in out
    assert not (tmp_path / "demo.mp4").exists()


def test_demo_of_teams_from_any_view_at_any_rate(run: Run, tmp_path: Path) -> None:
    video, file = tmp_path / "a.mp4", tmp_path / "a.replay"
    settings = ("--set", "mode=1v2", "--set", "threads=1", "--seed", 5)
    watched = ("--view", "chase-3", "--fps", 60, "--frames", 7)
    code, out, err = run("demo", "rocket", *settings, *watched, "--video", video, "--record", file)
    assert code == 0, err
    assert imageio_ffmpeg.count_frames_and_secs(str(video))[0] == 8
    replay = Replay.load(file)
    assert (replay.steps, replay.players) == (2, ("chaser", "shooter", "shooter"))
    assert (replay.config["mode"], replay.config["episode"]) == ("1v2", "match")
    code, out, _ = run("replay", file, "--video", tmp_path / "b.gif", "--view", "top", "--fps", 15)
    assert code == 0
    assert "3 frames written" in out
    assert "rocket-v2, chaser, shooter, shooter, 2 steps" in out
    for command in (("demo", "rocket", "--set", "threads=1"), ("replay", file)):
        code, _, err = run(*command, "--view", "chase-9", "--video", tmp_path / "c.mp4")
        assert code == 2
        assert "[ERROR] unknown view 'chase-9'" in err
        assert "valid: top, side, chase, ball, chase-2" in err
    code, _, err = run("demo", "brawl", "--view", "top", "--video", tmp_path / "c.mp4")
    assert code == 2
    assert "[ERROR] brawl-v1 has one view; leave --view top out" in err


def test_a_person_drives_beside_bots(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    file = tmp_path / "a.replay"
    code, out, err = run(
        "play", "rocket", "--set", "mode=2v1", "--set", "threads=1", "--delay", 2, "--frames", 6, "--record", file
    )
    assert code == 0, err
    replay = Replay.load(file)
    assert replay.players == ("you", "chaser:delay=2", "chaser:delay=2")
    assert replay.actions.shape[1:] == (3, 8)
    assert 3 <= replay.steps <= 6  # two pictures a decision, or one where drawing is slow
    assert "A OR LEFT" in out


def test_a_rocket_agent_plays_all_seats_of_its_team_and_against_a_person(
    run: Run, make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, video, file = make_agent("rocket"), tmp_path / "a.mp4", tmp_path / "a.replay"
    settings = ("--set", "threads=1", "--frames", 4, "--seed", 5, "--record", file)
    code, _, err = run("demo", agent, "--against", "idle", "--set", "mode=2v1", *settings, "--video", video)
    assert code == 0, err
    replay = Replay.load(file)
    assert replay.players == ("rocket-run", "rocket-run", "idle")
    assert (replay.config["episode"], replay.actions.shape) == ("match", (2, 3))
    assert replay.actions[:, 0].tolist() != replay.actions[:, 1].tolist()  # each seat draws its own
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    code, _, err = run("play", "rocket", "--against", agent, *settings)
    assert code == 0, err
    replay = Replay.load(file)
    assert replay.players == ("you", "rocket-run")
    assert replay.actions.ndim == 2  # numbers of the table that the agent knows
    assert "ticks" not in replay.config
    verify_replay(replay)


def test_a_person_plays_against_an_agent(
    run: Run, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    agent, file = make_agent("brawl"), tmp_path / "played.replay"
    code, _, _ = run("play", "brawl", "--against", agent, "--seed", 1, "--frames", 12, "--record", file)
    assert code == 0
    replay = Replay.load(file)
    assert replay.players == ("you", "brawl-run")
    assert not replay.actions[:, 0].any()
    assert replay.actions[:, 1].any()
    code, _, err = run("play", "brawl", "--against", agent, "--delay", 3)
    assert code == 2
    assert "[ERROR] --delay and --noise are for bots; leave them out to play against the agent" in err


def test_wrong_requests_are_explained(run: Run, make_agent: MakeAgent, tmp_path: Path) -> None:
    duellist, fighter = make_agent("duel"), make_agent("brawl")
    for arguments, message in (
        (("eval", "gone"), "[ERROR] unknown agent 'gone': there is no folder"),
        (
            ("eval", duellist, "--against", "rok"),
            "'rok' (did you mean 'rock'?)",
        ),
        (("eval", duellist, "--against", fighter), "it plays brawl-v1, not duel-v1"),
        (("eval", duellist, "--device", "tpu"), "[ERROR] unknown device 'tpu'; valid: cpu, cuda"),
        (("eval", tmp_path), "manifest.json: is missing"),
        (("eval", duellist, "--matches", 0), "Invalid value for '--matches'"),
        (("demo", "gone"), "[ERROR] unknown world or agent 'gone': there is no folder"),
        (("demo", fighter, "--left", "based"), "starts on the left; leave --left based out"),
        (("demo", fighter, "--against", "baset"), "(did you mean 'based'?)"),
        (("demo", "brawl", "--window", "--video", "a.mp4"), "[ERROR] --window shows the match and writes no video"),
    ):
        code, out, err = run(*arguments)
        assert code == 2
        assert message in err
        assert "Traceback" not in err + out
        assert err.isascii()
