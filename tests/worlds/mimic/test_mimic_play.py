"""`ludus play mimic`: a walker that obeys, over a real server, from a real page, and as a command."""

import http.client
import json
import math
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import pytest
import torch
from tests.reports.page.conftest import browser
from tests.watch.conftest import eventually, visit
from typer.testing import CliRunner

from ludus.cli.main import app
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.envs.base import EnvRequest
from ludus.policies.agent import Agent
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.worlds.mimic import play as play_module
from ludus.worlds.mimic.live_walk import Command, PushCommand, SteeredWalk
from ludus.worlds.mimic.observation import euler_angles
from ludus.worlds.mimic.play import PlayServer, default_agent, make_walk
from ludus.worlds.mimic.steering import SteeredEnv

if TYPE_CHECKING:
    from tests.commands import Commands

pytestmark = pytest.mark.browser

__all__ = ["browser"]

DATA = "document.documentElement.dataset"
ROBOT = Path(__file__).parents[3] / "examples" / "own_body.xml"
_PARTS = {"hip": "hip", "hip_frontal": "swing", "knee": "knee", "ankle": "ankle"}
ROBOT_JOINTS = {f"{side}_{kind}": f"{name}_{side}" for side in ("right", "left") for kind, name in _PARTS.items()}


def steered(games: int = 1, **config: Any) -> SteeredEnv:
    fixed = {"starts": "fixed", "start_noise": 0.0, "speed": 1.0, "threads": 1}
    return SteeredEnv(EnvRequest(games, "cpu", 0, 0, fixed | config))


def idle(env: SteeredEnv) -> torch.Tensor:
    return torch.zeros(env.num_envs, 1, len(env.walker.joints))


def momentum(env: SteeredEnv) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the momentum of the whole body of the first walker, N s."""
    data = mujoco.MjData(env.walker.model)
    data.qpos[:], data.qvel[:] = env.positions(0), env.velocities(0)
    mujoco.mj_forward(env.walker.model, data)
    mujoco.mj_subtreeVel(env.walker.model, data)
    return env.walker.mass_kg * np.array(data.subtree_linvel[0])


def test_a_push_adds_its_impulse_to_the_momentum() -> None:
    """3 N s to the left in 0.1 s, high above the ground, where nothing else pushes to any side."""
    env = steered()
    env._host.positions[:, 2] += 2.0
    before = momentum(env)
    env.push(torch.tensor([math.pi / 2], dtype=torch.float64), torch.tensor([3.0]))
    assert env.force(0) == pytest.approx((0.0, 30.0), abs=1e-9)
    for _ in range(10):
        env.step(idle(env))
    assert env.force(0) == (0.0, 0.0)  # after 0.1 s
    env.step(idle(env))
    # Turning limbs are integrated in steps of 5 ms, which is good for 2 % here.
    np.testing.assert_allclose((momentum(env) - before)[:2], (0.0, 3.0), atol=0.06)
    env.close()


def test_the_desired_speed_is_kept_within_what_the_reference_can_do() -> None:
    env = steered()
    low, high = env.speeds_m_s
    for asked, got in ((1.3, 1.3), (9.0, high), (0.0, low)):
        env.set_speed(asked)
        assert env.step(idle(env)).state_metrics["desired"][0, 0].item() == pytest.approx(got)
    env.reset()
    assert env.view(0).desired_m_s == pytest.approx(low)  # of the next walk too
    env.close()


def test_a_turn_of_the_heading_turns_the_walker_the_other_way_in_its_own_world() -> None:
    """Turned by 0.1 rad in ten steps: yaw and the direction of the velocity differ by -0.1 from those of the other."""
    straight, turned = steered(), steered()
    turned.set_turn(1.0)
    for _ in range(10):
        straight.step(idle(straight))
        turned.step(idle(turned))
    assert turned.headings.tolist() == pytest.approx([0.1])
    yaw = [float(euler_angles(torch.from_numpy(env.positions(0)[None, 3:7]))[0, 2]) for env in (straight, turned)]
    assert yaw[1] - yaw[0] == pytest.approx(-0.1, abs=0.005)
    ways = [math.atan2(*env.velocities(0)[1::-1]) for env in (straight, turned)]
    assert ways[1] - ways[0] == pytest.approx(-0.1, abs=0.005)
    np.testing.assert_allclose(turned.positions(0)[7:], straight.positions(0)[7:], atol=2e-3)  # the same to its joints
    turned.reset()
    assert turned.headings.tolist() == [0.0]
    for env in (straight, turned):
        env.close()


# --- the server ---


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    """The shipped walker, walking while somebody watches."""
    walk = make_walk(None, ["threads=1"])
    with PlayServer(walk, port=0) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        is_over = threading.Event()

        def walk_on() -> None:
            while not is_over.is_set():
                walk.run(lambda: server.idle_s == 0.0, walk._progress.steps + 5)

        walking = threading.Thread(target=walk_on, daemon=True)
        for thread in (serving, walking):
            thread.start()
        with frames(server):  # the walk goes on while a page is open
            yield server
            is_over.set()
            walk.send(Command(paused=False))
            walking.join(20)
        server.shutdown()
    walk.close()


@contextmanager
def frames(server: PlayServer) -> Iterator[Callable[[], dict[str, Any]]]:
    """Open a stream; the function returns the next frame, or what comes first: the facts."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.status == 200

    def following() -> dict[str, Any]:
        while True:
            line = answer.readline().decode()
            if line.startswith("data: "):
                found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                return found

    try:
        yield following
    finally:
        answer.close()
        connection.close()


