"""`ludus demo` of worlds with one seat: an agent alone, and what a world shows without any."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import pytest
import torch

from ludus.core.errors import VideoError
from ludus.envs.registry import make_env
from ludus.envs.replay import Replay, verify_replay
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint
from ludus.worlds.mimic.rendering.gl import open_context

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]
MakeWalker = Callable[[Mapping[str, Any]], Path]
SHORT = ("--set", "episode_s=0.2", "--set", "threads=1")  # 20 steps, five pictures


@pytest.fixture(autouse=True)
def can_draw() -> None:
    try:
        open_context(16, 16).free()
    except VideoError as error:
        pytest.skip(f"needs OpenGL, from the Debian packages libegl1 and libegl-mesa0, or libosmesa6: {error}")


@pytest.fixture
def walker(tmp_path: Path) -> MakeWalker:
    """Saves an untrained agent of mimic with the settings that it was trained with."""

    def make(settings: Mapping[str, Any]) -> Path:
        with make_env("mimic", config=settings) as env, torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            policy = Policy(env.spec, PolicyConfig())
        checkpoint = agent_checkpoint(policy.spec, policy.config, policy.state(), settings)
        save_checkpoint(tmp_path / "walker" / "checkpoints" / "best", checkpoint)
        return tmp_path / "walker"

    return make


def test_an_agent_alone_is_filmed_in_real_time(run: Run, walker: MakeWalker, tmp_path: Path) -> None:
    video, file = tmp_path / "videos" / "walk.mp4", tmp_path / "walk.replay"
    arguments = ("demo", walker({}), *SHORT, "--deterministic", "--video", video, "--record", file)
    code, out, err = run(*arguments)
    assert code == 0, err
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(video))
    assert frames == 5  # the first and four more; at the fifth the game has begun anew
    assert seconds == pytest.approx(0.2, abs=0.01)  # 25 pictures a second
    assert "[OK] walker: 20 steps, distance_m " in out
    assert ", duration_s 0.20, " in out
    assert f"frames written to {video}" in out
    assert "pictures: 5/5" in err
    replay = Replay.load(file)
    assert (replay.steps, replay.players) == (20, ("walker",))
    verify_replay(replay)
    assert run(*arguments, "--seed", 1)[0] == 0
    other = Replay.load(file)
    assert not bool((other.actions == replay.actions).all())  # another start
    assert run(*arguments)[0] == 0
    assert bool((Replay.load(file).actions == replay.actions).all())


def test_the_agents_own_settings_a_trial_and_the_users_are_laid_over_each_other(
    run: Run, walker: MakeWalker, tmp_path: Path
) -> None:
    agent, file = walker({"walker": "walker-13", "speed": 0.9, "threads": 1}), tmp_path / "a.replay"
    arguments = ("demo", agent, "--video", tmp_path / "a.gif", "--frames", 2, "--record", file)
    code, _, err = run(*arguments)
    assert code == 0, err
    assert "[WARN] stopped after 8 steps" in err  # four steps a picture
    assert Replay.load(file).config == {"walker": "walker-13", "speed": 0.9, "threads": 1}
    assert (tmp_path / "a.gif").read_bytes()[:6] == b"GIF89a"
    code, _, err = run(*arguments, "--scenario", "speed-1.0", "--set", "pushes.impulse_ns=5", "--set", "episode_s=3")
    assert code == 0, err
    config = Replay.load(file).config
    assert (config["walker"], config["speed"], config["starts"], config["episode_s"]) == (
        "walker-13",
        1.0,
        "fixed",
        3.0,
    )
    assert config["pushes"] == {"impulse_ns": 5.0}
    code, _, err = run(*arguments, "--set", "walker=walker-8")
    assert code == 2
    assert "the agent does not fit the world" in err


def test_a_world_without_an_agent_shows_its_reference(run: Run, tmp_path: Path) -> None:
    video = tmp_path / "new" / "reference.mp4"
    code, out, err = run("demo", "mimic", "--video", video, "--frames", 3, "--set", "speed=1.2")
    assert code == 0, err
    assert f"[OK] 3 frames of mimic-v1 written to {video}" in out
    assert imageio_ffmpeg.count_frames_and_secs(str(video)) == (3, pytest.approx(0.12, abs=0.01))
    code, out, err = run("demo", "mimic", "--video", video, *SHORT)
    assert code == 0, err
    assert "[OK] 5 frames of mimic-v1" in out
    assert "pictures: 5/5" in err


def test_it_is_shown_in_a_window_too(
    run: Run, walker: MakeWalker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    assert run("demo", "mimic", "--window", "--frames", 7, *SHORT)[0] == 0  # begins again after five
    code, out, err = run("demo", walker({}), "--window", "--frames", 8, *SHORT)
    assert code == 0, err
    assert out.count("[OK] walker: 20 steps") == 1
    assert not (tmp_path / "demo.mp4").exists()
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for shown in ("mimic", tmp_path / "walker"):
        code, _, err = run("demo", shown, "--window")
        assert code == 2
        assert "[ERROR] there is no screen to open a window on; set DISPLAY, or write a video instead" in err


def test_any_gymnasium_world_that_can_be_drawn_is_shown(
    run: Run, make_agent: Callable[[str], Path], tmp_path: Path
) -> None:
    agent, video = make_agent("gym:CartPole-v1"), tmp_path / "cart.mp4"
    code, _, err = run("demo", agent, "--video", video, "--frames", 3)
    assert code == 0, err
    assert imageio_ffmpeg.count_frames_and_secs(str(video))[0] == 4  # the first and three more
    replay = tmp_path / "a.replay"
    code, _, err = run("demo", agent, "--video", video, "--frames", 2, "--record", replay)
    assert code == 0, err
    code, out, err = run("replay", replay, "--verify")
    assert code == 0, err
    assert "goes as recorded: gym:CartPole-v1, " in out
    again = tmp_path / "again.mp4"
    code, _, err = run("replay", replay, "--video", again)
    assert code == 0, err
    assert imageio_ffmpeg.count_frames_and_secs(str(again))[0] == 3  # two steps each


def test_wrong_requests_are_explained(run: Run, walker: MakeWalker, tmp_path: Path) -> None:
    agent = walker({})
    for arguments, message in (
        ((agent, "--against", "based"), "[ERROR] --against based means nothing here: mimic-v1 is shown alone"),
        (("mimic", "--left", "x"), "[ERROR] --left x means nothing here"),
        (("mimic", "--record", "x.replay"), "[ERROR] --record x.replay means nothing here"),
        ((agent, "--scenario", "sprint"), "[ERROR] unknown scenario 'sprint'; valid: walk, speed-0.8"),
        (("brawl", "--scenario", "walk"), "[ERROR] brawl has no scenarios, got walk"),
        ((agent, "--set", "speed"), "should be a key, an equals sign and a value"),
        ((agent, "--set", "sped=1.2"), "unknown key 'sped' (did you mean 'speed'?)"),
        ((agent, "--set", "speed=99"), "speed: Input should be less than or equal to 5, got 99"),
        ((agent, "--debug"), "[ERROR] mimic-v1 has no debug layer"),
    ):
        code, out, err = run("demo", *arguments, "--video", tmp_path / "a.mp4")
        assert code == 2, arguments
        assert message in err
        assert "Traceback" not in err + out
        assert err.isascii()
    assert not (tmp_path / "a.mp4").exists()


@pytest.mark.parametrize(("words", "bot"), [((), "balanced"), (("--left", "greedy"), "greedy")])
def test_a_bot_is_watched_alone(run: Run, tmp_path: Path, words: tuple[str, ...], bot: str) -> None:
    video = tmp_path / "city.mp4"
    small = ("--set", "display={width: 560, height: 360}", "--frames", 2, "--video", video)
    code, out, err = run("demo", "city", *words, *small)
    assert code == 0, err
    assert f"[OK] {bot} plays city-v1 alone; its bots, for --left: random, wait, " in out
    assert f"[OK] 3 frames written to {video}" in out
    code, _, err = run("demo", "city", "--against", bot, *small)
    assert code == 2
    assert f"--against {bot} means nothing here: city-v1 is shown alone" in err
