"""The server under attack: other hosts and origins, methods, paths, tokens, and names of runs that are HTML."""

import http.client
import json
import math
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.watch.conftest import append, eventually

from ludus.core.errors import ConfigError
from ludus.watch import local_server
from ludus.watch import server as module
from ludus.watch.server import WatchServer

MakeRun = Callable[..., Path]
Serve = Callable[..., WatchServer]
Answer = tuple[int, Mapping[str, str], bytes]
HOSTILE = "<img src=x onerror=document.title=1>"
ADDRESSES = ("/", "/watch.js", "/watch.css", "/events", "/match?run=x", "/painter.js?world=brawl")


def port_of(server: WatchServer) -> int:
    return int(server.server_address[1])


def ask(server: WatchServer, path: str = "/", method: str = "GET", **headers: str) -> Answer:
    """Makes a request; headers replace those of a well-behaved browser: `Host="evil"`."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=10)
    given = {"Host": f"127.0.0.1:{port_of(server)}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.putrequest(method, path, skip_host=True)
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = b"" if "event-stream" in answer.headers.get("Content-Type", "") else answer.read()
    connection.close()
    return answer.status, dict(answer.headers), body


@contextmanager
def stream(server: WatchServer, query: str = "", **headers: str) -> Iterator[Callable[[], tuple[str, Any]]]:
    """Opens a stream; the function returns the next event and its document."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=20)
    connection.request("GET", f"/events?{query}", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200

    def following() -> tuple[str, Any]:
        event = ""
        while True:
            line = answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: "):
                return event, json.loads(line.removeprefix("data: "))

    try:
        yield following
    finally:
        answer.close()
        connection.close()


@pytest.fixture
def watched(make_run: MakeRun, serve: Serve, tmp_path: Path) -> WatchServer:
    make_run("runs/a")
    make_run("runs/b", seed=1)
    return serve(tmp_path / "runs")


def test_the_page_has_a_strict_policy_and_loads_only_itself(watched: WatchServer) -> None:
    status, headers, body = ask(watched)
    assert status == 200
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy == {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
                      "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
                      "frame-ancestors": "'none'"}  # fmt: skip
    for path in ADDRESSES:
        _, headers, _ = ask(watched, path)
        assert headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
        assert headers["Server"] == "Ludus "
    text = body.decode()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<script>" not in text


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "localhost.evil.example:{port}", "", "[::1",
     "a@127.0.0.1:{port}", "127.0.0.1:{port}/x", "192.168.0.1:{port}", "127.0.0.1:99999999"],
)  # fmt: skip
def test_another_host_is_refused(watched: WatchServer, path: str, host: str) -> None:
    status, _, body = ask(watched, path, Host=host.format(port=port_of(watched)))
    assert status == 421
    assert b"runs" not in body


@pytest.mark.parametrize("path", ["http://evil.example/", "http://127.0.0.1/", "http://[", "x", "*"])
def test_an_address_that_is_no_path_is_refused(watched: WatchServer, path: str) -> None:
    assert ask(watched, path)[0] in (400, 404, 421)