def command(server: PlayServer, body: object, path: str = "/command", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    text = body if isinstance(body, str) else json.dumps(body)
    given = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, text, given)
    answer = connection.getresponse()
    result = answer.status, answer.read().decode()
    connection.close()
    return result


def test_commands_change_what_the_walker_does(server: PlayServer) -> None:
    with frames(server) as following:
        facts = following()
        assert facts["agent"] == "walker"
        assert facts["rate_hz"] == 100.0
        assert len(facts["points"]) == len(following()["points"])
        for asked in (0.9, 1.25):
            assert command(server, {"speed": asked})[0] == 204
            while following()["desired"] != asked:
                pass
        assert command(server, {"restart": True})[0] == 204
        eventually(lambda: following()["seconds"] < 0.5)
        eventually(lambda: following()["seconds"] > 1.5)
        command(server, {"time": 0.2})  # so that a busy machine does not miss the push between two frames
        before = following()
        assert command(server, {"push": {"direction_deg": 90.0, "impulse_ns": 20.0}})[0] == 204
        pushed = eventually(lambda: (frame := following())["force"] != [0.0, 0.0] and frame)
        assert pushed["force"] == [0.0, 200.0]  # 20 N s in 0.1 s, to the left
        assert pushed["last_push"] == {"direction_deg": 90.0, "impulse_ns": 20.0}
        after = eventually(lambda: (frame := following())["force"] == [0.0, 0.0] and frame)
        assert after["velocity"][1] - before["velocity"][1] > 0.15  # 20 N s on 75 kg: 0.27 m/s, which the legs resist
        assert command(server, {"turn": 1.0, "time": 1.0})[0] == 204
        eventually(lambda: following()["heading_deg"] > 1.0)
        assert command(server, {"turn": 0.0, "time": 2.0})[0] == 204
        assert 0.0 < following()["load"] < 50.0


def test_a_pause_stops_time_until_it_ends(server: PlayServer) -> None:
    with frames(server) as following:
        following()
        command(server, {"paused": True})
        paused = eventually(lambda: (frame := following())["state"] == "paused" and frame)
        command(server, {"speed": 1.0})
        assert following()["seconds"] == paused["seconds"]
        command(server, {"paused": False})
        eventually(lambda: following()["seconds"] > paused["seconds"])


