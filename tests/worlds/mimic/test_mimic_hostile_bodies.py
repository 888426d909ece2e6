"""MJCF files that are meant to harm: refused with a typed error, in little time and memory; honest ones work as before.

One child process reads all hostile files under an audit hook and a limit on its memory, which the processes that it
starts inherit, and says what happened.
"""

import json
import os
import struct
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from ludus.core.errors import ConfigError
from ludus.envs.stored import ALLOW_VARIABLE, allow_files
from ludus.worlds.mimic import body_file
from ludus.worlds.mimic.body_file import read_spec

pytestmark = pytest.mark.fault

MEMORY_BYTES = 512 << 20  # what refusing one body may take beyond what the process has
SECONDS = 15.0  # of CPU time; the compiler is stopped after 10

ROOT = '<body name="root"><freejoint/><geom size=".1"/></body>'
GEOM = '<geom size=".1"/>'
TOE = '<geom name="toe" size=".01"/>'
ROBOT = Path(__file__).parents[3] / "examples" / "own_body.xml"

Make = Callable[[Path], None]


def document(parts: str = "", world: str = "") -> str:
    return f"<mujoco>{parts}<worldbody>{ROOT}{world}</worldbody></mujoco>"


def body(parts: str = "", world: str = "", **files: bytes) -> Make:
    """A folder with `body.xml` and further files; `__` in their names is a dot."""

    def make(folder: Path) -> None:
        (folder / "body.xml").write_text(document(parts, world))
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_bytes(content)

    return make


def raw(content: str | bytes) -> Make:
    data = content if isinstance(content, bytes) else content.encode()

    def make(folder: Path) -> None:
        (folder / "body.xml").write_bytes(data)

    return make


def asset(inside: str, **files: bytes) -> Make:
    return body(f"<asset>{inside}</asset>", "", **files)


def replicas(levels: int, count: str, inside: str) -> str:
    return f'<replicate count="{count}" offset="1 0 0">' * levels + inside + "</replicate>" * levels


def section(name: str, inside: str) -> Make:
    return body(f"<{name}>{inside}</{name}>", '<site name="s"/><camera name="c" resolution="4000 4000"/>')


def linked(target: str) -> Make:
    def make(folder: Path) -> None:
        asset('<mesh file="mesh.stl"/>')(folder)
        (folder / "mesh.stl").symlink_to(target)

    return make


def including(count: int) -> Make:
    """Files that include each other in a row."""

    def make(folder: Path) -> None:
        (folder / "body.xml").write_text(document('<include file="0.xml"/>'))
        for number in range(count):
            (folder / f"{number}.xml").write_text(f'<x><include file="{number + 1}.xml"/></x>')

    return make


def piped(folder: Path) -> None:
    asset('<mesh file="mesh.stl"/>')(folder)
    os.mkfifo(folder / "mesh.stl")


