"""The page of `ludus share`: one HTML file in which anyone plays against an agent, without a server.

The file holds the simulator and the policies as WebAssembly, weights of the agent and its earlier selves, our scripts
and styles. It may load nothing: its content policy names the hashes of the one script and the one style. Names of files
and agents are data, which the scripts put on the page as text.
"""

import base64
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from ludus.core import __version__
from ludus.core.errors import CheckpointError, ConfigError, UnsupportedError
from ludus.core.files import JSON, make_folder, write_text_atomic
from ludus.core.text import page_text
from ludus.envs.base import BatchedEnv, action_dtypes
from ludus.envs.bots import is_bot
from ludus.envs.display import BrowserGame, display_of
from ludus.envs.registry import make_env
from ludus.envs.replay import recorded_settings
from ludus.envs.world import find_world, resolve
from ludus.evaluation.players import load_agent, load_playable_agent, short_name
from ludus.policies.agent import CHECKPOINTS_FOLDER, Agent, find_checkpoint
from ludus.policies.shipped import describe_agent, find_agent_path, is_agent
from ludus.reports.model_card import run_folder_of
from ludus.reports.page.document import embedded, fill_page, read_asset
from ludus.share.precision import LOSSLESS_BYTES, pack_agent
from ludus.share.viewer import is_viewer, page_program
from ludus.share.wasm import compile_program
from ludus.store import CheckpointStore, read_manifest
from ludus.training.checkpointing import SNAPSHOTS_FOLDER

PAGE_SUFFIX = ".html"
MOST_BYTES = 2_000_000  # of a page; earlier selves that do not fit are left out
_SHARED = "elements.js"  # of all pages
_SCRIPTS = ("engine.js", "input.js", "recorder.js", "minds.js")  # in the order in which they are read
_MAIN, _STYLE, _TEMPLATE = "page.js", "page.css", "page.html"
_SEATS = 2


@dataclass(frozen=True, slots=True)
class SharedPlayer:
    """Someone who can take a seat: an agent with its weights, or a scripted bot.

    Attributes:
        id: What the page calls it; the name of a bot.
        name: Display name.
        kind: `agent`, `snapshot` (an earlier self) or `bot`.
        note: More about it, such as its level.
        data: Packed weights; empty for a bot.
        description: What the weights mean.
    """

    id: str
    name: str
    kind: str
    note: str = ""
    data: bytes = b""
    description: JSON = None

    def document(self) -> dict[str, JSON]:
        """Return it as the page's data."""
        said: dict[str, JSON] = {"id": self.id, "name": self.name, "kind": self.kind, "note": self.note}
        return said | ({"weights": _packed(self.data), "policy": self.description} if self.data else {})


@dataclass(frozen=True, slots=True)
class SharedPage:
    """A written page."""

    file: Path
    size_bytes: int
    world: str
    players: tuple[SharedPlayer, ...]
    left_out: tuple[str, ...]  # earlier selves that would have made it too large

    def describe(self) -> dict[str, JSON]:
        """Return its content as JSON values."""
        return {
            "file": str(self.file),
            "bytes": self.size_bytes,
            "world": self.world,
            "players": [player.name for player in self.players],
            "left_out": list(self.left_out),
        }


