"""The example guide `openai` against a server on this machine that answers well, hangs, lies, and returns nonsense."""

import base64
import csv
import json
import logging
import math
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.city_guide import guide_report
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file
from examples import openai_guide
from examples.openai_guide import HOUR_S, KEY_VARIABLE, MODEL_VARIABLE, URL_VARIABLE, Endpoint, OpenAIGuide

from ludus.core.errors import ConfigError, GuideError, NoAdviceError
from ludus.core.intervals import t_quantile, wilson_interval
from ludus.core.tables import Table
from ludus.envs.world_parts import metrics_of
from ludus.evaluation.results import ratio_estimate
from ludus.reports.run_data import read_run
from ludus.rewards.step_info import StepInfo
from ludus.training import train
from ludus.training.presets import load_run_config
from ludus.worlds.city.actions import ActionKind
from ludus.worlds.city.backend import Seen
from ludus.worlds.city.guide import CAUSES, GuideTracker, Scene
from ludus.worlds.city.perception.pictures import opencv
from ludus.worlds.city.tracker import EVENTS

KEY = "-".join(["nobody", "may", "read", "this"])
GOOD = {"weights": {"residential": 4, "road": 1.0}, "confidence": 0.5, "hint": "build\n homes"}
Answer = Callable[["Handler"], None]