def picture(width: int, height: int) -> bytes:
    """A PNG file of one bit per pixel, all black."""
    rows = zlib.compress(bytes((width // 8 + 1) * height), 1)
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    chunks = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
              for kind, data in parts)  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


LAUGHS = "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
HOSTILE: dict[str, tuple[Make, str]] = {
    "nested replicas": (body(world=replicas(3, "200", GEOM)), "elements with each replica counted"),
    "replicas without end": (body(world=replicas(1, "1e9", GEOM)), "elements with each replica counted"),
    "replicas of no number": (body(world=replicas(1, "0x7fffffff", GEOM)), "elements with each replica counted"),
    "empty replicas": (body(world=replicas(90, "9", "")), "elements with each replica counted"),
    "replicas that are referred to": (
        raw(document(world=replicas(1, "1000", '<body><site name="s"/></body>')).replace(
            "</mujoco>", "<sensor>" + '<gyro site="s"/>' * 2_900 + "</sensor></mujoco>")),
        "elements with each replica counted",
    ),
    "flexcomp": (
        body(world='<flexcomp name="f" type="grid" count="500 500 500" spacing="1 1 1" dim="3"/>'), "<flexcomp>",
    ),
    "flex": (section("deformable", '<flex name="f" dim="1" body="root root" cellcount="900 900 900"/>'), "<flex>"),
    "composite": (body(world='<composite type="cable" count="1000000 1 1" size="1"/>'), "<composite>"),
    "plugin": (body('<extension><plugin plugin="mujoco.sdf.torus"/></extension>'), "<extension>"),
    "another model": (asset('<model name="m" file="/etc/passwd"/>'), "<model>"),
    "attached model": (body(world='<attach model="m" body="b" prefix="p"/>'), "<attach>"),
    "height field": (asset('<hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/>'), "hfield nrow='100000'"),
    "height fields": (
        asset("".join(f'<hfield name="h{i}" nrow="2000" ncol="2000" size="1 1 1 1"/>' for i in range(1_000))),
        "cannot be compiled|is no MJCF|is too large",
    ),
    "height field that wraps around": (
        asset('<hfield file="h.bin" size="1 1 1 1"/>', h__bin=struct.pack("<ii", 65_536, 65_536)), "cannot be",
    ),
    "texture": (
        asset('<texture name="t" type="2d" builtin="checker" width="50000" height="50000"/>'), "texture width",
    ),
    "picture of a gigabyte": (asset('<texture type="2d" file="t.png"/>', t__png=picture(24_000, 24_000)), "cannot be"),
    "plate": (asset('<mesh name="m" builtin="plate" params="20000 20000"/>'), "mesh params"),
    "grid": (asset('<mesh name="m" builtin="grid" params="2000 2000 2000 1 1 1"/>'), "mesh params"),
    "sphere": (asset('<mesh name="m" builtin="supersphere" params="20000 1 1"/>'), "mesh params"),
    "STL of 4 billion triangles": (asset('<mesh file="m.stl"/>', m__stl=bytes(80) + b"\xff" * 4 + bytes(50)), "cannot"),
    "MSH of 2 billion vertices": (
        asset('<mesh file="m.msh"/>', m__msh=struct.pack("<iiii", 2**31 - 1, 0, 0, 2**31 - 1) + bytes(64)), "cannot be",
    ),
    "mesh of nothing": (asset('<mesh file="m.obj"/>', m__obj=b"f 999999999 1 2\n" * 1_000), "cannot be"),
    "nuserdata": (body('<size nuserdata="1000000000"/>'), "size nuserdata='1000000000'"),
    "nuserdata as it was found": (body('<size nuserdata="1e9"/>'), "size nuserdata='1e9'"),
    "nuserdata that is not a number": (body('<size nuserdata="nan"/>'), "size nuserdata='nan'"),
    "nuserdata behind spaces": (body(f'<size nuserdata="{" " * 5_000}1000000000"/>'), "size nuserdata='  "),
    "nkey": (body('<size nkey="1000000"/>'), "size nkey='1000000'"),
    "nuser_geom": (body('<size nuser_geom="500000000"/>'), "nuser_geom"),
    "njmax": (body('<size njmax="100000000"/>'), "njmax"),
    "nconmax": (body('<size nconmax="100000000"/>'), "nconmax"),
    "nstack": (body('<size nstack="2000000000"/>'), "nstack"),
    "memory": (body('<size memory="100G"/>'), "memory='100G'"),
    "numeric": (section("custom", '<numeric name="n" size="1000000000"/>'), "numeric size"),
    "user sensor": (section("sensor", '<user dim="1000000000"/>'), "user dim"),
    "history of a sensor": (section("sensor", '<clock nsample="16000000" interval="0.001"/>'), "clock nsample"),
    "contacts of a sensor": (section("sensor", '<contact num="100000000" body1="root"/>'), "contact num"),
    "range finders": (section("sensor", '<rangefinder camera="c"/>'), "cannot be|is too"),
    "activations": (section("actuator", '<general site="s" dyntype="user" actdim="1000000000"/>'), "actdim"),
    "activations by default": (body('<default><general actdim="1000000000"/></default>'), "general actdim"),
    "solver": (body('<option iterations="2000000000" tolerance="0"/>'), "option iterations"),
    "picture": (body('<visual><global offwidth="2000000" offheight="2000000"/></visual>'), "offwidth"),
    "shadows": (body('<visual><quality shadowsize="2000000"/></visual>'), "shadowsize"),
    "lengths of muscles": (
        raw('<mujoco><compiler><lengthrange mode="all" inttotal="1e9" interval="2" timestep="1e-6"/></compiler>'
            f'<worldbody><body><joint name="j"/>{GEOM}</body></worldbody>'
            '<actuator><muscle joint="j"/></actuator></mujoco>'),
        "cannot be compiled within 10 s of CPU time",
    ),
    "bodies in each other": (body(world="<body><freejoint/>" .join([""] * 1_500) + "</body>" * 1_499), "elements"),
    "bodies in one place": (
        body(world=f"<body><freejoint/>{GEOM}</body>" * 1_500), "cannot be|is too",
    ),
    "many joints": (body(world=f"<body><joint/>{GEOM}</body>" * 300), "its nv is 306; at most 256"),
    "many geoms": (body(world=GEOM * 300_000), "elements with each replica counted"),
    "deep": (raw("<mujoco>" + "<a>" * 1_000_000 + "</a>" * 1_000_000 + "</mujoco>"), "elements with each replica"),
    "many attributes": (raw("<mujoco " + " ".join(f'a{i}=""' for i in range(600_000)) + "/>"), "600000 attributes"),
    "large": (raw(b" " * (9 << 20)), "at most 8388608 are read"),
    "entities": (raw(f'<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]><mujoco model="&j;"/>'), "DOCTYPE"),
    "entities in UTF-16": (raw(f"<!DOCTYPE m [{LAUGHS}]><mujoco/>".encode("utf-16")), "no MJCF"),
    "a long entity": (raw(f"<mujoco>&{'a' * 1_000_000};</mujoco>"), "no MJCF"),
    "not XML": (raw(bytes(range(256))), "no MJCF"),
    "another root": (raw("<robot/>"), "begins with <robot>"),
    "empty": (raw(""), "no MJCF"),
    "mesh above the folder": (asset('<mesh file="../../outside.stl"/>'), "outside of its folder"),
    "meshes above the folder": (
        body('<compiler meshdir="../.."/><asset><mesh file="outside.stl"/></asset>'), "outside of its folder",
    ),
    "textures elsewhere": (
        body('<compiler assetdir="/etc"/><asset><texture type="2d" file="passwd"/></asset>'), "outside of its folder",
    ),
    "absolute mesh": (asset('<mesh file="/etc/passwd"/>'), "outside of its folder"),
    "absolute side of a cube": (asset('<texture name="t" type="cube" fileup="/etc/passwd"/>'), "outside of its folder"),
    "mesh behind a link": (linked("/etc/passwd"), "outside of its folder"),
    "device behind a link": (linked("/dev/zero"), "outside of its folder"),
    "link in a circle": (linked("mesh.stl"), "mesh.stl"),
    "mesh in a pipe": (piped, "FIFO"),
    "mesh that is not there": (asset('<mesh file="mesh.stl"/>'), "cannot be read"),
    "mesh of a long name": (asset("<mesh file='" + "a" * 1_000_000 + "'/>"), "at most 500 letters"),
    "mesh with a strange name": (asset('<mesh file="&#65533;.stl"/>'), r"\ufffd.stl cannot be read"),
    "include above the folder": (body('<include file="../../outside.xml"/>'), "outside of its folder"),
    "absolute include": (body('<include file="/etc/passwd"/>'), "outside of its folder"),
    "include without a name": (body("<include/>"), "a folder, not a regular file"),
    "it includes itself": (body('<include file="body.xml"/>'), "twice"),
    "includes in a row": (including(2_000), "twice, or more than 100 files"),
}  # fmt: skip

READER = """
    import json, os, resource, sys, time
    from pathlib import Path
    from ludus.core.errors import ConfigError
    from ludus.worlds.mimic import body_trial
    from ludus.worlds.mimic.body_file import read_spec

    root, memory = Path(sys.argv[1]), int(sys.argv[2])
    read_spec(Path(sys.argv[3]))
    own = (str(root), os.devnull)
    events, active = [], False

    def hook(event, arguments):
        if not active:
            return
        if event == "open" and not str(arguments[0]).startswith(own) and not isinstance(arguments[0], int):
            events.append(f"open {arguments[0]}")
        elif event == "subprocess.Popen" and arguments[1][1:] != ["-P", body_trial.__file__]:
            events.append(str(arguments[1]))
        elif event.startswith(("socket", "os.system", "pickle", "marshal", "os.remove", "os.rename", "os.mkdir")):
            events.append(event)

    sys.addaudithook(hook)
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))

    def seconds():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)

    results = {}
    for folder in sorted(path for path in root.iterdir() if path.name.startswith("case")):
        started = seconds()
        events.clear()
        active = True
        try:
            read_spec(folder / "body.xml")
            message = "was read"
        except ConfigError as error:
            message = str(error)
        except BaseException as error:
            message = f"{type(error).__name__} instead of a ConfigError: {error}"
        active = False
        results[folder.name] = (message, seconds() - started, list(events))
    print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("bodies")
    (root.parent / "outside.stl").write_bytes(b"solid")
    for number, (make, _) in enumerate(HOSTILE.values()):
        (root / f"case{number:03}").mkdir()
        make(root / f"case{number:03}")
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READER), str(root), str(MEMORY_BYTES), str(ROBOT)],
        capture_output=True, text=True, timeout=300, check=False, cwd=root,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert not [path.name for path in root.iterdir() if not path.name.startswith("case")]
    outcome: dict[str, Any] = json.loads(result.stdout)
    return outcome


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
@pytest.mark.parametrize("number", range(len(HOSTILE)), ids=HOSTILE.keys())
def test_hostile_bodies_are_refused_in_little_time_and_memory(outcome: dict[str, Any], number: int) -> None:
    message, seconds, events = outcome[f"case{number:03}"]
    expected = [*HOSTILE.values()][number][1].split("|")
    assert "body.file" in message, message
    assert any(part in message for part in expected), message
    assert "instead of" not in message
    assert message.isascii()
    assert len(message) < 800
    assert seconds < SECONDS
    assert events == []


def stl() -> bytes:
    """A tetrahedron with edges of 10 cm."""
    points = 0.1 * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], np.float32)
    triangles = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    return bytes(80) + struct.pack("<I", 4) + b"".join(bytes(12) + points[[*each]].tobytes() + bytes(2)
                                                       for each in triangles)  # fmt: skip


@pytest.mark.parametrize(
    ("compiler", "place", "named"),
    [
        ("", "part.stl", "part.stl"),
        ("", "meshes/part.STL", "meshes/part.STL"),
        ('<compiler meshdir="meshes"/>', "meshes/a/part.stl", "a/part.stl"),
        ('<compiler assetdir="other" meshdir="meshes"/>', "meshes/part.stl", "part.stl"),
        ('<compiler assetdir="meshes/"/><compiler texturedir="other"/>', "meshes/part.stl", "part.stl"),
        ('<compiler meshdir="meshes" strippath="true"/>', "meshes/part.stl", "C:/robots/part.stl"),
    ],
)
def test_meshes_in_the_folder_are_used(tmp_path: Path, compiler: str, place: str, named: str) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_bytes(stl())
    file = tmp_path / "robot.xml"
    world = '<body><geom type="mesh" mesh="part" density="6000"/></body>'
    file.write_text(document(f'{compiler}<asset><mesh file="{named}"/></asset>', world))
    model = read_spec(file).compile()
    assert model.mesh("part").id == 0
    assert model.body_mass[2] == pytest.approx(6000 * 0.1**3 / 6)
    assert mujoco.MjModel.from_xml_path(str(file)).nmeshvert == model.nmeshvert


def test_meshes_elsewhere_are_used_if_their_folder_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, "")
    for name in ("meshes", "robots"):
        (tmp_path / name).mkdir()
    (tmp_path / "meshes" / "part.stl").write_bytes(stl())
    file = tmp_path / "robots" / "robot.xml"
    world = '<body><geom type="mesh" mesh="part" density="6000"/></body>'
    file.write_text(document('<compiler meshdir="../meshes"/><asset><mesh file="part.stl"/></asset>', world))
    with pytest.raises(ConfigError, match="--allow-files"):
        read_spec(file)
    allow_files(tmp_path / "meshes")
    assert read_spec(file).compile().mesh("part").id == 0


def test_included_files_and_replicas_make_what_mujoco_makes_of_them(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "default.xml").write_text('<x><default><geom rgba="1 0 0 1"/></default></x>')
    (tmp_path / "parts" / "leg.xml").write_text(
        '<mujocoinclude><body name="leg"><include file="parts/toes.xml"/></body><site name="last"/></mujocoinclude>'
    )
    (tmp_path / "parts" / "toes.xml").write_text(f'<x><geom name="shin" size=".2"/>{replicas(2, "3", TOE)}</x>')
    file = tmp_path / "robot.xml"
    file.write_text(
        document('<include file="parts/default.xml"/>', '<include file="parts/leg.xml"/>'), encoding="utf-8-sig"
    )
    ours, theirs = read_spec(file).compile(), mujoco.MjModel.from_xml_path(str(file))
    assert ours.ngeom == 1 + 1 + 9
    assert ours.geom_rgba[:, 0].tolist() == [1.0] * 11
    names = [[model.geom(index).name for index in range(model.ngeom)] for model in (ours, theirs)]
    assert names[0] == names[1]
    np.testing.assert_array_equal(ours.geom_pos, theirs.geom_pos)


def test_a_link_to_a_body_and_comments_in_any_encoding_are_read(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    file = tmp_path / "kept" / "robot.xml"
    file.write_bytes(b"<!-- Gr\xf6\xdfe -->" + ROBOT.read_bytes())
    (tmp_path / "robot.xml").symlink_to(file)
    assert read_spec(tmp_path / "robot.xml").compile().nbody == mujoco.MjModel.from_xml_path(str(ROBOT)).nbody


def test_a_body_is_tried_once_in_a_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def run_trial(text: str, _assets: object) -> str:
        asked.append(text)
        return "is bad" if "bad" in text else ""

    monkeypatch.setattr(body_file, "_faults", {})
    monkeypatch.setattr(body_file, "_run_trial", run_trial)
    bad = tmp_path / "bad.xml"
    bad.write_text('<mujoco model="bad"/>')
    for _ in range(2):
        read_spec(ROBOT)
        with pytest.raises(ConfigError, match=r"bad\.xml is bad"):
            read_spec(bad)
    assert len(asked) == 2