def share_agent(
    agent: str, file: Path, *, against: Sequence[str] = (), snapshots: int = 4, overwrite: bool = False
) -> SharedPage:
    """Write the page of an agent; the folder of the file is created.

    Args:
        agent: A run folder, a checkpoint, an exported file or the name of a shipped agent.
        file: The page to write, which ends in `.html`.
        against: More agents to play against, named likewise.
        snapshots: How many earlier selves of the agent's run come along, from early to late.
        overwrite: Whether a file that exists is replaced.

    Raises:
        ConfigError: The file exists or has another ending, or an opponent is not an agent.
        UnsupportedError: The world or the network cannot be played in a browser.
        MissingDependencyError: The compiler of the extra `web` is not installed.
        CheckpointError: There is no such agent.
    """
    if file.suffix != PAGE_SUFFIX:
        raise ConfigError(f"the page {str(file)!r} must end in {PAGE_SUFFIX}; name it {file.stem}{PAGE_SUFFIX}")
    if file.exists() and not overwrite:
        raise ConfigError(f"{file} exists; choose another name with --out, or replace it with --overwrite")
    loaded = load_playable_agent(agent)
    program = page_program(loaded.spec.id, loaded.settings)
    wasm = compile_program(program)  # first: it may lack its compiler
    with make_env(loaded.spec.id, config=program.settings) as env:
        if env.spec.seats != _SEATS and not is_viewer(loaded.spec.id):
            raise UnsupportedError(f"a page is played by two; {env.spec.id} has {env.spec.seats} seats here")
        players = [_player("agent", short_name(agent), "agent", loaded, env)]
        players += _others(against, env)
        earlier = _earlier_selves(agent, snapshots, env)
        bots = [SharedPlayer(name, name, "bot") for name in program.bots]
        document = _document(agent, env, [*players, *bots])
        described = program.describe()
        del described["settings"]  # may name files of this machine
        document["engine"] = {"wasm": _packed(wasm), "description": described}
        world = find_world(loaded.spec.id)
        game: BrowserGame = resolve(world.browser) if world.browser is not None else BrowserGame()
        document["live"] = game.data(env)
        room = MOST_BYTES - len(_page(document, game))
    shown, left_out = _that_fit(earlier, room)
    players += shown
    document["players"] = [player.document() for player in (*players, *bots)]
    document["about"] = _about(agent, loaded, players)
    page = _page(document, game)
    make_folder(file.parent)
    write_text_atomic(file, page)
    names = tuple(player.name for player in left_out)
    return SharedPage(file, len(page.encode("utf-8")), loaded.spec.id, (*players, *bots), names)


def _page(document: Mapping[str, JSON], game: BrowserGame) -> str:
    scripts = [read_asset(_SHARED), *map(_asset, _SCRIPTS), game.source(), _asset(_MAIN)]
    style = read_asset(_STYLE) + _asset(_STYLE)
    return fill_page(
        _asset(_TEMPLATE),
        title=str(document["title"]),
        style=style,
        scripts="\n".join(scripts),
        document=dict(document),
        script_sources="'wasm-unsafe-eval'",
    )


def _document(agent: str, env: BatchedEnv, players: Sequence[SharedPlayer]) -> dict[str, JSON]:
    """Return the data of the page, but for the engine and what the world's scripts need."""
    display, name = display_of(env.spec.id), players[0].name
    config, digests = recorded_settings(env)
    space = env.spec.action_space
    keys: list[JSON] = [[key.name, key.meaning] for key in display.keys]
    held: list[JSON] = [part for key in display.keys for part in key.name.split(" or ")]
    replay: dict[str, JSON] = {
        "world": env.spec.name,
        "world_version": env.spec.version,
        "config": config,
        "files": dict(digests),
        "dtype": str(action_dtypes(space)[0]).removeprefix("torch."),
        "shape": list(space.shape or ()),
        "observations": list(env.spec.observation_space),
        "events": list(env.spec.events),
        "state_metrics": list(env.spec.state_metrics),
    }
    return {
        "title": f"Watch and push {name}" if is_viewer(env.spec.id) else f"Play {env.spec.name} against {name}",
        "subtitle": _subtitle(agent, env),
        "world": env.spec.name,
        "rate_hz": env.spec.rate_hz,
        "players": [player.document() for player in players],
        "replay": replay,
        "keys": keys,
        "key_lines": list(display.key_lines),
        "held": held,
        "demo_bot": display.bots[-1] if display.bots else "",
    }


def _subtitle(agent: str, env: BatchedEnv) -> str:
    if is_agent(agent) and not Path(agent).exists():
        return describe_agent(agent).summary
    return f"an agent of {env.spec.id}, trained with Ludus"


def _about(agent: str, loaded: Agent, players: Sequence[SharedPlayer]) -> list[JSON]:
    found = find_checkpoint(agent)
    rows: list[tuple[str, str]] = [("Agent", players[0].name), ("World", loaded.spec.id)]
    if found.env_steps is not None:
        rows.append(("Trained", f"{found.env_steps:,} env steps"))
    if is_agent(agent) and not Path(agent).exists():
        rows.append(("Strength", describe_agent(agent).result))
    size = sum(parameter.numel() for parameter in loaded.policy.parameters())
    rows.append(
        ("Network", f"{size:,} parameters{', with a strategy encoder' if loaded.policy.memory.strategy else ''}")
    )
    rows += [(f"Weights of {player.name}", said) for player in players if (said := _losses(player.description))]
    rows.append(("Made", f"by Ludus {__version__} on {time.strftime('%Y-%m-%d', time.gmtime())}"))
    return [list(row) for row in rows]


