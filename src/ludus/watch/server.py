"""The web server of the live page: one page, its script and style, a stream of changes, and the last match.

It is the standard library's: five addresses and a stream per page need no framework, so `ludus watch` works with the
core alone, and every check is in this file:

- Only GET. Runs are named by ids that the catalogue gave out: no address contains a path.
- The Host header must name this server: a web page whose domain was pointed at this machine (DNS rebinding) is refused.
- A request that another web page made (Origin, Sec-Fetch-Site) is refused.
- Bound to anything but the loopback interface, the server asks for a random token. It comes with the first address and
  stays in a cookie that scripts cannot read.
- The content policy allows our own script and style alone. Whatever comes from runs is JSON, shown as text.
"""

import contextlib
import hashlib
import hmac
import ipaddress
import json
import logging
import os
import secrets
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ludus.core import __version__
from ludus.core.errors import ConfigError
from ludus.core.files import JSON
from ludus.core.text import blame
from ludus.reports.page.document import read_asset
from ludus.watch.documents import MOST_CHOSEN, Documents
from ludus.watch.matches import MatchMaker
from ludus.watch.runs import Catalogue

logger = logging.getLogger(__name__)

PORT = 8713  # by default; the next free one if it is taken
TRIED_PORTS = 20
LOOPBACK = "127.0.0.1"
LOOK_EVERY_S = 1.0
_BEAT_S = 15.0  # after which a silent stream sends a comment, to find out whether anybody is there
_TIMEOUT_S = 30.0  # for a request to arrive and for an answer to be taken
_MOST_PAGES = 32  # open at the same time
_MOST_CONNECTIONS = 96
_LONGEST_QUERY = 2000
_SCRIPTS = ("elements.js", "chart.js", "marks.js", "player.js", "sections.js")  # of the report
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)