def test_two_hosts_or_none_are_refused(watched: WatchServer) -> None:
    good = f"Host: 127.0.0.1:{port_of(watched)}\r\n"
    for hosts in ("", good + "Host: evil.example\r\n", good + good):
        with socket.create_connection(("127.0.0.1", port_of(watched)), 10) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\n{hosts}\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("name", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_this_machine_has_several_names(watched: WatchServer, name: str) -> None:
    assert ask(watched, Host=name.format(port=port_of(watched)))[0] == 200


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://127.0.0.1:{port}"},
     {"Origin": "http://127.0.0.1:1"},
     {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"}],
)  # fmt: skip
def test_requests_of_other_web_pages_are_refused(watched: WatchServer, path: str, headers: dict[str, str]) -> None:
    given = {name: value.format(port=port_of(watched)) for name, value in headers.items()}
    assert ask(watched, path, **given)[0] == 403


def test_a_link_to_the_page_and_its_own_requests_are_welcome(watched: WatchServer) -> None:
    assert ask(watched, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    assert ask(watched, "/events", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 403
    own = f"http://127.0.0.1:{port_of(watched)}"
    assert ask(watched, "/watch.js", Origin=own, Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE", "CONNECT", "X"])
def test_only_get_is_answered(watched: WatchServer, method: str) -> None:
    status, headers, body = ask(watched, "/", method)
    assert status == 405
    assert headers["Content-Security-Policy"]
    assert b"<" not in body


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/../../etc/passwd", "/runs/a/run.json", "/%2e%2e/run.json", "//etc/passwd",
     "/watch.js/../watch.html", "/assets/watch.js", "/match?run=../a", "/match?run=%2Fetc%2Fpasswd",
     "/match?run=a/run.json", "/painter.js?world=../../etc/passwd", "/favicon.ico", "/a%00b", "/events/../etc"],
)  # fmt: skip
def test_no_address_reaches_a_file(watched: WatchServer, path: str) -> None:
    status, _, body = ask(watched, path)
    assert status == 404
    assert b"root:" not in body
    assert b"sessions" not in body


@pytest.mark.parametrize("ids", ["../a", "/etc", "..%2F..", "%00", "a" * 1900, ",,,", "a,b,c", "*"])
def test_only_ids_that_the_server_gave_out_name_runs(watched: WatchServer, ids: str) -> None:
    with stream(watched, f"runs={ids}&match={ids}") as following:
        assert [following()[0], following()[0]] == ["hello", "runs"]
    query = "runs=" + "x" * 5000
    with stream(watched, query) as following:  # too long: as if nothing were asked for
        assert following()[0] == "hello"


def test_the_stream_tells_what_changes_and_nothing_twice(watched: WatchServer, tmp_path: Path) -> None:
    with stream(watched) as following:
        event, hello = following()
        assert (event, hello["folder"]) == ("hello", str(tmp_path / "runs"))
        event, runs = following()
        assert (event, runs["all"], [run["name"] for run in runs["runs"]]) == ("runs", True, ["a", "b"])
    run_id = runs["runs"][0]["id"]
    with stream(watched, f"runs={run_id}") as following:
        assert [following()[0], following()[0]] == ["hello", "runs"]
        event, document = following()
        assert event == "document"
        assert document["parts"]["runs"][0]["name"] == "a"
        assert document["parts"]["panels/episode_return"]["curves"][0]["y"][-1] == 7
        append(tmp_path / "runs" / "a", 1, since=8)
        changed: dict[str, Any] = {}
        while "panels/episode_return" not in changed:
            event, news = following()
            changed |= news["parts"] if event == "document" else {}
        assert changed["panels/episode_return"]["curves"][0]["y"][-1] == 9
        assert "rewards" not in changed  # its file has not changed
        assert "settings" not in changed or changed["settings"] == document["parts"]["settings"]


def test_names_of_runs_travel_as_json(make_run: MakeRun, serve: Serve, tmp_path: Path) -> None:
    make_run(f"runs/{HOSTILE.replace('/', '')}\nevent: taken")
    server = serve(tmp_path / "runs")
    with stream(server) as following:
        following()
        _, runs = following()
    assert [run["name"] for run in runs["runs"]] == [f"{HOSTILE}\nevent: taken"]


def test_run_folders_are_never_written(watched: WatchServer, tmp_path: Path) -> None:
    def listing() -> list[tuple[str, int, int]]:
        return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*"))

    before = listing()
    with stream(watched, "runs=" + ",".join(run.id for run in _runs(watched))) as following:
        for _ in range(3):
            following()
    assert listing() == before


def _runs(server: WatchServer) -> Any:
    server.catalogue.refresh(at_once=True)
    return server.catalogue.runs()


def test_a_token_is_asked_for_when_others_can_connect(make_run: MakeRun, serve: Serve, tmp_path: Path) -> None:
    make_run("runs/a")
    server = serve(tmp_path / "runs", host="0.0.0.0")  # noqa: S104
    token = server.address.partition("?token=")[2]
    assert len(token) >= 32
    assert serve(tmp_path / "runs", host="0.0.0.0").token != token  # noqa: S104
    for path in ADDRESSES:
        assert ask(server, path)[0] == 401
        assert ask(server, path, Cookie=f"{server.cookie}=wrong")[0] == 401
        assert ask(server, path, Cookie="\x01;;=")[0] == 401
    for wrong in ("", "x", token[:-1], token + "x", token.swapcase()):
        assert ask(server, f"/?token={wrong}")[0] == 401
    assert ask(server, f"/events?token={token}")[0] == 401  # only the page itself takes it
    status, headers, _ = ask(server, f"/?token={token}")
    assert (status, headers["Location"]) == (303, "/")
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(attributes)
    for path in ("/", "/watch.js", "/events"):
        assert ask(server, path, Cookie=cookie)[0] == 200
    # Also there, a name that somebody else may own is refused, and an address of this machine is not.
    assert ask(server, Host=f"evil.example:{port_of(server)}", Cookie=cookie)[0] == 421
    assert ask(server, Host=f"192.168.0.7:{port_of(server)}", Cookie=cookie)[0] == 200
    assert ask(server, "/events", Cookie=cookie, Origin="http://evil.example")[0] == 403


def test_the_address_names_this_machine_and_loopback_needs_no_token(watched: WatchServer) -> None:
    assert watched.address == f"http://127.0.0.1:{port_of(watched)}/"
    assert watched.token == ""


def test_a_taken_port(watched: WatchServer, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = port_of(watched)
    with pytest.raises(ConfigError, match=rf"port {taken}.*--port"):
        WatchServer(tmp_path, port=taken)
    monkeypatch.setattr(module, "PORT", taken)
    assert taken < port_of(serve(tmp_path, port=None)) < taken + module.TRIED_PORTS
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1"):
        WatchServer(tmp_path, host="192.0.2.1")


def test_too_many_pages_and_connections_are_turned_away(watched: WatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PAGES", 1)
    with stream(watched) as following:
        following()
        assert watched.idle_s == 0.0
        assert ask(watched, "/events")[0] == 503
        assert ask(watched)[0] == 200
    eventually(lambda: watched.idle_s > 0.0)
    idle = [socket.create_connection(("127.0.0.1", port_of(watched)), 10) for _ in range(module._MOST_CONNECTIONS + 5)]
    eventually(lambda: sum(_is_closed(connection) for connection in idle) >= 5)
    for connection in idle:
        connection.close()
    eventually(lambda: _answers(watched))


def connect(server: WatchServer, text: str = "", source: str = "127.0.0.1") -> socket.socket:
    """Connects from an address, and sends some of a request; {host} stands for its Host header."""
    connection = socket.create_connection(("127.0.0.1", port_of(server)), 10, (source, 0))
    connection.sendall(text.replace("{host}", f"Host: 127.0.0.1:{port_of(server)}").encode("latin-1"))
    return connection


def answers(connection: socket.socket) -> list[bytes]:
    """Returns the first lines of all answers until the server closes the connection."""
    received = b""
    with connection:
        while part := connection.recv(65536):
            received += part
    return [part.partition(b"\r\n")[0] for part in received.split(b"HTTP/1.1 ")[1:]]


def test_slow_connections_make_room_for_others(watched: WatchServer) -> None:
    slow = [connect(watched, f"GET / HTTP/1.1\r\nX-{number}") for number in range(2 * module._MOST_CONNECTIONS)]
    for _ in range(10):
        assert ask(watched)[0] == 200
    with stream(watched) as following:
        assert following()[0] == "hello"
        slow += [connect(watched) for _ in range(2 * module._MOST_CONNECTIONS)]
        assert following()[0] == "runs"  # whose page is open stays
        eventually(lambda: len(watched._connections) <= module._MOST_CONNECTIONS // 2)
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("start", ["", "GET / HTTP/1.1\r\nX: ", "GET /"])
def test_a_request_has_a_time_limit_as_a_whole(
    watched: WatchServer, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "_REQUEST_S", 0.3)
    connection = connect(watched, start)

    def is_dropped_while_bytes_arrive() -> bool:
        try:
            connection.sendall(b"x" if start else b"")
        except OSError:
            return True
        return _is_closed(connection)

    eventually(is_dropped_while_bytes_arrive)
    connection.close()
    eventually(lambda: not watched._connections)


def test_an_answer_has_a_time_limit_and_a_stream_none(watched: WatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "_REQUEST_S", 0.2)
    monkeypatch.setattr(local_server, "_ANSWER_S", 0.2)
    watched.assets["/large"] = ("text/plain", bytes(64 << 20))  # more than the buffers of a connection
    connection = connect(watched, "GET /large HTTP/1.1\r\n{host}\r\n\r\n")
    eventually(lambda: watched._connections)
    eventually(lambda: not watched._connections)
    connection.close()
    with stream(watched) as following:
        following()
        [known] = watched._connections.values()
        assert known.until_s == math.inf
        time.sleep(0.5)
        assert following()[0] == "runs"
        assert watched._connections


@pytest.mark.skipif(sys.platform != "linux", reason="one loopback address alone")
def test_one_address_keeps_no_other_away(watched: WatchServer) -> None:
    mine = connect(watched)
    eventually(lambda: len(watched._connections) == 1)
    theirs = [connect(watched, source="127.0.0.2") for _ in range(module._MOST_CONNECTIONS)]
    eventually(lambda: sum(map(_is_closed, theirs)) == module._MOST_CONNECTIONS // 2)
    # Which half depends on when the threads of the connections begin to read.
    assert not _is_closed(mine)  # although it has waited longest
    for connection in (mine, *theirs):
        connection.close()


BODY = "GET /nothing HTTP/1.1\r\n{host}\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    ["Content-Length: 43", "Content-Length: 0", "content-length:43", "Content-Length: 43\r\nContent-Length: 0",
     "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "transfer-encoding: x\r\nContent-Length: 43",
     "Content-Length : 43", " Content-Length: 43", "X: 1\r\n Content-Length: 43", "broken\r\nContent-Length: 43",
     "X: a\rContent-Length: 43", "X: \0", ": x", "X\x85: y"],
)  # fmt: skip
def test_a_body_is_never_the_next_request(watched: WatchServer, headers: str) -> None:
    text = f"GET / HTTP/1.1\r\n{{host}}\r\n{headers}\r\n\r\n{BODY}"
    assert answers(connect(watched, text)) == [b"400 Bad Request"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("GET /\r\n{host}\r\n\r\n", b"400"),
        ("GET / HTTP/2.0\r\n{host}\r\n\r\n", b"400"),
        ("GET / HTTP/1.1 HTTP/1.1\r\n{host}\r\n\r\n", b"400"),
        ("get / HTTP/1.1\r\n{host}\r\n\r\n", b"400"),
        ("GET /\x85 HTTP/1.1\r\n{host}\r\n\r\n", b"400"),
        ("GET / HTTP/1.1\r\n{host}\r\nExpect: 100-continue\r\n\r\n", b"417"),
        ("GET / HTTP/1.1\r\n{host}\r\n" + "X: y\r\n" * 70 + "\r\n", b"431"),
        ("GET / HTTP/1.1\r\n{host}\r\nX: " + "y" * 20_000 + "\r\n\r\n", b"431"),
        ("GET /" + "y" * 20_000 + " HTTP/1.1\r\n{host}\r\n\r\n", b"431"),
        ("GET /" + "y" * 70_000 + " HTTP/1.1\r\n{host}\r\n\r\n", b"414"),
        ("\r\n", b"400"),
    ],
    ids=["0.9", "2.0", "twice", "lower", "latin", "expect", "many", "long", "path", "longer", "empty"],
)
def test_a_request_of_another_form_is_refused(watched: WatchServer, text: str, status: bytes) -> None:
    assert b"".join(answers(connect(watched, text)))[:3] == status


def test_requests_follow_each_other_on_one_connection(watched: WatchServer) -> None:
    text = "GET /watch.css HTTP/1.1\r\n{host}\r\n\r\n" * 3 + "GET /watch.css HTTP/1.0\r\n{host}\r\n\r\n" + BODY
    assert answers(connect(watched, text)) == [b"200 OK"] * 4


def test_a_request_that_ends_within_its_headers_is_not_answered(watched: WatchServer) -> None:
    connection = connect(watched, "GET / HTTP/1.1\r\n{host}\r\n")
    connection.shutdown(socket.SHUT_WR)
    assert answers(connection) == []


@pytest.mark.parametrize(
    ("host", "named", "has_token"),
    [("0.0.0.0", None, True), ("", None, True), ("0", None, True), ("127.0.0.1", "127.0.0.1", False),  # noqa: S104
     ("localhost", "localhost", False)],
)  # fmt: skip
def test_the_bound_address_decides_whether_a_token_is_asked_for(
    serve: Serve, tmp_path: Path, host: str, named: str | None, has_token: bool
) -> None:
    server = serve(tmp_path, host=host)
    shown = urlsplit(server.address)
    assert shown.hostname == (named or socket.gethostname().lower())
    assert bool(server.token) == bool(shown.query) == has_token
    status = ask(server, Host=f"{shown.hostname}:{port_of(server)}")[0]
    assert status == (401 if has_token else 200)


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _answers(server: WatchServer) -> bool:
    try:
        return ask(server)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_every_address_of_the_page_is_one_of_the_server(watched: WatchServer) -> None:
    script = ask(watched, "/watch.js")[2].decode()
    assert {urlsplit(part.split("`")[0].split("?")[0]).path for part in script.split("(`/")[1:]} == {"events", "match"}
    assert "innerHTML" not in script
    assert "eval(" not in script
    assert "insertAdjacentHTML" not in script
