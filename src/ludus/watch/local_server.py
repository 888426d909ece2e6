"""A small web server on this machine for one page: who may ask it, and how it answers.

It is the standard library's: a few addresses and a stream per page need no framework, so that pages work with the core
alone, and every check is in this file:

- Only GET, unless a subclass of the handler answers more. Only a POST has a body; its length is known and bounded.
- A request has a few seconds to arrive as a whole, and few, short lines. Connections are few, in all and per address;
  the one whose time is up first makes room for a new one, so slow ones keep nobody away.
- The Host header must name this server: a web page whose domain was pointed at this machine (DNS rebinding) is refused.
- A request that another web page made (Origin, Sec-Fetch-Site) is refused.
- Bound to anything but the loopback interface, the server asks for a random token. It comes with the first address and
  stays in a cookie that scripts cannot read.
- The content policy allows our own script and style alone. Whatever comes from others is JSON, shown as text.
"""

import contextlib
import hmac
import io
import ipaddress
import logging
import math
import os
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ludus.core.errors import ConfigError
from ludus.core.text import blame

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_REQUEST_S = 5.0  # for a whole request to arrive, from the end of the one before
_ANSWER_S = 30.0  # for an answer to be taken; of a stream, for each event
_LONGEST_QUERY = 2000
_MOST_HEAD_BYTES = 16 << 10  # request line and headers; browsers send about 1 kB
_MOST_LINES = 64
_REQUEST_LINE = re.compile(rb"[A-Z]+ [!-~]+ HTTP/1\.[01]\r?\n")
_HEADER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0\r\n]*\r?\n")
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


@dataclass(slots=True)
class _Connection:
    """A connection that is open."""

    peer: str  # address of the other side
    until_s: float  # when it is dropped; infinite while events are streamed


class LocalServer(ThreadingHTTPServer):
    """Serves one page, to this machine or to whoever has the token.

    Attributes:
        address: What to open in a browser, with the token if there is one.
        command: The command that printed the address, such as `ludus watch`.
        token: What strangers must know; empty if the server listens to this machine alone.
        cookie: Name of the cookie that holds it.
    """

    daemon_threads = True
    request_queue_size = 128
    block_on_close = False
    allow_reuse_address = os.name != "nt"  # there it would let two servers have one port

    def __init__(
        self,
        handler: "type[LocalHandler]",
        *,
        command: str,
        host: str = LOOPBACK,
        ports: Sequence[int] = (0,),
        most_connections: int = 96,
    ) -> None:
        """Bind the server; `serve_forever` then answers.

        Args:
            handler: Answers requests.
            command: The command that prints the address, such as `ludus watch`.
            host: Address to listen on.
            ports: Ports to try in order; 0 is any free one.
            most_connections: At the same time; half as many from one address.

        Raises:
            ConfigError: No port is free, or the address is not one of this machine.
        """
        self.command = command
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._most_connections = most_connections
        self._connections: dict[socket.socket, _Connection] = {}
        self._connections_lock = threading.Lock()
        self._pages = 0
        self._pages_lock = threading.Lock()
        self._page_closed_s = time.monotonic()
        self._bind(handler, host, ports)
        bound, number = str(self.server_address[0]), int(self.server_address[1])
        is_local = ipaddress.ip_address(bound).is_loopback  # what was bound counts, not what it was called
        self._names = {host.lower(), *_LOCAL_NAMES} | (set() if is_local else {socket.gethostname().lower()})
        self.token = "" if is_local else secrets.token_urlsafe(24)
        named = socket.gethostname() if ipaddress.ip_address(bound).is_unspecified else host
        shown = f"[{named}]" if ":" in named else named
        self.address = f"http://{shown}:{number}/" + (f"?token={self.token}" if self.token else "")
        self.cookie = f"{command.replace(' ', '-')}-{number}"

    def _bind(self, handler: "type[LocalHandler]", host: str, ports: Sequence[int]) -> None:
        for number in ports:
            try:
                super().__init__((host, number), handler)
            except OSError as error:
                problem = error.strerror or str(error)
                continue
            return
        if len(ports) > 1:
            raise ConfigError(
                f"no port from {ports[0]} to {ports[-1]} is free on {host} ({problem}); choose one with --port N"
            )
        raise ConfigError(
            f"cannot listen on {host}, port {ports[0]}: {problem}; choose another with --port, or leave it out"
        )

    @property
    def idle_s(self) -> float:
        """Seconds since the last page was closed; 0 while one is open."""
        with self._pages_lock:
            return 0.0 if self._pages else time.monotonic() - self._page_closed_s

    @contextlib.contextmanager
    def open_page(self, most: int) -> Iterator[bool]:
        """Count a page while it is open; yields False if `most` are open already."""
        with self._pages_lock:
            is_welcome = self._pages < most
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
        """Start a thread for a connection; if there are too many, the one whose time is up first makes room."""
        peer = str(client_address[0])
        with self._connections_lock:
            crowd = [each for each, known in self._connections.items() if known.peer == peer]
            if 2 * len(crowd) < self._most_connections:
                crowd = list(self._connections) if len(self._connections) >= self._most_connections else []
            first_out = min(crowd, key=lambda each: self._connections[each].until_s, default=None)
            is_welcome = first_out is None or self._connections[first_out].until_s < math.inf
            if is_welcome:
                self._connections[request] = _Connection(peer, time.monotonic() + _REQUEST_S)
                if first_out is not None:
                    self._drop(first_out)
        if is_welcome:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._connections_lock:
                self._connections.pop(request, None)

    def allow(self, connection: socket.socket, seconds: float) -> None:
        """Drop a connection after so many seconds from now, and not before."""
        with self._connections_lock:
            known = self._connections.get(connection)
            if known is not None:
                known.until_s = time.monotonic() + seconds

    def service_actions(self) -> None:
        """Drop the connections whose time is up; a timeout of the socket would begin anew with every byte."""
        now_s = time.monotonic()
        with self._connections_lock:
            for each in [each for each, known in self._connections.items() if known.until_s < now_s]:
                self._drop(each)

    def _drop(self, connection: socket.socket) -> None:
        """Wake the thread of a connection, whose reading or writing then ends."""
        del self._connections[connection]
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Ignore connections that break, since browsers close them at will; warn of anything else."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            logger.warning("[WARN] a request was not answered: %s", blame(error))


class LocalHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection; subclasses say with what, in `answer`."""

    server: LocalServer
    protocol_version = "HTTP/1.1"
    server_version = "Ludus"
    sys_version = ""
    timeout = _ANSWER_S
    default_request_version = request_version = "HTTP/1.1"  # of answers to what is no request
    requestline, raw_requestline = "", b""

    def handle_one_request(self) -> None:
        """Wait for a request and answer it."""
        self.server.allow(self.connection, _REQUEST_S)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Parse a request whose lines are few, short and as the standard has them; else refuse it.

        The base class overlooks what comes after a line that it does not understand, and the body of a GET request,
        which would be the next request.
        """
        lines, room = [self.raw_requestline], _MOST_HEAD_BYTES - len(self.raw_requestline)
        while lines[-1] not in (b"\r\n", b"\n"):
            if room <= 0 or len(lines) > _MOST_LINES:
                self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request has too many or too long headers")
                return False
            lines.append(self.rfile.readline(room))
            room -= len(lines[-1])
            if not lines[-1]:  # the connection has ended: what is left out could be what makes it unwelcome
                self.close_connection = True
                return False
        if not _REQUEST_LINE.fullmatch(lines[0]) or not all(map(_HEADER_LINE.fullmatch, lines[1:-1])):
            self.refuse(HTTPStatus.BAD_REQUEST, "this is no request")
            return False
        stream, self.rfile = self.rfile, io.BytesIO(b"".join(lines[1:]))
        try:
            is_parsed = super().parse_request()
        finally:
            self.rfile = stream
        if is_parsed and ("Transfer-Encoding" in self.headers or (self.command == "GET" and self._lengths())):
            self.refuse(HTTPStatus.BAD_REQUEST, "this request must not have a body")
            return False
        return is_parsed

    def handle_expect_100(self) -> bool:
        """Refuse a body that would be sent later."""
        self.send_error(HTTPStatus.EXPECTATION_FAILED)
        return False

    def _lengths(self) -> list[str]:
        return self.headers.get_all("Content-Length") or []

    def read_body(self, most: int) -> bytes | None:
        """Return the body of a POST request that passed all checks; refuse one of more bytes and return None."""
        lengths = self._lengths()
        if len(lengths) != 1 or not re.fullmatch("[0-9]{1,9}", lengths[0]) or int(lengths[0]) > most:
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have a length, of at most {most} bytes")
            return None
        body = self.rfile.read(int(lengths[0]))
        if len(body) < int(lengths[0]):
            self.close_connection = True
            return None
        self.server.allow(self.connection, _ANSWER_S)
        return body

    def do_GET(self) -> None:
        """Answer a request, after all checks."""
        found = self.checked()
        if found is not None:
            self.server.allow(self.connection, _ANSWER_S)
            self.answer(*found)

    def answer(self, path: str, query: Mapping[str, list[str]]) -> None:
        """Answer a GET request that passed all checks."""
        raise NotImplementedError

    def checked(self) -> tuple[str, Mapping[str, list[str]]] | None:
        """Return path and query of a request that passes all checks; else answer it and return None."""
        try:
            url = urlsplit(self.path)
        except ValueError:
            self.refuse(HTTPStatus.BAD_REQUEST, "this is no address")
            return None
        query = parse_qs(url.query) if len(url.query) <= _LONGEST_QUERY else {}
        return (url.path, query) if self._is_welcome(url.path, query) else None

    def _is_welcome(self, path: str, query: Mapping[str, list[str]]) -> bool:
        hosts = self.headers.get_all("Host") or []
        is_plain = self.path.startswith("/")  # a proxy would be asked for a whole address
        if len(hosts) != 1 or not is_plain or not self.server.is_host(hosts[0]):
            self.refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
            return False
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        is_visit = path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate"
        if (origin is not None and origin != f"http://{hosts[0]}") or (
            site not in ("none", "same-origin") and not is_visit
        ):
            self.refuse(HTTPStatus.FORBIDDEN, "another web page has made this request")
            return False
        if not self.server.token or self._is_same(self._cookie()):
            return True
        if path == "/" and self._is_same(first(query, "token")):
            # The token leaves the address, so that it stays in no history and on no screen.
            cookie = f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
            self.send(HTTPStatus.SEE_OTHER, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})
        else:
            text = f"open the address that `{self.server.command}` printed: it contains a token"
            self.refuse(HTTPStatus.UNAUTHORIZED, text)
        return False

    def _is_same(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.server.token.encode())

    def _cookie(self) -> str:
        cookies = (cookie.strip().partition("=") for cookie in self.headers.get("Cookie", "").split(";"))
        return next((value for name, _, value in cookies if name == self.server.cookie), "")

    def send(self, status: HTTPStatus, body: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        """Answer with a whole body of a content type, and `more` headers."""
        self.start(status, kind, {"Content-Length": str(len(body)), **(more or {})})
        self.end_headers()
        self.wfile.write(body)

    @contextlib.contextmanager
    def open_stream(self, most: int) -> Iterator[bool]:
        """Begin to stream events to a page, counted while it is open; refuse it and yield False if `most` are open."""
        with self.server.open_page(most) as is_welcome:
            if is_welcome:
                self.close_connection = True
                self.server.allow(self.connection, math.inf)
                self.start(HTTPStatus.OK, "text/event-stream", {"Connection": "close", "X-Accel-Buffering": "no"})
                self.end_headers()
            else:
                self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{most} pages are open already")
            yield is_welcome

    def refuse(self, status: HTTPStatus, text: str) -> None:
        """Answer with a line of text, and close the connection."""
        self.close_connection = True
        self.send(status, f"{text}\n".encode(), "text/plain; charset=utf-8", {"Connection": "close"})

    def start(self, status: HTTPStatus, kind: str, more: Mapping[str, str]) -> None:
        """Send the status and the headers of every answer, with `more`; the caller ends them."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_HEADERS, **more}.items():
            self.send_header(name, value)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a malformed request or another method, with the headers of every answer."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.refuse(status, status.phrase.lower())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Log nothing: requests are many, and their text is foreign."""


def first(query: Mapping[str, list[str]], name: str) -> str:
    """Return the first value of a name in a query; empty if there is none."""
    return query.get(name, [""])[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