def completion(said: Any) -> bytes:
    """What a server returns when its model says something: text as it is, anything else as JSON."""
    text = said if isinstance(said, str) else json.dumps(said)
    return json.dumps(
        {"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
    ).encode()


class Server(ThreadingHTTPServer):
    """Answers as a test wants, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.answer: Answer = says(GOOD)
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), json.loads(body)))
        self.server.answer(self)

    def reply(self, body: bytes, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def says(said: Any) -> Answer:
    return lambda handler: handler.reply(completion(said))


def sends(body: bytes, status: int = 200, length: int | None = None) -> Answer:
    return lambda handler: handler.reply(body, status, length)


def hangs(handler: Handler) -> None:
    handler.server.ended.wait(60)


def closes(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def dribbles(head: bytes) -> Answer:
    """Sends something, and then one byte after the other for longer than any test runs."""

    def answer(handler: Handler) -> None:
        try:
            handler.wfile.write(head)
            while not handler.server.ended.wait(0.02):
                handler.wfile.write(b"x")
        except OSError:  # the guide has hung up
            pass

    return answer


def redirects(handler: Handler) -> None:
    handler.reply(b"", 302, Location=f"{handler.server.url}/elsewhere")


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    running.asked.clear()
    running.answer = says(GOOD)
    monkeypatch.setenv(URL_VARIABLE, running.url)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv(MODEL_VARIABLE, "eye")
    openai_guide.shared_guide.cache_clear()  # a fresh budget for every test
    return running


def scene(number: int = 0) -> Scene:
    """A picture of 4 x 6 pixels in which one depends on the number."""
    picture = np.arange(72, dtype=np.uint8).reshape(4, 6, 3)
    picture[0, 0] = (number, 0, 200)
    funds, people = Seen("funds", "money", 20_000.0, 1.0, 0), Seen("population", "number", None, 0.0, 3)
    homes = ActionKind("residential", "build", uses_cell=True, least_cost=100.0, most_cost=400.0)
    kinds = (ActionKind("wait", "wait"), homes, ActionKind("road", "build"))
    return Scene(picture, {"funds": funds, "population": people}, kinds, step=7)


def guide_of(server: Server, calls_per_hour: int = 100, timeout_s: float = 30.0) -> OpenAIGuide:
    assert server.url
    return OpenAIGuide(Endpoint.from_environment(allow_remote=False), "eye", timeout_s, calls_per_hour)


def cause_of(guide: OpenAIGuide, number: int = 0) -> tuple[str, str]:
    with pytest.raises(NoAdviceError) as raised:
        guide.advise(scene(number))
    return raised.value.cause, str(raised.value)


def test_the_model_gets_the_picture_the_readings_and_the_kinds(server: Server) -> None:
    advice = guide_of(server).advise(scene())
    assert (advice.weights, advice.confidence, advice.hint) == ({"residential": 4.0, "road": 1.0}, 0.5, "build homes")
    ((path, headers, body),) = server.asked
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (body["model"], body["temperature"], body["response_format"]) == ("eye", 0, {"type": "json_object"})
    text, image = body["messages"][0]["content"]
    assert "- funds: $20,000\n- population: unreadable\n" in text["text"]
    assert "- wait\n- residential (costs $100 or more)\n- road\n" in text["text"]
    kind, _, encoded = image["image_url"]["url"].partition(",")
    assert kind == "data:image/png;base64"
    seen = opencv("reading pictures").imdecode(np.frombuffer(base64.b64decode(encoded), np.uint8), 1)
    assert np.array_equal(seen[:, :, ::-1], scene().picture)  # OpenCV has blue first


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (says({"weights": {"castle": 1.0}, "confidence": 1.0}), "advice"),
        (says({"weights": {"road": -1.0}, "confidence": 1.0}), "advice"),
        (says({"weights": {"road": True}, "confidence": 1.0}), "advice"),
        (says({"weights": {"road": "1"}, "confidence": 1.0}), "advice"),
        (says({"weights": {"road": 10**400}, "confidence": 1.0}), "advice"),
        (says('{"weights": {"road": NaN}, "confidence": 1.0}'), "advice"),
        (says('{"weights": {"road": 1e999}, "confidence": 1.0}'), "advice"),
        (says('{"weights": {"road": 1, "road": 2}, "confidence": 1.0}'), "advice"),
        (says({"weights": {"road": 1.0}, "confidence": 1.5}), "advice"),
        (says({"weights": {"road": 1.0}}), "advice"),
        (says({"weights": ["road"], "confidence": 1.0}), "advice"),
        (says("Build a road!"), "advice"),
        (says(""), "advice"),
        (says("[" * 5_000), "advice"),
        (says('"\ud800"'), "advice"),
        (sends(b"<!doctype html><title>It works</title>"), "answer"),
        (sends(b""), "answer"),
        (sends(b"\xff\xfe"), "answer"),
        (sends(b"[]"), "answer"),
        (sends(b'{"choices": []}'), "answer"),
        (sends(b'{"choices": [{"message": {"content": null}}]}'), "answer"),
        (sends(b" " * (1 << 20)), "answer"),
        (dribbles(b"SSH-2.0-server\r\n"), "answer"),
        (sends(b"no such model", 404), "status"),
        (sends(completion(GOOD), 500), "status"),
        (redirects, "status"),
        (closes, "connection"),
        (sends(completion(GOOD)[:40], 200, 4_000), "connection"),
    ],
)  # fmt: skip
def test_lies_and_nonsense_are_no_advice(server: Server, answer: Answer, cause: str) -> None:
    guide = guide_of(server)
    guide.advise(scene(1))
    server.answer = answer
    found, said = cause_of(guide)
    assert found == cause, said
    assert (len(server.asked), server.asked[1][0]) == (2, "/v1/chat/completions")  # no redirect is followed
    server.answer = says(GOOD)
    assert not guide.advise(scene()).is_cached  # what was wrong is not kept


@pytest.mark.parametrize(
    "answer",
    [hangs, dribbles(b"HTTP/1.1 200 OK\r\nX-A: "), dribbles(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")],
    ids=["hangs", "dribbles headers", "dribbles a body"],
)
def test_an_answer_has_one_deadline(server: Server, answer: Answer) -> None:
    """Without it these answers take longer than the limit of a test."""
    server.answer = answer
    assert cause_of(guide_of(server, timeout_s=0.2))[0] == "timeout"


def test_a_server_that_never_worked_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = guide_of(server)
    server.answer = sends(b"no such model", 404)
    with pytest.raises(GuideError, match=rf"404.*{URL_VARIABLE}") as refused:
        guide.advise(scene())
    assert not isinstance(refused.value, NoAdviceError)
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(URL_VARIABLE, f"http://localhost:{taken.getsockname()[1]}")
        with pytest.raises(GuideError, match=r"no connection to 127\.0\.0\.1:"):
            guide_of(server).advise(scene())


def test_a_key_that_the_server_sends_back_is_not_repeated(server: Server) -> None:
    guide = guide_of(server)
    server.answer = says({"weights": {KEY: 1.0}, "confidence": 1.0})
    cause, said = cause_of(guide)
    assert cause == "advice"
    assert "[key]" in said
    server.answer = says(GOOD | {"hint": f"\x1b[2J {KEY}"})
    assert guide.advise(scene()).hint == "\\x1b[2J [key]"
    assert KEY not in said + repr(Endpoint.from_environment(allow_remote=False))


def test_equal_scenes_are_asked_about_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_guide, "MOST_CACHED", 2)
    guide = guide_of(server)
    found = [guide.advise(scene(number)).is_cached for number in (1, 1, 2, 1, 3, 1, 2)]
    assert found == [False, True, False, True, False, True, False]  # 3 replaces 2, which was used longest ago
    assert len(server.asked) == 4


def test_no_more_than_the_budget_is_spent_in_any_hour(server: Server) -> None:
    now = [0.0]
    guide = OpenAIGuide(Endpoint.from_environment(allow_remote=False), "eye", 30.0, 2, lambda: now[0])
    guide.advise(scene(1))
    now[0] = 1_000.0
    server.answer = says("nonsense")
    assert cause_of(guide, 2)[0] == "advice"  # costs a call as well
    server.answer = says(GOOD)
    now[0] = HOUR_S - 1.0
    assert cause_of(guide, 3)[0] == "budget"
    assert guide.advise(scene(1)).is_cached  # costs nothing
    now[0] = HOUR_S
    guide.advise(scene(3))
    assert cause_of(guide, 4)[0] == "budget"
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("", "", f"needs.*{URL_VARIABLE}"),
        ("127.0.0.1:8080", "", "http://127.0.0.1"),
        ("file:///v1", "", "http://127.0.0.1"),
        ("http://127.0.0.1:port/v1", "", "http://127.0.0.1"),
        ("http://[::1/v1", "", "http://127.0.0.1"),
        ("http://127.0.0.1/v1\nX-A: b", "", "http://127.0.0.1"),
        (f"http://me:{KEY}@127.0.0.1/v1", "", KEY_VARIABLE),
        (f"http://127.0.0.1/v1?key={KEY}", "", KEY_VARIABLE),
        ("http://127.0.0.1/v1", f"{KEY}\r\nX-A: b", KEY_VARIABLE),
        ("https://192.0.2.1/v1", KEY, "ALLOW_REMOTE"),
        ("http://example.com/v1", "", "ALLOW_REMOTE"),
        ("http://127.0.0.1.example.com/v1", "", "ALLOW_REMOTE"),
    ],
)
def test_addresses_that_cannot_be_used(url: str, key: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL_VARIABLE, url)
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(ConfigError, match=said) as refused:
        Endpoint.from_environment(allow_remote=False)
    assert KEY not in str(refused.value)


def test_another_machine_needs_leave_and_gets_a_key_only_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv(URL_VARIABLE, "https://192.0.2.1/v1/")
    assert Endpoint.from_environment(allow_remote=True) == Endpoint(
        "192.0.2.1", None, "/v1/chat/completions", True, KEY
    )
    monkeypatch.setenv(URL_VARIABLE, "http://192.0.2.1/v1")
    with pytest.raises(ConfigError, match="https"):
        Endpoint.from_environment(allow_remote=True)
    for host in ("localhost", "127.0.0.1", "127.8.0.1", "[::1]"):
        monkeypatch.setenv(URL_VARIABLE, f"http://{host}:11434/v1")
        assert Endpoint.from_environment(allow_remote=False).port == 11434


@pytest.mark.parametrize("key", ["url", "model", "timeout_s", "calls_per_hour", "allow_remote"])
def test_settings_name_no_address_and_no_limit(server: Server, key: str) -> None:
    """Settings come with the files of strangers: what they say never chooses whom a picture is sent to."""
    with pytest.raises(ConfigError, match=key):
        World(guide={"name": "openai", key: server.url})
    assert server.asked == []


def test_the_game_goes_on_and_every_cause_is_counted(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_guide, "TIMEOUT_S", 1.5)
    monkeypatch.setattr(openai_guide, "CALLS_PER_HOUR", 6)
    guide = {"name": "openai", "every": 1}
    with caplog.at_level(logging.WARNING):
        world = World(guide=guide, rules={"events": False})
        result = world.do("residential", 5, 5)
        assert world.event(result, "guide_asked") == 2.0  # at the start of the city, and now
        assert (world.event(result, "guide_followed"), world.event(result, "guided")) == (1.0, 0.5)
        answers = {"advice": says("?"), "status": sends(b"", 503), "answer": sends(b"<html>"), "timeout": hangs}
        for number, (cause, answer) in enumerate(answers.items()):
            server.answer = answer
            result = world.do("wait")
            counted = {name: world.event(result, f"guide_no_{name}") for name in CAUSES}
            assert counted == dict.fromkeys(CAUSES, 0.0) | {cause: 1.0}
            assert world.event(result, "guide_failed") == 1.0
            assert world.event(result, "guide_ignored") == (1.0 if number == 0 else 0.0)  # later there is no advice
            assert not world.seen["advice"].any()
        server.answer = says(GOOD)
        result = world.do("wait")
    assert (world.event(result, "guide_no_budget"), world.event(result, "guide_failed")) == (1.0, 0.0)
    assert len(server.asked) == 6
    assert len(caplog.records) == 5  # each cause is logged once
    assert KEY not in caplog.text
    again = World(guide=guide)  # shares budget and cache: the first picture is known, though no call is left
    assert again.event(again.do("wait"), "guide_cached") == 1.0
    assert len(server.asked) == 6


@pytest.mark.usefixtures("server")
def test_a_decision_follows_the_most_advised_kind_until_the_next_question() -> None:
    world = World(guide={"name": "openai", "every": 3})
    names = ("guide_followed", "guide_ignored", "guide_following", "guide_ignoring")
    seen = []
    for kind in ("road", "residential", "wait", "residential", "road", "wait"):
        result = world.do(kind, 5, 5)
        seen.append(tuple(world.event(result, name) for name in names))
    assert seen == [(0, 1, 0, 1), (0, 0, 0, 1), (0, 0, 0, 1), (1, 0, 1, 0), (0, 0, 1, 0), (0, 0, 1, 0)]
    kept = world.env.snapshot()
    assert kept["city-v1/guide_follows"].tolist() == [1]


def test_what_followed_advice_was_worth_is_computed_from_totals() -> None:
    metrics = metrics_of("city")
    events = dict.fromkeys((*EVENTS, *GuideTracker.events), torch.zeros(1, 1))
    sums = {name: np.zeros(3) for name in metrics.per_step(StepInfo(events, {}, 1.0))}
    sums |= {
        "guide_asked": np.array([4.0, 4.0, 4.0]),
        "guide_cached": np.array([1.0, 0.0, 0.0]),
        "guide_failed": np.array([1.0, 0.0, 0.0]),
        "guide_no_budget": np.array([0.0, 2.0, 0.0]),
        "guide_followed": np.array([2.0, 1.0, 0.0]),
        "guide_ignored": np.array([1.0, 1.0, 4.0]),
        "people_followed": np.array([30.0, 30.0, 0.0]),
        "people_ignored": np.array([5.0, -5.0, 12.0]),
    }
    numbers = metrics.per_episode(sums, np.array([100, 100, 100]), 1.0)
    assert numbers["guide_answers"].tolist() == [3.0, 2.0, 4.0]
    assert numbers["guide_gain_followed"].tolist() == [15.0, 30.0, 0.0]
    summary = metrics.summarise(numbers)
    assert summary["guide_followed_share"] == pytest.approx(3 / 9)
    assert (summary["guide_gain_followed"], summary["guide_gain_ignored"]) == (60 / 3, 12 / 6)
    # Residuals 30 - 20*2, 30 - 20*1, 0 over a mean of one: -10, 10, 0, whose deviation is 10.
    estimate = ratio_estimate(numbers["guide_people_followed"], numbers["guide_followed"])
    assert estimate.value == 20.0
    assert estimate.deviation == pytest.approx(10.0)
    report = guide_report(Table({name: values.tolist() for name, values in numbers.items()} | {"episodes": [1, 1, 1]}))
    assert report["gain_followed"] == pytest.approx((20.0, *estimate.interval()))
    # Of what was ignored 2 a time: 5 - 2, -5 - 2, 12 - 8 over a mean of two. The difference: -11.5, 13.5, -2 around 18.
    error = float(np.std([-11.5, 13.5, -2.0], ddof=1)) / math.sqrt(3)
    margin = t_quantile(0.975, 2) * error
    assert report["difference"] == pytest.approx((18.0, 18.0 - margin, 18.0 + margin))
    assert report["counts"]["guide_answers"] == 9.0
    assert report["followed_share"] == wilson_interval(3, 9)


@pytest.mark.usefixtures("server")
def test_a_run_keeps_the_report_and_not_the_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    changes = [
        "world.settings.guide={name: openai, every: 5}",
        "world.settings.steps=8",
        "world.num_envs=2",
        "total_env_steps=32",
        "evaluation=null",
        "ppo.n_minibatches=1",
    ]
    with caplog.at_level(logging.DEBUG):
        train(load_run_config("city", "debug", overrides=changes), tmp_path / "run")
    with (tmp_path / "run" / "behavior_metrics.csv").open() as file:
        row = next(csv.DictReader(file))
    assert (float(row["guide_questions"]), float(row["guide_answers"])) == (2.0, 2.0)  # at the start, and after 5 of 8
    assert 0.0 <= float(row["guide_followed_share"]) <= 1.0
    found = guide_report(read_run(tmp_path / "run").episode_metrics)
    assert found["counts"]["guide_questions"] == 2.0 * 4  # two in each of four cities
    assert found["counts"]["guide_no_timeout"] == 0.0
    assert found["followed_share"] is not None
    assert 0.0 <= found["followed_share"].low < found["followed_share"].high <= 1.0
    # All cities ended in one iteration: nothing is known of the spread.
    gains = [gain for gain in (found["gain_followed"], found["gain_ignored"]) if gain is not None]
    assert [gain.high for gain in gains] == [math.inf] * len(gains)
    assert gains
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in caplog.text