def test_a_walker_that_is_pushed_over_falls_and_begins_again(server: PlayServer) -> None:
    with frames(server) as following:
        following()
        falls = following()["falls"]
        command(server, {"push": {"direction_deg": 90.0, "impulse_ns": 100.0}, "time": 4.0})
        fallen = eventually(lambda: (frame := following())["state"] == "fallen" and frame)
        assert fallen["falls"] == falls + 1
        again = eventually(lambda: (frame := following())["state"] == "walking" and frame)
        assert again["seconds"] < fallen["seconds"]
        command(server, {"time": 1.0})


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"speed": -1.0}, 400, "speed"),
        ({"push": {"direction_deg": 0.0, "impulse_ns": 1e9}}, 400, "push.impulse_ns"),
        ('{"speed": NaN}', 400, "speed"),
        ({"jump": True}, 400, "jump"),
        ({"motion": "march"}, 400, "march"),
        ("{", 400, "the command"),
        (" " * 2000, 413, "1000 bytes"),
    ],
)
def test_what_is_no_command_is_refused(server: PlayServer, body: object, status: int, words: str) -> None:
    found = command(server, body)
    assert found[0] == status
    assert words in found[1]


def test_commands_of_other_pages_are_refused(server: PlayServer) -> None:
    assert command(server, {"speed": 1.0}, Origin="http://evil.example")[0] == 403
    assert command(server, {"speed": 1.0}, Sec_Fetch_Site="cross-site")[0] == 403
    assert command(server, {"speed": 1.0}, Host="evil.example")[0] == 421
    assert command(server, {"speed": 1.0}, Content_Type="text/plain")[0] == 415  # what a form of another page can send
    assert command(server, {"speed": 1.0}, path="/events")[0] == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [("Content-Length: 2\r\nContent-Length: 3", b"413"), ("X: 1", b"413"), (f"Content-Length: {'9' * 5000}", b"413"),
     ("Content-Length: -1", b"413"), ("Transfer-Encoding: chunked", b"400")],
)  # fmt: skip
def test_a_command_has_a_known_length(server: PlayServer, headers: str, status: bytes) -> None:
    host = f"127.0.0.1:{server.server_address[1]}"
    text = f"POST /command HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}\r\n\r\n{{}}"
    with socket.create_connection(("127.0.0.1", server.server_address[1]), 20) as connection:
        connection.sendall(text.encode())
        assert connection.recv(100).split()[1] == status


def test_others_on_the_network_need_the_token(server: PlayServer) -> None:
    with PlayServer(server.walk, host="0.0.0.0", port=0) as opened:  # noqa: S104
        serving = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        serving.start()
        status, said = command(opened, {"speed": 1.0})
        assert status == 401
        assert "`ludus play mimic`" in said
        assert command(opened, {"speed": 1.0}, Cookie=f"{opened.cookie}=guess")[0] == 401
        assert command(opened, {"speed": 1.0}, Cookie=f"{opened.cookie}={opened.token}")[0] == 204
        opened.shutdown()


def test_the_page_steers_pushes_and_pauses(browser: Any, server: PlayServer) -> None:
    command(server, {"time": 1.0, "turn": 0.0, "paused": False, "restart": True})  # whatever tests did before
    visit(browser, server.address)
    browser.wait(f"Number({DATA}.seconds) > 0.3")
    assert browser.run("document.querySelector('h1').textContent") == "Steer walker"
    browser.run(
        "(() => { const slider = document.querySelector('input[type=range]'); slider.value = 1.3;"
        " slider.dispatchEvent(new Event('input')); })()"
    )
    browser.wait(f"{DATA}.desired === '1.3'")
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { key: '-' }))")
    browser.wait(f"{DATA}.desired === '1.25'")
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'd' }))")
    browser.wait(f"Number({DATA}.heading) < -1")
    browser.run("document.dispatchEvent(new KeyboardEvent('keyup', { key: 'd' }))")
    left, top, width, height = browser.run(
        "(() => { const box = document.querySelector('.picture').getBoundingClientRect();"
        " return [box.left, box.top, box.width, box.height]; })()"
    )
    # The hips are a little to the left of the middle; from there the pointer draws a push of 40 px, 10 N s.
    x, y = left + 0.5 * width - 30, top + 0.5 * height
    browser.press(x, y)
    browser.move(x + 40, y)
    browser.let_go(x + 40, y)
    browser.wait(f"{DATA}.push === '10'")
    browser.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'Pause').click()")
    browser.wait(f"{DATA}.state === 'paused'")
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'p' }))")
    browser.wait(f"{DATA}.state === 'walking'")
    assert browser.run(f"{DATA}.problems || ''") == ""
    assert browser.complaints == []


