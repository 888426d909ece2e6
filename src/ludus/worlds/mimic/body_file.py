"""Reads MJCF files of users, which may come from strangers: bounded, from one folder, and tried before they are used.

A file can ask MuJoCo for any amount of memory and time (`<replicate>`, `nuserdata`, a height field without content ...)
and name any file. So MuJoCo never sees the file itself: it is parsed here, included files are put in their places, its
numbers are compared with limits, and files that it names are read out of its folder. Text and contents are compiled by
another process first (`body_trial`), with little memory and time.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser, tostring

import mujoco

from ludus.core.errors import ConfigError, FormatError, brief
from ludus.core.files import read_regular
from ludus.core.text import plain_text
from ludus.envs.stored import Outside, OutsideName, is_allowed
from ludus.worlds.mimic import body_trial

_MAX_TEXT_BYTES = 8 << 20  # of the file and all that it includes; a mesh can be written into it
_MAX_ASSET_BYTES = 48 << 20  # of all files that it names
# With each replica counted. Compiling takes time in proportion to the square: 5,000 replicated bodies 5 s.
_MAX_ELEMENTS = 5_000
_MAX_DEPTH = 100
_MAX_ATTRIBUTES = 100
_MAX_FILES = 100
_TOO_MANY = f"has more than {_MAX_ELEMENTS} elements with each replica counted, or {_MAX_DEPTH} within each other"
_CHUNK_LETTERS = 1 << 16
_SHOWN = 200
_LONGEST_NAME = 500
_TRIAL_S = 60.0  # of a machine that does something else meanwhile; CPU time is bounded too
# Elements that load code or other models, or that make bodies which no walker can have.
_REFUSED = ("attach", "composite", "extension", "flex", "flexcomp", "model", "plugin")
_WITHOUT_REFERENCES = ("asset", "default", "worldbody")
_DIRECTORIES = ("assetdir", "meshdir", "texturedir")
_UNITS = MappingProxyType({unit: 1 << (10 * power) for power, unit in enumerate("KMGTPE", start=1)})
# What the compiler, a simulation or a picture allocates or computes in proportion to: attribute, after its element
# where others have one of this name -> largest absolute value.
_LARGEST: Mapping[str, float] = MappingProxyType(
    {
        "actdim": 1_000, "nsample": 1_000, "resolution": 4_096, "contact num": 1_000, "user dim": 10_000,
        "hfield nrow": 2_000, "hfield ncol": 2_000, "numeric size": 10_000,
        "texture width": 2_048, "texture height": 6 * 2_048, "texture nchannel": 4,
        "nuserdata": 100_000, "nkey": 1_000, "njmax": 20_000, "nconmax": 20_000, "nstack": 10_000_000,
        "nuser_actuator": 1_000, "nuser_body": 1_000, "nuser_cam": 1_000, "nuser_geom": 1_000, "nuser_jnt": 1_000,
        "nuser_sensor": 1_000, "nuser_site": 1_000, "nuser_tendon": 1_000,
        "iterations": 500, "ls_iterations": 200, "noslip_iterations": 500, "ccd_iterations": 500,
        "sdf_iterations": 500, "sdf_initpoints": 500,
        "offwidth": 4_096, "offheight": 4_096, "offsamples": 16, "shadowsize": 8_192,
        "numslices": 200, "numstacks": 200, "numquads": 200,
    }
)  # fmt: skip
_MAX_MEMORY_BYTES = 64 << 20
_MAX_NUMBERS_LETTERS = 1_000
_MAX_MESH_COUNT = 100_000  # vertices of a mesh that the compiler makes

_faults: dict[str, str] = {}  # what was wrong with bodies that this process has tried, by hash


def read_spec(file: Path) -> mujoco.MjSpec:
    """Read an MJCF file that MuJoCo can compile; raise ConfigError, which names what to change, if it is none."""
    if not file.is_file():
        raise ConfigError(f"body.file {str(file)!r} is no file; the path is relative to where ludus was started")
    try:
        root = _Reader(file.parent).read(file)
        _check(root)
        assets = _take_assets(root, file.parent)
    except FormatError as error:
        raise ConfigError(f"body.file {file}: {plain_text(str(error))}") from error
    text = tostring(root, encoding="unicode")
    if fault := _try(text, assets):
        raise ConfigError(f"body.file {file} {fault}")
    return mujoco.MjSpec.from_string(text, assets=assets)


class _Reader:
    """Reads a file and what it includes, each file once, with common bounds."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._bytes, self._elements = folder, _MAX_TEXT_BYTES, 0
        self._read = set[Path]()

    def read(self, path: Path) -> Element:
        """Return the root of a file, with the content of other files in place of `<include>`."""
        if path in self._read or len(self._read) >= _MAX_FILES:
            raise FormatError(f"includes {brief(path.name)} twice, or more than {_MAX_FILES} files")
        self._read.add(path)
        content = read_regular(path, limit=self._bytes)
        self._bytes -= len(content)
        root = self._parse(path.name, content.decode("utf-8-sig", errors="replace"))  # comments are in any encoding
        for parent in [*root.iter()]:
            for index, child in reversed([*enumerate(parent)]):
                if child.tag == "include":
                    parent[index : index + 1] = self.read(_inside(self._folder, child.get("file", "")))[:]
        return root

    def _parse(self, name: str, text: str) -> Element:
        if "<!DOCTYPE" in text:  # whose entities can make a text of any size
            raise FormatError(f"{brief(name)} has a DOCTYPE; remove it")
        parser: Any = XMLPullParser(("start", "end"))
        opened, root = list[Element](), Element("")
        try:
            for start in range(0, len(text), _CHUNK_LETTERS):
                parser.feed(text[start : start + _CHUNK_LETTERS])
                for event, element in parser.read_events():
                    if event == "end":
                        root = opened.pop()
                        continue
                    opened.append(element)
                    self._elements += 1
                    if len(opened) > _MAX_DEPTH or self._elements > _MAX_ELEMENTS:
                        raise FormatError(_TOO_MANY)
            parser.close()
        except ParseError as error:
            raise FormatError(f"{brief(name)} is no MJCF: {plain_text(str(error))[:_SHOWN]}") from error
        return root


