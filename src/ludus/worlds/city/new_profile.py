"""Make the profile of a new game: start it, take pictures, propose what they show, and audit readings by typed figures.

All that is made lies in one folder, to be corrected by hand: `profile.yaml`, `proposal.png`, `pictures/` and
`figures.csv`, into which people type what the pictures say. Typed figures teach the letters of the game, too.
"""

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ludus.config import dump_yaml, read_yaml
from ludus.config.yaml import MAX_CONFIG_BYTES
from ludus.core.errors import ConfigError, GameLostError
from ludus.core.files import write_atomic, write_text_atomic
from ludus.worlds.city.audit import FIGURES, PICTURES
from ludus.worlds.city.discovery import Proposal, propose
from ludus.worlds.city.drivers.driver import Box, Click, Frame, Point, Wait
from ludus.worlds.city.drivers.launch import start_game
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.glyphs import GlyphBank
from ludus.worlds.city.perception.pictures import opencv, png
from ludus.worlds.city.perception.reader import OcrWorker, ProfileReader, RapidOcr, available_engines
from ludus.worlds.city.perception.reading import Field, Reading
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile
from ludus.worlds.city.screen.session import ScreenSession

PROFILE, PROPOSAL = "profile.yaml", "proposal.png"
_DRAFT = "draft.yaml"
_WINDOW_S = 3.0  # after which the largest window of a game is taken for its own
_READ_S = 8.0  # in which OCR can read all figures of a picture
_TRIES = 24  # buttons that are tried
_COLORS = {"figure": (230, 30, 30), "button": (30, 80, 230), "map": (240, 200, 0), "landmark": (200, 0, 200)}
Say = Callable[[str], None]


def make_profile(folder: Path, base: Mapping[str, Any], *, pictures: int, every_s: float, say: Say) -> GameProfile:
    """Start a game, take pictures of it while it runs, and write a proposal for its profile.

    `base` has what is known before: `launch`, and perhaps any other part of a profile, which is kept as it is.

    Raises:
        GameLostError: The game does not start, or has no window.
        ConfigFileError: `base` has faults.
        ConfigError: No part looks the same in all pictures, and `base` names no landmark.
    """
    document = _with_window(folder, dict(base), say)
    with X11Driver(_draft(folder, document)) as driver:
        say(f"[OK] starting {document['title']}")
        taken = [driver.open()]
        for _ in range(pictures - 1):
            driver.do([Wait(every_s)])
            taken.append(driver.capture())
        for number, picture in enumerate(taken, start=1):
            write_atomic(folder / PICTURES / f"{number:02}.png", png(picture))
        say(f"[OK] {len(taken)} pictures; reading them takes some seconds each")
        proposal = propose(taken, RapidOcr())
        costs = _try_buttons(driver, proposal)
    write_atomic(folder / PROPOSAL, png(_drawn(taken[0], proposal)))
    if not proposal.landmark.width and "landmarks" not in document:
        raise ConfigError(
            f"no part of the {len(taken)} pictures in {folder / PICTURES} looks the same in all of them; choose one "
            "that shows that the game is running, and pass it with --base as a YAML file such as: "
            "regions: {logo: [10, 10, 90, 40]}, landmarks: {logo: {region: logo}}; "
            f"{folder / PROPOSAL} shows what else was found"
        )
    write_text_atomic(folder / PROFILE, dump_yaml(_document(document, proposal, costs)))
    profile = load_profile(str(folder / PROFILE))
    names = [name for name, spec in profile.readings.items() if spec.kind != "text"]
    rows = [",".join(("picture", *names)), *(f"{number:02}" + "," * len(names) for number in range(1, len(taken) + 1))]
    write_text_atomic(folder / FIGURES, "\n".join(rows) + "\n")
    (folder / _DRAFT).unlink()
    return profile


def known_parts(command: str | None, base: Path | None, size: str, packages: Sequence[str]) -> dict[str, Any]:
    """Return what is known of a game: by the command that starts it, and by a YAML file with parts of a profile.

    Raises:
        ConfigError: Neither is given or one is empty, or `size` is not like `1024x768`.
        ConfigFileError: The file cannot be read.
    """
    words = shlex.split(command or "")
    sides = [int(side) for side in size.split("x") if side.isdecimal()]
    parts = read_yaml(base, "profile", MAX_CONFIG_BYTES) if base is not None else {}
    if len(sides) != 2:
        raise ConfigError(f"{size!r} is no size of a screen; valid: WIDTHxHEIGHT, such as 1024x768")
    if not isinstance(parts, dict) or not (words or "launch" in parts):
        raise ConfigError('nothing says how the game is started; use --command "lincity-ng -w", or a section launch')
    launch: dict[str, Any] = {"command": words} if words else {}
    name = Path(words[0]).name if words else "game"
    return {"title": name, "packages": list(packages or [name]), "launch": launch, "screen": sides, **parts}


def live_readings(profile: GameProfile, count: int) -> Iterator[dict[str, Reading]]:
    """Yield what is read of a running game, after every wait of a decision."""
    with closing(ProfileReader(profile)) as perception, X11Driver(profile) as driver:
        driver.open()
        for _ in range(count):
            driver.do([Wait(profile.wait_s)])
            yield perception.reader.settle(driver.capture, _READ_S)


# --- starting ---