class WatchServer(ThreadingHTTPServer):
    """Serves the live page of the runs below a folder.

    Attributes:
        address: What to open in a browser, with the token if there is one.
        catalogue: The runs.
    """

    daemon_threads = True
    request_queue_size = 128
    block_on_close = False
    allow_reuse_address = os.name != "nt"  # there it would let two servers have one port

    def __init__(
        self, root: Path, *, host: str = LOOPBACK, port: int | None = None, match_command: Sequence[str] | None = None
    ) -> None:
        """Bind the server; `serve_forever` then answers.

        Args:
            root: A run folder, or a folder with runs in it.
            host: Address to listen on.
            port: Port to listen on, 0 for any free one; None for the first free one from `PORT` on.
            match_command: Program that plays matches; see `MatchMaker`.

        Raises:
            ConfigError: The port is taken, or the address is not one of this machine.
        """
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._connections = threading.Semaphore(_MOST_CONNECTIONS)
        self._pages = 0
        self._pages_lock = threading.Lock()
        self._page_closed_s = time.monotonic()
        self.matches = MatchMaker(match_command)
        self._bind(host, port)
        number = int(self.server_address[1])
        is_local = _is_loopback(host)
        self._names = {*_LOCAL_NAMES} if is_local else {host.lower(), socket.gethostname().lower(), *_LOCAL_NAMES}
        self.token = "" if is_local else secrets.token_urlsafe(24)
        named = host if is_local or not _is_any(host) else socket.gethostname()
        shown = f"[{named}]" if ":" in named else named
        self.address = f"http://{shown}:{number}/" + (f"?token={self.token}" if self.token else "")
        self.cookie = f"ludus-watch-{number}"
        self.catalogue = Catalogue(root)
        self.documents = Documents(self.catalogue)
        self.assets = _assets()
        self.version = hashlib.sha256(repr(sorted(self.assets.items())).encode() + __version__.encode()).hexdigest()[
            :12
        ]

    def _bind(self, host: str, port: int | None) -> None:
        tried = range(PORT, PORT + TRIED_PORTS) if port is None else (port,)
        for number in tried:
            try:
                super().__init__((host, number), _Handler)
            except OSError as error:
                problem = error.strerror or str(error)
                continue
            return
        if port is None:
            last = PORT + TRIED_PORTS - 1
            raise ConfigError(f"no port from {PORT} to {last} is free on {host} ({problem}); choose one with --port N")
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {problem}; choose another with --port, or leave it out"
        )

    @property
    def idle_s(self) -> float:
        """Seconds since the last page was closed; 0 while one is open."""
        with self._pages_lock:
            return 0.0 if self._pages else time.monotonic() - self._page_closed_s

    @contextlib.contextmanager
    def open_page(self) -> Iterator[bool]:
        """Count a page while it is open; yields False if there are too many."""
        with self._pages_lock:
            is_welcome = self._pages < _MOST_PAGES
            self._pages += is_welcome
        try:
            yield is_welcome
        finally:
            with self._pages_lock:
                self._pages -= is_welcome
                self._page_closed_s = time.monotonic()

    def is_host(self, header: str) -> bool:
        """Return whether a Host header names this server.

        Bound to all interfaces, any literal address will do: only a name can be made to point here by others.
        """
        try:
            parts = urlsplit(f"//{header}")
            name, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        if parts.path or parts.query or parts.username is not None or port != self.server_address[1]:
            return False
        return name in self._names or (bool(self.token) and _is_address(name))

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in the base class
        """Start a thread for a connection, unless there are too many."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Ignore connections that break, since browsers close them at will; warn of anything else."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            logger.warning("[WARN] a request was not answered: %s", blame(error))

    def server_close(self) -> None:
        """Close the socket, and end the program that plays matches."""
        super().server_close()
        self.matches.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    server: WatchServer
    protocol_version = "HTTP/1.1"
    server_version = "Ludus"
    sys_version = ""
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """Answer a request, after all checks."""
        try:
            url = urlsplit(self.path)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no address")
            return
        query = parse_qs(url.query) if len(url.query) <= _LONGEST_QUERY else {}
        if not self._is_welcome(url.path, query):
            return
        if url.path == "/events":
            self._stream(query)
        elif url.path == "/match":
            self._send_match(_first(query, "run"))
        elif url.path == "/painter.js":
            self._send_painter(_first(query, "world"))
        elif url.path in self.server.assets:
            kind, content = self.server.assets[url.path]
            self._send(HTTPStatus.OK, content, kind)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _is_welcome(self, path: str, query: Mapping[str, list[str]]) -> bool:
        hosts = self.headers.get_all("Host") or []
        is_plain = self.path.startswith("/")  # a proxy would be asked for a whole address
        if len(hosts) != 1 or not is_plain or not self.server.is_host(hosts[0]):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
            return False
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        is_visit = path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate"
        if (origin is not None and origin != f"http://{hosts[0]}") or (
            site not in ("none", "same-origin") and not is_visit
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "another web page has made this request")
            return False
        if not self.server.token or self._is_same(self._cookie()):
            return True
        if path == "/" and self._is_same(_first(query, "token")):
            # The token leaves the address, so that it stays in no history and on no screen.
            cookie = f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
            self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})
        else:
            self._refuse(HTTPStatus.UNAUTHORIZED, "open the address that `ludus watch` printed: it contains a token")
        return False

    def _is_same(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _send_match(self, run_id: str) -> None:
        run = self.server.catalogue.find(run_id)
        match = None if run is None else self.server.matches.want(run)
        if match is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no match")
        else:
            self._send(HTTPStatus.OK, json.dumps(match.content).encode(), "application/json")

    def _send_painter(self, world: str) -> None:
        painter = self.server.matches.painter(world)
        if painter is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such script")
        else:
            self._send(HTTPStatus.OK, painter.encode(), "text/javascript; charset=utf-8")

    def _stream(self, query: Mapping[str, list[str]]) -> None:
        """Send what changes until the page is closed."""
        with self.server.open_page() as is_welcome:
            if not is_welcome:
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{_MOST_PAGES} pages are open already")
                return
            self.close_connection = True
            self._start(HTTPStatus.OK, "text/event-stream", {"Connection": "close", "X-Accel-Buffering": "no"})
            self.end_headers()
            stream = _Stream(self.server, query)
            silent_s = 0.0
            pause_s = 0.0
            # A page sends nothing after its request: whatever can be read is the end of the connection.
            while not select.select([self.connection], [], [], pause_s)[0]:
                started_s = time.monotonic()
                messages = stream.look()
                silent_s = 0.0 if messages else silent_s + LOOK_EVERY_S
                if silent_s >= _BEAT_S:
                    messages, silent_s = [": beat\n\n"], 0.0
                if messages:
                    self.wfile.write("".join(messages).encode())
                    self.wfile.flush()
                pause_s = max(LOOK_EVERY_S - (time.monotonic() - started_s), 0.2)

    def _send(self, status: HTTPStatus, body: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        self._start(status, kind, {"Content-Length": str(len(body)), **(more or {})})
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.close_connection = True
        self._send(status, f"{text}\n".encode(), "text/plain; charset=utf-8", {"Connection": "close"})

    def _start(self, status: HTTPStatus, kind: str, more: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_HEADERS, **more}.items():
            self.send_header(name, value)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a malformed request or another method, with the headers of every answer."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self._refuse(status, status.phrase.lower())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Log nothing: requests are many, and their text is foreign."""