def _inside(folder: Path, *names: str) -> Path:
    """Return the path of a file; raise FormatError if it is outside of a folder, also behind a link, unless allowed."""
    if sum(map(len, names)) > _LONGEST_NAME:
        raise FormatError(f"names the file {brief(names[-1])}; at most {_LONGEST_NAME} letters are read")
    try:
        path = folder.joinpath(*names).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # null characters, links in a circle
        raise FormatError(f"names the file {brief(names[-1])}, which no file can be") from error
    if not path.is_relative_to(folder.resolve()) and not is_allowed(Outside((), str(path), OutsideName("file"))):
        raise FormatError(
            f"names the file {brief(names[-1])} outside of its folder; copy it into {folder}, or allow its folder with "
            "--allow-files (in Python: ludus.allow_files)"
        )
    return path


def _check(root: Element) -> None:
    """Raise FormatError if a document asks MuJoCo for too much."""
    if root.tag != "mujoco":
        raise FormatError(f"is no MJCF: it begins with <{brief(root.tag)[1:-1]}>, not with <mujoco>")
    elements, most_copies = 0, 1
    for element, copies in _walk(root):
        elements, most_copies = elements + copies, max(copies, most_copies)
        if elements > _MAX_ELEMENTS:
            raise FormatError(_TOO_MANY)
        if len(element.attrib) > _MAX_ATTRIBUTES:
            raise FormatError(
                f"has an element with {len(element.attrib)} attributes; at most {_MAX_ATTRIBUTES} are read"
            )
        if element.tag in _REFUSED:
            raise FormatError(
                f"has an element <{element.tag}>, which a body cannot have; remove it, or write what it makes "
                "(`MjSpec.to_xml` does)"
            )
        for name, value in element.attrib.items():
            _check_value(element.tag, name, value)
    # MuJoCo replicates what refers to a replica too, such as a sensor at a replicated site.
    referring = sum(len([*section.iter()]) for section in root if section.tag not in _WITHOUT_REFERENCES)
    if elements + (most_copies - 1) * referring > _MAX_ELEMENTS:
        raise FormatError(_TOO_MANY)


