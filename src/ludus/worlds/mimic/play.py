"""`ludus play mimic`: a person steers and pushes a walker in a browser, while its agent keeps it on its feet.

The walker lives in this process: MuJoCo advances it and the agent decides, in real time on the CPU. The page draws it
and sends commands; see `play.js`.
"""

import contextlib
import json
import select
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from importlib import resources
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.display import read_scripts
from ludus.evaluation.display import display_settings, shown_settings
from ludus.evaluation.players import load_agent, short_name
from ludus.policies.shipped import agent_names
from ludus.reports.page.document import read_asset
from ludus.watch.local_server import LOOPBACK, LocalHandler, LocalServer
from ludus.worlds.mimic.live_walk import Command, SteeredWalk

WORLD_ID = "mimic-v1"
PORT = 8733  # by default; the next free one if it is taken
TRIED_PORTS = 20
_MOST_PAGES = 8
_MOST_COMMAND_BYTES = 1000
_BEAT_S = 5.0
_SETTINGS: Mapping[str, Any] = MappingProxyType({"starts": "fixed", "start_noise": 0.0, "episode_s": 3600.0})
_USED = ("AGENT", "--host", "--port", "--no-browser")  # options of `ludus play`


class PlayServer(LocalServer):
    """Serves the page of a walker, its frames as a stream, and takes commands as JSON."""

    def __init__(self, walk: SteeredWalk, *, host: str = LOOPBACK, port: int | None = None) -> None:
        """Bind the server; see `LocalServer`. `port` is 0 for any free one, None for the first free from `PORT` on."""
        self.walk, self.assets = walk, _assets()
        ports = range(PORT, PORT + TRIED_PORTS) if port is None else (port,)
        super().__init__(_Handler, command="ludus play mimic", host=host, ports=ports)


class _Handler(LocalHandler):
    """Answers the requests of one connection."""

    server: PlayServer

    def answer(self, path: str, query: Mapping[str, list[str]]) -> None:
        """Answer a GET request; see `LocalHandler.answer`."""
        if path == "/events":
            self._stream()
        elif path in self.server.assets:
            kind, content = self.server.assets[path]
            self.send(HTTPStatus.OK, content, kind)
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def do_POST(self) -> None:  # noqa: N802 - as in the base class
        """Take a command. Its type makes a browser ask first, and be refused, before another page could send one."""
        found = self.checked()
        if found is None:
            return
        if found[0] != "/command":
            self.refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        if self.headers.get_content_type() != "application/json":
            self.refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a command is application/json")
            return
        body = self.read_body(_MOST_COMMAND_BYTES)
        if body is None:
            return
        try:
            command = Command.model_validate_json(body)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the command"
            self.refuse(HTTPStatus.BAD_REQUEST, f"{place}: {first['msg']}")
            return
        try:
            self.server.walk.send(command)
        except UnknownNameError as error:
            self.refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        self.send(HTTPStatus.NO_CONTENT, b"", "text/plain")

    def _stream(self) -> None:
        """Send frames until the page is closed."""
        walk = self.server.walk
        with self.open_stream(_MOST_PAGES) as is_open:
            if not is_open:
                return
            self.wfile.write(f"retry: 1000\n\nevent: hello\ndata: {json.dumps(walk.describe())}\n\n".encode())
            number = -1
            # A page sends nothing after its request: whatever can be read is the end of the connection.
            while not select.select([self.connection], [], [], 0.0)[0]:
                found = walk.next_frame(number, _BEAT_S)
                number, text = (number, ": beat\n\n") if found is None else (found[0], f"data: {found[1]}\n\n")
                self.wfile.write(text.encode())
                self.wfile.flush()


def _assets() -> dict[str, tuple[str, bytes]]:
    """Return kind and content of everything that is served as it is, by address."""
    scripts = read_scripts([f"ludus.worlds.mimic:{name}.js" for name in ("player", "panel", "play")])
    script = f'"use strict";\n(() => {{\n{read_asset("elements.js")}\n{scripts}\n}})();\n'
    style = read_asset("page.css") + (resources.files("ludus.share") / "assets" / "page.css").read_text("utf-8")
    page = (resources.files("ludus.worlds.mimic") / "play.html").read_text("utf-8")
    return {
        "/": ("text/html; charset=utf-8", page.encode()),
        "/play.js": ("text/javascript; charset=utf-8", script.encode()),
        "/play.css": ("text/css; charset=utf-8", style.encode()),
    }


def default_agent() -> str:
    """Return the name of a shipped walker; raise ConfigError if there is none."""
    names = agent_names(WORLD_ID)
    if not names:
        raise ConfigError(
            "no walker comes with this package; train one with `ludus train mimic`, then `ludus play mimic runs/latest`"
        )
    return names[0]


def make_walk(agent: str | None, overrides: Sequence[str] = (), seed: int = 0) -> SteeredWalk:
    """Make the walk of an agent, by default of a shipped one.

    Raises:
        ConfigError: There is no such agent, or it is for another world.
    """
    name = agent or default_agent()
    loaded = load_agent(name)
    loaded.check_world_id(WORLD_ID)
    shown = shown_settings("mimic", loaded.stored)
    settings = display_settings("mimic", replace(shown, values={**shown.values, **_SETTINGS}), words=overrides)
    return SteeredWalk(loaded, short_name(name), settings, seed)


def play_in_browser(*, seed: int, overrides: Sequence[str], frames: int | None, options: Mapping[str, Any]) -> None:
    """Steer a walker in a browser; see `ludus.envs.display.Play`."""
    from ludus.cli.console import print_ok, print_warning
    from ludus.cli.watch import end_with_signals, open_browser

    given = [name for name, value in options.items() if name not in _USED and value is not None and value is not False]
    if given:
        raise ConfigError(f"{', '.join(given)} means nothing in mimic, whose walker walks alone; leave it out")
    walk = make_walk(options["AGENT"], overrides, seed)
    with (
        contextlib.closing(walk),
        PlayServer(walk, host=options["--host"] or LOOPBACK, port=options["--port"]) as server,
    ):
        end_with_signals()
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        print_ok(f"steer {walk.name} at {server.address}; Ctrl-C ends it")
        if server.token:
            print_warning("whoever has this address can steer the walker; the connection is not encrypted")
        sys.stdout.flush()
        if not options["--no-browser"]:
            open_browser(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            walk.run(lambda: frames is not None or server.idle_s == 0.0, frames)
        server.shutdown()
        print_ok(walk.summarise())
