"""Guide City by a vision-language model behind an OpenAI-compatible server, such as llama.cpp or Ollama.

    ludus train city --plugin examples/openai_guide.py world.settings.guide.name=openai rewards.weights.guided=0.01

Where the server is, its model and its key come from the environment alone. Settings travel in run folders, agents and
replays, and no file may open a connection, choose whom a picture is sent to, or name a secret to send. The key reaches
neither a run folder nor a log.

A server may hang, lie or return nonsense: its answer has one deadline and a bounded size, and is checked before it is
used; whatever is wrong with it is a `NoAdviceError` with its cause. Redirects and proxies are never followed.
"""

# %% What may be changed here
import base64
import contextlib
import hashlib
import http.client
import ipaddress
import json
import os
import re
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from ludus.core.errors import ConfigError, FormatError, GuideError, NoAdviceError
from ludus.core.text import plain_text
from ludus.store.documents import Limits, decode_document
from ludus.worlds.city.guide import BUDGET, Advice, Scene, check_advice, guide
from ludus.worlds.city.perception.pictures import png

TIMEOUT_S = 20.0  # in which the whole answer has to arrive
CALLS_PER_HOUR = 120  # most requests in any hour, of all environments of a process together
ALLOW_REMOTE = False  # whether the server may be on another machine, which then gets pictures of the game

URL_VARIABLE, KEY_VARIABLE, MODEL_VARIABLE = "LUDUS_GUIDE_URL", "LUDUS_GUIDE_KEY", "LUDUS_GUIDE_MODEL"
HOUR_S = 3600.0
MOST_CACHED = 512  # answers that are kept
_MOST_TOKENS = 400  # of an answer
_LONGEST_HINT = 200  # letters
_LIMITS = Limits(document_bytes=256 << 10, document_values=10_000, document_depth=16)
_EXAMPLE = "http://127.0.0.1:8080/v1"