# --- the command ---


def test_the_command_prints_an_address_and_what_real_time_it_needed(commands: "Commands") -> None:
    code, said = commands.run("play", "mimic", "--frames", 20, "--port", 0, "--no-browser", "--set", "threads=1")
    assert code == 0, said
    assert re.search(r"\[OK\] steer walker at http://127\.0\.0\.1:\d+/", said)
    assert re.search(r"\[OK\] 0\.2 s walked, 0 falls; a step of 10 ms took \d+\.\d ms, \d+ % of real time", said)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["mimic", "champion"], StateError, "brawl-v1"),
        (["mimic", "nobody"], ConfigError, "unknown agent 'nobody'"),
        (["mimic", "--against", "walker"], ConfigError, "--against means nothing in mimic"),
        (["brawl", "champion"], ConfigError, "use --against champion"),
        (["city", "--no-browser"], ConfigError, "--no-browser means nothing in city"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], error: type[Exception], words: str) -> None:
    shown = CliRunner().invoke(app, ["play", *arguments])
    assert isinstance(shown.exception, error)
    assert words in str(shown.exception)


def test_without_a_shipped_walker_the_command_to_train_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_module, "WORLD_ID", "mimic-v0")  # for which nothing is shipped
    with pytest.raises(ConfigError, match="ludus train mimic"):
        default_agent()


@pytest.mark.parametrize("body", ["walker-13", "own"])
def test_other_walkers_are_steered_too(body: str) -> None:
    """Untrained ones, which fall within seconds: the page is told, and they begin again after a while."""
    settings: dict[str, Any] = {"threads": 1, "starts": "fixed"}
    settings |= {"walker": body} if body != "own" else {"body": {"file": str(ROBOT), "joints": ROBOT_JOINTS}}
    with SteeredEnv(EnvRequest(1, "cpu", 0, 0, settings)) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        agent = Agent(Policy(env.spec, PolicyConfig()), settings=settings)
    walk = SteeredWalk(agent, "novice", settings, seed=0)
    walk.send(Command(push=PushCommand(direction_deg=90.0, impulse_ns=60.0), time=4.0, turn=-1.0))
    walk.run(lambda: True, 8)  # four times as fast, a page is sent every eighth step
    found = walk.next_frame(-1, 0.0)
    assert found is not None
    frame = json.loads(found[1])
    assert len(frame["points"]) == len(walk.describe()["points"])  # type: ignore[arg-type]
    assert np.isfinite(np.array(frame["points"])).all()
    assert frame["force"] == pytest.approx([0.0, 600.0], abs=0.1)
    assert frame["heading_deg"] == -0.8  # 10 degrees per second, to the right
    while walk._progress.falls == 0:
        walk.run(lambda: True, walk._progress.steps + 10)
    assert "1 fall;" in walk.summarise()
    walk.close()


def test_a_policy_of_several_motions_is_told_which_one_to_do() -> None:
    settings: dict[str, Any] = {"threads": 1, "starts": "fixed", "motions": ["walk", "stand", "march"], "mirror": False}
    with SteeredEnv(EnvRequest(1, "cpu", 0, 0, settings)) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        agent = Agent(Policy(env.spec, PolicyConfig()), settings=settings)
    walk = SteeredWalk(agent, "novice", settings, seed=0)
    assert walk.describe()["motions"] == ["walk", "stand", "march"]
    walk.send(Command(motion="march"))
    walk.run(lambda: True, 4)
    state = walk.env._state
    assert [int(state[name]) for name in ("previous", "motion")] == [0, 2]
    assert float(state["blend"]) == pytest.approx(4 / 80)
    assert float(state["desired"]) == pytest.approx(0.9, abs=1e-3)  # the middle of marching, 0.72 to 1.08 m/s
    walk.send(Command(speed=5.0))
    walk.run(lambda: True, 6)
    assert float(state["desired"]) == pytest.approx(1.08, abs=1e-3)
    found = walk.next_frame(-1, 0.0)
    assert found is not None
    assert json.loads(found[1])["motion"] == "march"
    with pytest.raises(UnknownNameError, match="did you mean 'march'"):
        walk.send(Command(motion="marsh"))
    walk.close()