def _losses(description: JSON) -> str:
    """Return what storing the weights in fewer bytes has lost; empty for a bot."""
    said = description.get("precision") if isinstance(description, dict) else None
    if not isinstance(said, dict):
        return ""
    if not said["decisions"]:
        return f"{said['matrices']}, as trained: nothing is lost"
    return (
        f"{said['matrices']}: of {said['decisions']:,} decisions {said['changed']:.2%} have another most likely "
        f"action, and probabilities differ by at most {said['probability']:.4f}"
    )


def _player(identity: str, name: str, kind: str, agent: Agent, env: BatchedEnv) -> SharedPlayer:
    agent.check_world(env.spec)
    packed = pack_agent(agent, LOSSLESS_BYTES if kind == "agent" else 0)
    return SharedPlayer(identity, page_text(name), kind, data=packed.data, description=packed.description)


def _others(names: Sequence[str], env: BatchedEnv) -> list[SharedPlayer]:
    """Return the other agents that were named."""
    players = []
    for number, name in enumerate(names, 1):
        if find_agent_path(name) is None and is_bot(name, env.spec):
            raise ConfigError(f"{name} is a bot, and all bots of {env.spec.id} are in the page; --against adds agents")
        agent = load_agent(name)
        agent.check_world_id(env.spec.id)
        players.append(_player(f"agent-{number}", short_name(name), "agent", agent, env))
    return players


def _earlier_selves(agent: str, count: int, env: BatchedEnv) -> list[SharedPlayer]:
    """Return up to `count` earlier selves of an agent's run, from early to late; those that do not fit are skipped."""
    path = find_agent_path(agent) or Path(agent)
    folder = run_folder_of(path)
    if folder is None or count < 1:
        return []
    own = find_checkpoint(agent).env_steps
    found: dict[int, Path] = {}
    for name in (SNAPSHOTS_FOLDER, CHECKPOINTS_FOLDER):
        store = CheckpointStore(folder / name, keep=1, report=lambda _text: None)
        for checkpoint in store.names():
            try:
                steps = read_manifest(folder / name / checkpoint).step
            except CheckpointError:
                continue
            if own is None or steps < own:
                found[steps] = folder / name / checkpoint
    players = []
    for steps in _spread(sorted(found), count):
        try:
            self_ = Agent.load(found[steps])
            name = f"after {_short(steps)} steps" if steps else "untrained"
            players.append(_player(f"snapshot-{steps}", name, "snapshot", self_, env))
        except (CheckpointError, UnsupportedError):
            continue  # damaged, or from before the network was changed
    return [replace(player, note=f"level {level} of {len(players)}") for level, player in enumerate(players, 1)]


def _spread(steps: Sequence[int], count: int) -> list[int]:
    """Return up to `count` of some numbers, evenly spread, the first and the last among them."""
    if len(steps) <= count:
        return list(steps)
    if count == 1:
        return [steps[len(steps) // 2]]
    return [steps[round(place * (len(steps) - 1) / (count - 1))] for place in range(count)]


def _short(steps: int) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if steps >= size:
            return f"{steps / size:.3g}{letter}"
    return str(steps)


def _that_fit(players: Sequence[SharedPlayer], room: int) -> tuple[list[SharedPlayer], list[SharedPlayer]]:
    """Return the players whose weights fit into so many bytes, and the others; later selves come first."""
    fitting: list[SharedPlayer] = []
    left_out: list[SharedPlayer] = []
    for player in reversed(players):
        size = len(embedded(player.document())) + 1
        (fitting if size <= room else left_out).append(player)
        room -= size if size <= room else 0
    return fitting[::-1], left_out[::-1]


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def _asset(name: str) -> str:
    return (files("ludus.share") / "assets" / name).read_text(encoding="utf-8")