# %% The server
@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where questions are posted."""

    host: str
    port: int | None
    path: str
    is_secure: bool  # https
    key: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, *, allow_remote: bool) -> "Endpoint":
        """Return the endpoint that the environment names.

        Raises:
            ConfigError: There is none, its address or key cannot be used, or it is on another machine and not allowed
                to be; the error quotes neither.
        """
        address, key = (os.environ.get(name, "").strip() for name in (URL_VARIABLE, KEY_VARIABLE))
        if not address:
            raise ConfigError(
                f"the guide openai needs the environment variable {URL_VARIABLE}: "
                f"the address of a server, such as {_EXAMPLE}"
            )
        try:
            parts = urlsplit(address)
            port, host = parts.port, parts.hostname
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https") or not re.fullmatch(r"[!-~]+", address):
            raise ConfigError(f"the environment variable {URL_VARIABLE} must hold an address such as {_EXAMPLE}")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ConfigError(f"{URL_VARIABLE} must have no password, `?` or `#`; a key belongs in {KEY_VARIABLE}")
        if not re.fullmatch(r"[!-~]*", key):
            raise ConfigError(f"the environment variable {KEY_VARIABLE} must hold printable ASCII without spaces")
        is_local, is_secure = _is_loopback(host), parts.scheme == "https"
        if not (is_local or allow_remote):
            raise ConfigError(
                f"{URL_VARIABLE} names another machine, which would get pictures of the game; use an address of this "
                f"one, such as {_EXAMPLE}, or set ALLOW_REMOTE in {__file__}"
            )
        if key and not (is_local or is_secure):
            raise ConfigError(f"{KEY_VARIABLE} would be sent to another machine unencrypted; use an https address")
        # Without a look-up: a name that is meant to be this machine cannot lead elsewhere.
        host = "127.0.0.1" if host == "localhost" else host
        return cls(host, port, f"{parts.path.rstrip('/')}/chat/completions", is_secure, key)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# %% The guide
class OpenAIGuide:
    """Asks one question at a time."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        timeout_s: float,
        calls_per_hour: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask a model for at most so many answers in any hour of `clock`."""
        self._endpoint, self._model, self._timeout_s = endpoint, model, timeout_s
        self._calls_per_hour, self._clock = calls_per_hour, clock
        self._calls: list[float] = []  # when requests of the last hour were made
        self._cache: OrderedDict[bytes, Advice] = OrderedDict()  # by the hash of the question, latest use last
        self._lock = threading.Lock()
        self._has_answered = False

    def advise(self, scene: Scene) -> Advice:
        """Return what the model advises, or what it advised when picture and readings were the same.

        Raises:
            NoAdviceError: There is no usable answer, or the budget is used up.
            GuideError: Nobody listens, or the server refuses the question, and it has never answered one.
        """
        question = self._question(scene)
        number = hashlib.sha256(question).digest()
        with self._lock:
            if number in self._cache:
                self._cache.move_to_end(number)
                return replace(self._cache[number], is_cached=True)
            self._spend()
            advice = self._read(self._ask(question), scene)
            self._cache[number] = advice
            if len(self._cache) > MOST_CACHED:
                self._cache.popitem(last=False)
            return advice

    def _question(self, scene: Scene) -> bytes:
        """Return the request's body; it depends on the picture, the readings and the kinds of action alone."""
        picture = base64.b64encode(png(scene.picture)).decode("ascii")
        content = [
            {"type": "text", "text": prompt(scene)},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
        ]
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": content}],
            "response_format": {"type": "json_object"},
            "temperature": 0,
            "max_tokens": _MOST_TOKENS,
            "stream": False,
        }
        return json.dumps(body).encode("ascii")

    def _spend(self) -> None:
        now = self._clock()
        self._calls = [called for called in self._calls if now - called < HOUR_S]
        if len(self._calls) >= self._calls_per_hour:
            raise NoAdviceError(BUDGET, f"its {self._calls_per_hour} calls per hour are used up")
        self._calls.append(now)

    def _ask(self, question: bytes) -> bytes:
        """Post a question and return the body of the answer."""
        try:
            status, body = _post(self._endpoint, question, self._timeout_s)
        except TimeoutError:
            raise NoAdviceError("timeout", f"{self._endpoint} gave no answer in {self._timeout_s:g} s") from None
        except (http.client.IncompleteRead, OSError) as error:  # their texts may quote the address
            raise self._refusal("connection", f"no connection to {self._endpoint} ({type(error).__name__})") from None
        except http.client.HTTPException as error:
            raise NoAdviceError("answer", f"{self._endpoint} does not speak HTTP ({type(error).__name__})") from None
        if status != http.client.OK:
            raise self._refusal("status", f"{self._endpoint} answered with HTTP status {status} instead of 200")
        self._has_answered = True
        return body

    def _refusal(self, cause: str, message: str) -> GuideError:
        """Return the error of a server that cannot be used; the run need not start with one that never could."""
        if self._has_answered:
            return NoAdviceError(cause, message)
        return GuideError(f"{message}; start the server, and check {URL_VARIABLE}, {KEY_VARIABLE} and {MODEL_VARIABLE}")

    def _read(self, body: bytes, scene: Scene) -> Advice:
        """Return the advice in an answer."""
        try:
            completion = _Completion.model_validate(decode_document(body, _LIMITS))
        except (FormatError, ValidationError) as error:
            raise NoAdviceError("answer", self._fault("no chat completion", error)) from None
        try:
            said = _Said.model_validate(decode_document(completion.content.encode(), _LIMITS))
            advice = Advice(said.weights, self._clean(said.hint), said.confidence)
            check_advice(advice, [kind.name for kind in scene.kinds])
        except (FormatError, ValidationError, GuideError, UnicodeEncodeError) as error:
            raise NoAdviceError("advice", self._fault("no valid advice", error)) from None
        return advice

    def _fault(self, what: str, error: Exception) -> str:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        else:
            why = str(error)
        return f"{self._endpoint} gave {what}: {self._clean(why)}"

    def _clean(self, text: str) -> str:
        """Return text of the server in one printable line of bounded length; a key that it sends back is left out."""
        safe = text.replace(self._endpoint.key, "[key]") if self._endpoint.key else text
        return plain_text(" ".join(safe.split()))[:_LONGEST_HINT]