def _walk(element: Element, copies: int = 1, depth: int = 1) -> Iterator[tuple[Element, int]]:
    """Yield an element and all below it, each with the number of its replicas."""
    if depth > _MAX_DEPTH:  # of all files together
        raise FormatError(_TOO_MANY)
    yield element, copies
    if element.tag == "replicate":
        copies *= max(1, math.ceil(min(max(_numbers(element.get("count", "1"))), _MAX_ELEMENTS + 1)))
    for child in element:
        yield from _walk(child, copies, depth + 1)


def _check_value(tag: str, name: str, text: str) -> None:
    most = _LARGEST.get(f"{tag} {name}", _LARGEST.get(name))
    if tag == "size" and name == "memory":
        unit = _UNITS.get(text[-1:].upper(), 1)
        value, most = max(_numbers(text[:-1] if unit > 1 else text)) * unit, _MAX_MEMORY_BYTES
    elif tag == "mesh" and name == "params":
        counts = _numbers(text)  # a sphere's is that of both directions
        value = max(max(counts) ** 2, math.prod(max(1.0, number) for number in counts[:3]))
        most = _MAX_MESH_COUNT
    elif most is not None:
        value = max(_numbers(text))
    else:
        return
    if value > most:
        raise FormatError(f"has {tag} {name}={brief(text)}; it must be a number, and at most {most:g} is allowed")


def _numbers(text: str) -> list[float]:
    """Return the absolute values of a few numbers; infinity where a text is none."""
    try:
        numbers = [abs(float(number)) for number in text.split()] if len(text) <= _MAX_NUMBERS_LETTERS else []
    except ValueError:
        numbers = []
    return [math.inf if math.isnan(number) else number for number in numbers] or [math.inf]


def _take_assets(root: Element, folder: Path) -> dict[str, bytes]:
    """Return the contents of the files that a document names, which then names them by hash and name."""
    directory = {"mesh": "", "texture": ""}
    is_stripped = False
    for compiler in root.iter("compiler"):
        for name in _DIRECTORIES:  # the other two are stronger than assetdir
            if (given := compiler.attrib.pop(name, None)) is not None:
                directory |= dict.fromkeys(directory if name == "assetdir" else (name.removesuffix("dir"),), given)
        is_stripped = compiler.attrib.pop("strippath", str(is_stripped)).lower() == "true"
    names, assets, left = dict[Path, str](), dict[str, bytes](), _MAX_ASSET_BYTES
    for element in root.iter():
        for attribute in [name for name in element.attrib if name.startswith("file")]:
            named = Path(element.attrib[attribute])
            file = named.name if is_stripped else str(named)
            path = _inside(folder, directory["texture" if element.tag == "texture" else "mesh"], file)
            if path not in names:
                content = read_regular(path, limit=left)
                left -= len(content)
                names[path] = f"{hashlib.sha256(content).hexdigest()[:32]}-{path.name}"
                assets[names[path]] = content
            element.set(attribute, names[path])
            if attribute == "file":
                element.attrib.setdefault("name", named.stem)  # as MuJoCo calls it by default
    return assets


def _try(text: str, assets: Mapping[str, bytes]) -> str:
    """Return what is wrong with a body, which another process compiles; an empty string if it can be used."""
    digest = hashlib.sha256(text.encode()).hexdigest()  # the names of assets are hashes too
    if digest not in _faults:
        _faults[digest] = _run_trial(text, assets)
    return _faults[digest]


def _run_trial(text: str, assets: Mapping[str, bytes]) -> str:
    sizes = {name: len(content) for name, content in assets.items()}
    trial: body_trial.Trial = {"path": sys.path, "text": text, "assets": sizes}
    # Without GLFW and with one thread it starts in half the time; arenas of threads count as memory.
    settings = {"MUJOCO_GL": "disable", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own file
            [sys.executable, "-P", body_trial.__file__],
            input=b"".join((json.dumps(trial).encode(), b"\n", *assets.values())),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **settings},
            timeout=_TRIAL_S,
            check=False,
        )
        said = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        seconds, memory = body_trial.CPU_S, body_trial.memory_bytes(trial) >> 20
        return (
            f"cannot be compiled within {seconds} s of CPU time and {memory} MiB of memory, or it ends MuJoCo; "
            "make its meshes and numbers smaller"
        )
    return plain_text(str(said))