class _Stream:
    """What one page was told, and what it is yet to be told."""

    def __init__(self, server: WatchServer, query: Mapping[str, list[str]]) -> None:
        self._server = server
        self._ids = tuple(dict.fromkeys(filter(None, _first(query, "runs").split(","))))[:MOST_CHOSEN]
        self._merged = _first(query, "merged") == "1"
        self._match_of = _first(query, "match")
        self._runs: dict[str, dict[str, JSON]] = {}
        self._gone: list[str] = []
        self._parts: dict[str, str] = {}
        self._match = -1
        self._is_new = True

    def look(self) -> list[str]:
        """Return the messages that are due."""
        server, messages = self._server, []
        if self._is_new:
            known = {"version": server.version, "folder": str(server.catalogue.root), "now_s": time.time()}
            messages += ["retry: 1000\n\n", _message("hello", json.dumps(known))]
        server.catalogue.refresh()
        messages += self._look_at_runs()
        if self._ids:
            parts = server.documents.make(self._ids, merged=self._merged)
            changed = {name: text for name, text in parts.items() if self._parts.get(name) != text}
            lost = [name for name in self._parts if name not in parts]
            if changed or lost:
                self._parts = dict(parts)
                body = ",".join(f"{json.dumps(name)}:{text}" for name, text in changed.items())
                messages.append(_message("document", f'{{"lost":{json.dumps(lost)},"parts":{{{body}}}}}'))
        run = server.catalogue.find(self._match_of) if self._match_of else None
        match = None if run is None else server.matches.want(run)
        if match is not None and match.number != self._match:
            self._match = match.number
            messages.append(_message("match", json.dumps({"run": self._match_of, "number": match.number})))
        server.matches.rest()
        self._is_new = False
        return messages

    def _look_at_runs(self) -> list[str]:
        catalogue = self._server.catalogue
        with catalogue.lock:
            now = {run.id: run.summary for run in catalogue.runs()}
            gone = list(catalogue.gone)
        changed = [summary for run_id, summary in now.items() if self._runs.get(run_id) != summary]
        lost = [run_id for run_id in self._runs if run_id not in now]
        if not (changed or lost or self._is_new or gone != self._gone):
            return []
        self._runs, self._gone = now, gone
        return [_message("runs", json.dumps({"all": self._is_new, "runs": changed, "lost": lost, "gone": gone}))]


def _message(event: str, text: str) -> str:
    return f"event: {event}\ndata: {text}\n\n"


def _first(query: Mapping[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]


def _assets() -> dict[str, tuple[str, bytes]]:
    """Return kind and content of everything that is served as it is, by address."""
    own = resources.files("ludus.watch") / "assets"
    text = {name: (own / name).read_text(encoding="utf-8") for name in ("watch.html", "watch.css", "watch.js")}
    # A plain script, whose names the painters of worlds see as they do in the report.
    script = '"use strict";\n' + "\n".join((*map(read_asset, _SCRIPTS), f"(() => {{\n{text['watch.js']}}})();\n"))
    return {
        "/": ("text/html; charset=utf-8", text["watch.html"].encode()),
        "/watch.js": ("text/javascript; charset=utf-8", script.encode()),
        "/watch.css": ("text/css; charset=utf-8", (read_asset("page.css") + text["watch.css"]).encode()),
    }


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