@guide("openai")
@cache
def shared_guide() -> OpenAIGuide:
    """Return the guide: one per process, so that all environments share its budget and cache."""
    endpoint = Endpoint.from_environment(allow_remote=ALLOW_REMOTE)
    return OpenAIGuide(endpoint, os.environ.get(MODEL_VARIABLE, "default"), TIMEOUT_S, CALLS_PER_HOUR)


def prompt(scene: Scene) -> str:
    """Return the question in words: what can be done, what was read off the picture, and the form of the answer."""
    readings = "\n".join(f"- {name}: {seen.text}" for name, seen in scene.readings.items())
    kinds = "\n".join(
        f"- {kind.name}" + (f" (costs ${kind.least_cost:g} or more)" if kind.least_cost else "") for kind in scene.kinds
    )
    return (
        "You advise the mayor of a city in a city-building game. The picture is the game's window as it is now.\n"
        f"What was read off it:\n{readings}\nKinds of action:\n{kinds}\n"
        "Which kinds should the mayor choose next, so that the city grows and stays solvent? Answer with one JSON "
        'object and nothing else, in the form {"weights": {"KIND": NUMBER}, "confidence": NUMBER, "hint": "TEXT"}: for '
        "one to five of the kinds above, by their exact names, a weight above 0 that says how much you advise it; your "
        "confidence from 0 to 1; and one short sentence."
    )


class _Completion(BaseModel):
    """What is used of a chat completion."""

    model_config = ConfigDict(strict=True)
    content: Annotated[str, Field(validation_alias=AliasPath("choices", 0, "message", "content"))]


class _Said(BaseModel):
    """The form that the prompt asks for."""

    model_config = ConfigDict(strict=True)
    weights: dict[str, float]
    confidence: float
    hint: str = ""


def _post(endpoint: Endpoint, body: bytes, timeout_s: float) -> tuple[int, bytes]:
    """Post JSON and return status and body of the answer; raise TimeoutError if it is not there in time.

    Raises:
        OSError: The connection failed, or was closed before the answer ended.
        HTTPException: What came back is not HTTP.
    """
    kind = http.client.HTTPSConnection if endpoint.is_secure else http.client.HTTPConnection
    connection, is_late = kind(endpoint.host, endpoint.port, timeout=timeout_s), threading.Event()
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "Ludus/1"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    start_s = time.monotonic()
    connection.connect()
    with connection.sock as plain:

        def hang_up() -> None:
            is_late.set()
            with contextlib.suppress(OSError):  # it is closed already
                socket.socket.shutdown(plain, socket.SHUT_RDWR)  # wakes the reader; that of TLS breaks its state

        # A socket's timeout restarts with every byte, so a server that trickles its answer could block a game for good.
        timer = threading.Timer(start_s + timeout_s - time.monotonic(), hang_up)
        timer.start()
        try:
            connection.request("POST", endpoint.path, body, headers)
            answer = connection.getresponse()
            content = answer.read(_LIMITS.document_bytes + 1)  # one more than is accepted: more is never read
            if answer.length and len(content) <= _LIMITS.document_bytes:
                raise ConnectionError("the connection was closed early")
        except (OSError, http.client.HTTPException):
            if not is_late.is_set():
                raise
        finally:
            timer.cancel()
            timer.join()
            connection.close()
    if is_late.is_set():
        raise TimeoutError
    return answer.status, content


# %% Run as a script, it trains. Where the environment names no server, one of its own always says the same.
class _StandIn(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said = json.dumps({"weights": {"residential": 2, "road": 1}, "confidence": 0.5, "hint": "build homes"})
        body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass


if __name__ == "__main__":
    import ludus

    steps = os.environ.get("LUDUS_EXAMPLE_STEPS", "20_000")
    settings = ["world.settings.guide.name=openai", "rewards.weights.guided=0.01", f"total_env_steps={steps}"]
    with ThreadingHTTPServer(("127.0.0.1", 0), _StandIn) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ.setdefault(URL_VARIABLE, f"http://127.0.0.1:{server.server_port}/v1")
        run = ludus.train("city", preset="debug", overrides=[*settings, "world.num_envs=8", "evaluation=null"])
        server.shutdown()
    print(f"[OK] {run.folder}; its behavior_metrics.csv says how often the advice was followed")