def _with_window(folder: Path, document: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return a document with the title and the size of the game's largest window, if it does not say them."""
    if "window" in document:
        return document
    whole = {"window": {"title": ".*", "size": document["screen"]}}
    profile = _draft(folder, {**document, **whole})
    with closing(ScreenSession(*profile.screen)) as session:
        start_game(session, profile, 1)
        session.wait_for(lambda window: not window.popup, "a window of the game", profile.launch.timeout_s)
        time.sleep(_WINDOW_S)
        shown = [window for window in session.shown() if not window.popup]
        if not shown:
            raise GameLostError(f"the game has closed its window; it said: {session.said()}")
        window = max(shown, key=lambda window: window.box.width * window.box.height)
    say(f"[OK] its window is {window.title!r}, {window.box.width}x{window.box.height}")
    word, space, _ = window.title.partition(" ")  # what follows is often a version or the name of a city
    title = re.escape(word) + (" .*" if space else "")
    return {**document, "window": {"title": title, "size": list(window.box[2:])}}


def bare_profile(folder: Path, base: Mapping[str, Any], say: Say) -> GameProfile:
    """Return a profile of a game of which nothing is known but how it is started, with its window."""
    return _draft(folder, _with_window(folder, dict(base), say))


def _draft(folder: Path, document: Mapping[str, Any]) -> GameProfile:
    """Return a profile in which the whole picture stands for everything that is not known yet."""
    width, height = document.get("measured_on", document["window"]["size"])
    whole = {
        "measured_on": [width, height],
        "map": {"region": "whole", "cell": [16, 16]},
        "readings": {"whole": {"kind": "text", "region": "whole"}},
        "landmarks": {"whole": {"region": "whole"}},
    }
    regions = {"whole": [0, 0, width, height], **document.get("regions", {})}
    reset = {"relaunch": True, "terrain": "whole", **document.get("reset", {})}
    write_text_atomic(folder / _DRAFT, dump_yaml({**whole, **document, "regions": regions, "reset": reset}))
    return load_profile(str(folder / _DRAFT))


def _try_buttons(driver: X11Driver, proposal: Proposal) -> dict[int, float]:
    """Use each button of the palette on the map; return by number what the funds lost where they lost anything."""
    funds = next((figure for figure in proposal.figures if figure.kind == "money"), None)
    if funds is None:
        return {}
    width, height = driver.width, driver.height
    place = funds.box.region(width, height)
    field = Field("funds", "money", place, funds.notation, funds.prefix)
    worker, costs = OcrWorker(available_engines(), GlyphBank()), dict[int, float]()
    random = np.random.default_rng(0)
    for number, button in enumerate(proposal.buttons[:_TRIES]):
        before = worker.read(field, place.cut(driver.capture()).copy())
        (left, top, wide, high), (across, down) = proposal.map, random.uniform(0.2, 0.8, 2)
        target = Point((left + across * wide) / width, (top + down * high) / height)
        try:
            driver.do([Click(button.region(width, height).middle), Click(target)])
            after = worker.read(field, place.cut(driver.capture()).copy())
        except GameLostError:  # the button has ended the game
            driver.open()
            continue
        if isinstance(before.value, float) and isinstance(after.value, float) and before.value > after.value:
            costs[number] = before.value - after.value
    return costs


# --- the document ---


def _document(base: Mapping[str, Any], proposal: Proposal, costs: Mapping[int, float]) -> dict[str, Any]:
    """Return the document of the profile; what the base says is kept."""
    regions = {"map": _corners(proposal.map)}
    regions |= {"landmark": _corners(proposal.landmark)} if proposal.landmark.width else {}
    readings: dict[str, Any] = {}
    for figure in proposal.figures:
        regions[figure.name] = _corners(figure.box)
        spec: dict[str, Any] = {"kind": figure.kind, "region": figure.name}
        spec |= {"prefix": figure.prefix} if figure.prefix else {}
        spec |= {"thousands": figure.notation.thousands} if figure.notation.thousands != "," else {}
        spec |= {"short_years": True} if figure.notation.short_years and figure.kind == "date" else {}
        readings[figure.name] = spec
    tools = {
        f"tool_{number + 1}": {"at": list(box.middle), "cost": costs.get(number, 0.0)}
        for number, box in enumerate(proposal.buttons)
    }
    proposed = {
        "measured_on": base["window"]["size"],
        "map": {"region": "map", "cell": list(proposal.cell)},
        "readings": readings or {"map": {"kind": "text", "region": "map"}},
        "tools": tools,
        "landmarks": {"landmark": {"region": "landmark"}},
    }
    reset = {"relaunch": True, "terrain": "map", **base.get("reset", {})}
    return {**proposed, **base, "regions": {**regions, **base.get("regions", {})}, "reset": reset}


def _corners(box: Box) -> list[int]:
    return [box.left, box.top, box.right, box.bottom]


def _drawn(picture: Frame, proposal: Proposal) -> Frame:
    """Return a picture with frames around what was found, figures by name."""
    boxes = [("map", "", proposal.map), ("landmark", "landmark", proposal.landmark)]
    boxes += [("button", f"tool_{number}", box) for number, box in enumerate(proposal.buttons, start=1)]
    boxes += [("figure", figure.name, figure.box) for figure in proposal.figures]
    return draw_boxes(picture, [(name, box, _COLORS[kind]) for kind, name, box in boxes])


def draw_boxes(picture: Frame, boxes: Sequence[tuple[str, Box, tuple[int, int, int]]]) -> Frame:
    """Return a copy of a picture with named frames of several colours."""
    cv2, drawn = opencv("drawing pictures"), np.ascontiguousarray(picture).copy()
    for name, box, color in boxes:
        cv2.rectangle(drawn, (box.left, box.top), (box.right, box.bottom), color, 2)
        words = (name, (box.left, max(box.top - 3, 10)), cv2.FONT_HERSHEY_SIMPLEX, 0.4)
        cv2.putText(drawn, *words, (255, 255, 255), 3, cv2.LINE_AA)  # letters of a colour stand out from every ground
        cv2.putText(drawn, *words, color, 1, cv2.LINE_AA)
    return drawn
