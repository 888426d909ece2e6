"""The web server of the live page: one page, its script and style, a stream of changes, and the last match.

Who may ask, and how it answers, is in `local_server.py`. Runs are named by ids that the catalogue gave out: no address
contains a path. Only GET: the page changes nothing.
"""

import hashlib
import json
import select
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

from ludus.core import __version__
from ludus.core.files import JSON
from ludus.reports.page.document import SCRIPTS, read_asset, shown_document
from ludus.watch.documents import MOST_CHOSEN, Documents
from ludus.watch.local_server import LOOPBACK, LocalHandler, LocalServer, first
from ludus.watch.matches import MatchMaker
from ludus.watch.runs import Catalogue

PORT = 8713  # by default; the next free one if it is taken
TRIED_PORTS = 20
LOOK_EVERY_S = 1.0
_BEAT_S = 15.0  # after which a silent stream sends a comment, to find out whether anybody is there
_MOST_PAGES = 32  # open at the same time
_MOST_CONNECTIONS = 96


class WatchServer(LocalServer):
    """Serves the live page of the runs below a folder.

    Attributes:
        catalogue: The runs.
    """

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
        self.matches = MatchMaker(match_command)
        ports = range(PORT, PORT + TRIED_PORTS) if port is None else (port,)
        super().__init__(_Handler, command="ludus watch", host=host, ports=ports, most_connections=_MOST_CONNECTIONS)
        self.catalogue = Catalogue(root)
        self.documents = Documents(self.catalogue)
        self.assets = _assets()
        self.version = hashlib.sha256(repr(sorted(self.assets.items())).encode() + __version__.encode()).hexdigest()[
            :12
        ]

    def server_close(self) -> None:
        """Close the socket, and end the program that plays matches."""
        super().server_close()
        self.matches.close()


class _Handler(LocalHandler):
    """Answers the requests of one connection."""

    server: WatchServer

    def answer(self, path: str, query: Mapping[str, list[str]]) -> None:
        """Answer a GET request; see `LocalHandler.answer`."""
        if path == "/events":
            self._stream(query)
        elif path == "/match":
            self._send_match(first(query, "run"))
        elif path == "/painter.js":
            self._send_painter(first(query, "world"))
        elif path in self.server.assets:
            kind, content = self.server.assets[path]
            self.send(HTTPStatus.OK, content, kind)
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _send_match(self, run_id: str) -> None:
        run = self.server.catalogue.find(run_id)
        match = None if run is None else self.server.matches.want(run)
        if match is None:
            self.refuse(HTTPStatus.NOT_FOUND, "there is no match")
        else:
            content = json.dumps(shown_document(match.content))
            self.send(HTTPStatus.OK, content.encode(), "application/json")

    def _send_painter(self, world: str) -> None:
        painter = self.server.matches.painter(world)
        if painter is None:
            self.refuse(HTTPStatus.NOT_FOUND, "there is no such script")
        else:
            self.send(HTTPStatus.OK, painter.encode(), "text/javascript; charset=utf-8")

    def _stream(self, query: Mapping[str, list[str]]) -> None:
        """Send what changes until the page is closed."""
        with self.open_stream(_MOST_PAGES) as is_open:
            if not is_open:
                return
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


class _Stream:
    """What one page was told, and what it is yet to be told."""

    def __init__(self, server: WatchServer, query: Mapping[str, list[str]]) -> None:
        self._server = server
        self._ids = tuple(dict.fromkeys(filter(None, first(query, "runs").split(","))))[:MOST_CHOSEN]
        self._merged = first(query, "merged") == "1"
        self._match_of = first(query, "match")
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


def _assets() -> dict[str, tuple[str, bytes]]:
    """Return kind and content of everything that is served as it is, by address."""
    # A plain script, whose names the painters of worlds see as they do in the report.
    script = '"use strict";\n' + "\n".join((*map(read_asset, SCRIPTS), f"(() => {{\n{read_asset('live.js')}}})();\n"))
    return {
        "/": ("text/html; charset=utf-8", read_asset("live.html").encode()),
        "/watch.js": ("text/javascript; charset=utf-8", script.encode()),
        "/watch.css": ("text/css; charset=utf-8", (read_asset("page.css") + read_asset("live.css")).encode()),
    }
