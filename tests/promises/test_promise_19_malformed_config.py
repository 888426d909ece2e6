"""Promise 19: a malformed config gives exit code 2 and every error with its place, key, expectation and nearest key.

`ludus config show` goes the way that `ludus train` goes to its settings.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.cli.main import main
from ludus.config import dump_yaml, parse_document

pytestmark = pytest.mark.fault

LUDUS = Path(sys.executable).with_name("ludus")
VALID = """\
extends: debug
total_env_steps: 4_096
seed: 7
world:
  num_envs: 16
  settings: {step_limit: 300, stocks: 2}
opponents:
  random: 1.0
  "based:delay=8": 0.5
policy:
  activation: relu
  net_arch:
    pi: [32, 32]
    vf: [32]
  recurrent: {size: 16}
ppo:
  n_steps: 32
  clip_range: {kind: linear, start: 0.2, end: 0.1}
  learning_rate: 3.0e-4
"""

# What stands in the file -> what the error line says after `FILE:`.
MALFORMED: dict[str, tuple[str, str]] = {
    "unknown key": ("sed: 1", "1:1: sed: unknown key (got 1); did you mean 'seed'? valid: world, total_env_steps, "),
    "unknown nested key": (
        "ppo:\n  stesp: 1",
        "2:3: ppo.stesp: unknown key (got 1); did you mean 'n_steps'? valid: n_steps, ",
    ),
    "unknown key two deep": (
        "policy: {net_arch: {vif: [1]}}",
        "1:21: policy.net_arch.vif: unknown key (got [1]); did you mean 'vf'? valid: pi, vf",
    ),
    "unknown key of an optional model": (
        "policy: {recurrent: {sise: 4}}",
        "1:22: policy.recurrent.sise: unknown key (got 4); did you mean 'size'? ",
    ),
    "unknown key of a schedule": (
        "ppo: {clip_range: {kind: linear, start: 1, end: 0, untl: 1}}",
        "1:52: ppo.clip_range.untl: unknown key (got 1); did you mean 'until'? valid: start, end, until, kind",
    ),
    "unknown kind": (
        "ppo: {clip_range: {kind: cosin, start: 1, end: 0}}",
        "1:26: ppo.clip_range.kind: should be one of constant, linear, exponential, cosine (got 'cosin'); "
        "did you mean 'cosine'?",
    ),
    "no kind": (
        "ppo: {clip_range: {start: 1}}",
        "1:19: ppo.clip_range.kind: is required: one of constant, linear, exponential, cosine",
    ),
    "missing key": ("ppo:\n  clip_range: {kind: linear, end: 0}", "2:15: ppo.clip_range.start: is required"),
    "unknown setting of the world": (
        "world: {settings: {stoks: 1}}",
        "1:20: world.settings.stoks: unknown key (got 1); did you mean 'stocks'? ",
    ),
    "unknown word": (
        "policy: {activation: relo}",
        "1:22: policy.activation: should be one of tanh, relu, elu, gelu, silu (got 'relo'); did you mean 'relu'?",
    ),
    "another world": (
        "world: {name: brwal}",
        "1:15: world.name: should be a world (got 'brwal'); did you mean 'brawl-v1'?",
    ),
    "words for a number": ("seed: seven", "1:7: seed: should be a whole number (got 'seven')"),
    "out of range": ("ppo: {gamma: 1.5}", "1:14: ppo.gamma: should be less than or equal to 1 (got 1.5)"),
    "not a number": ("ppo: {ent_coef: .nan}", "1:17: ppo.ent_coef: should be a finite number (got nan)"),
    "endless": ("ppo: {vf_coef: .inf}", "1:16: ppo.vf_coef: should be a finite number (got inf)"),
    "a list for a mapping": ("ppo: [1, 2]", "1:6: ppo: should be a mapping (got [1, 2]); keys: n_steps, batch_size, "),
    "a mapping for a list": (
        "policy: {net_arch: {pi: {a: 1}}}",
        "1:25: policy.net_arch.pi: should be a list (got {'a': 1})",
    ),
    "a number in a list": (
        "policy: {net_arch: {pi: [64, x]}}",
        "1:30: policy.net_arch.pi.1: should be a whole number (got 'x')",
    ),
    "a weight": ("opponents: {random: -1}", "1:21: opponents.random: should be greater than or equal to 0 (got -1)"),
    "rules between keys": ("opponents: {}", "1:1: top level: opponents needs a weight above 0"),
    "null for a model": ("ppo:", "1:5: ppo: should be a mapping (got None); keys: n_steps, "),
    "a key twice": (
        "seed: 1\nppo: {}\nseed: 2",
        "3:1: seed: duplicate key, first at FILE:1:1",
    ),
    "an alias": ("seed: *s", "1:7: seed: alias *s "),
    "a tag": (
        "seed: !!python/object:os.system 1",
        "1:7: seed: tag 'tag:yaml.org,2002:python/object:os.system' is not allowed",
    ),
    "no YAML": ("ppo: {steps: 1\nseed: 2", "2:5: ppo: is not valid YAML: "),
    "a tab": (
        "ppo:\n\tsteps: 1",
        "2:1: ppo: is not valid YAML: while scanning for the next token found character '\\t'",
    ),
    "a list": ("- 1", "1:1: top level: should be a mapping (got [1]); keys: world, total_env_steps, "),
    "a word": ("quick", "1:1: top level: should be a mapping (got 'quick'); keys: world, "),
    "no such parent": (
        "extends: debg",
        "1:10: extends: should be a preset, or the path of a file ending in .yaml (got 'debg'); "
        "did you mean 'debug'? valid: ",
    ),
    "no such file": ("extends: gone.yaml", "1:10: extends: there is no file "),
    "a circle": (
        "extends: mine.yaml",
        "1:10: extends: is a circular reference: mine.yaml -> mine.yaml (got 'mine.yaml')",
    ),
    "control characters": ('"\\e[2J": 1', '1:1: "\\x1b[2J": unknown key (got 1); valid: world, '),
}


def show(file: Path, *overrides: str) -> tuple[int, str, str]:
    """Runs `ludus config show` in this process; returns exit code, output and error output."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with (
        mock.patch.object(sys, "argv", ["ludus", "config", "show", "brawl", "--config", str(file), *overrides]),
        mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(file.parent / "nobody")}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.environ.pop("LUDUS_CONFIG", None)
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    return (code if isinstance(code, int) else 0), out.getvalue(), err.getvalue()


def test_the_valid_file_is_valid(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(VALID)
    code, out, err = show(tmp_path / "mine.yaml")
    assert (code, err) == (0, "")
    assert {"total_env_steps: 4096", "seed: 7"} <= {*out.splitlines()}


@pytest.mark.parametrize("fault", list(MALFORMED))
def test_a_fault_is_told_with_place_key_expectation_and_nearest_key(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "mine.yaml"
    text, said = MALFORMED[fault]
    file.write_text(text)
    code, out, err = show(file)
    assert (code, out) == (2, "")
    summary, *lines = err.splitlines()
    assert re.fullmatch(r"\[ERROR\] 1 fault in the configuration", summary), err
    assert lines[0].startswith(f"{file}:{said.replace('FILE', str(file))}"), lines[0]
    assert len(lines) == 1
    assert err.isascii()
    assert "\x1b" not in err


def test_all_faults_are_told_at_once_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: base.yaml\nsed: 1\nppo: {stesp: 2, gamma: 7}\nworld:\n  settings: {stoks: 1}\n")
    (tmp_path / "base.yaml").write_text("policy: {activation: relo}\nppo: {gamma: 9}\n")
    done = subprocess.run(
        [LUDUS, "config", "show", "brawl", "--config", file, "ppo.n_epochs=0", "worlds.name=x"],
        capture_output=True, text=True, check=False, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Warp")]
    assert lines[0] == "[ERROR] 7 faults in the configuration"
    beginnings = [
        f"{tmp_path}/base.yaml:1:22: policy.activation: should be one of ",
        f"{file}:2:1: sed: unknown key (got 1); did you mean 'seed'?",
        f"{file}:3:7: ppo.stesp: unknown key (got 2); did you mean 'n_steps'?",
        f"{file}:3:24: ppo.gamma: should be less than or equal to 1 (got 7)",
        f"{file}:5:14: world.settings.stoks: unknown key (got 1); did you mean 'stocks'?",
        "command line: ppo.n_epochs=0: ppo.n_epochs: should be greater than or equal to 1 (got 0)",
        "command line: worlds.name=x: worlds: unknown key (got {'name': 'x'}); did you mean 'world'?",
    ]
    assert len(lines) == 1 + len(beginnings)
    for line, beginning in zip(lines[1:], beginnings, strict=True):
        assert line.startswith(beginning), line


PIECES = st.sampled_from(
    [
        *("\n", " ", "  ", ":", ": ", "- ", "[", "]", "{", "}", ",", "#", "&a ", "*a", "!!x ", "!", "|", ">", "'", '"'),
        *(
            "%",
            "?",
            "\t",
            "\x00",
            "\x1b[0m",
            "\u00e9",
            "\ufeff",
            "---\n",
            "...",
            "<<: ",
            "null",
            "true",
            ".nan",
            ".inf",
        ),
        *("-1", "1e999", "9" * 500, "x" * 300, '"\\ud800"', "\\", "@", "`", "~"),
        *("kind: linear", "extends: mine.yaml\n", "extends: debug\n"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """The valid file after a few random cuts, insertions and exchanges of pieces, lines and bytes."""
    text = VALID
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["cut", "insert", "replace", "double", "move"]))
        if kind == "move":
            lines = text.splitlines(keepends=True)
            if lines:
                line = lines.pop(draw(st.integers(0, len(lines) - 1)))
                lines.insert(draw(st.integers(0, len(lines))), line)
            text = "".join(lines)
        else:
            new = {"cut": "", "double": text[start:end] * 2}.get(kind)
            new = draw(PIECES | st.text(max_size=5)) if new is None else new
            text = text[:start] + new + text[start if kind == "insert" else end :]
    content = text.encode("utf-8", "surrogatepass")
    return content + draw(st.sampled_from([b"", b"\xff", b"\x80\n"]))


PLACE = re.compile(r"(.*mine\.yaml:[1-9]\d*:[1-9]\d*|.*debug\.yaml:\d+:\d+): .+: .+")


KEYS = sorted(set(re.findall(r"\w+", VALID)))


def check_answer(code: int, out: str, err: str) -> None:
    """Either all went well, or every line of the error has a place, a key and an expectation."""
    if code == 0:
        assert err == ""
        assert out.startswith("world:\n")
        return
    assert code == 2, err
    assert out == ""
    summary, *lines = err.splitlines()
    assert re.fullmatch(r"\[ERROR\] \d+ faults? in the configuration", summary), err
    assert lines
    for line in lines:
        assert PLACE.fullmatch(line), line
    assert err.replace("\n", "").isprintable()


@settings(max_examples=100)
@given(mutated())
def test_no_mutation_of_a_valid_file_gives_anything_but_0_or_2(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "mine.yaml"
    file.write_bytes(content)
    check_answer(*show(file))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["linear", "gru"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3), VALUES), min_size=1, max_size=4))
def test_no_value_in_any_place_gives_anything_but_0_or_2(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[list[str], Any]]
) -> None:
    data = parse_document(VALID, "valid").root.plain()
    for path, value in changes:
        place: Any = data
        for key in path[:-1]:
            place = place[key] if isinstance(place, dict) and isinstance(place.get(key), dict) else place
        if isinstance(place, dict) and path[-1] != "extends":
            place[path[-1]] = value
    file = tmp_path_factory.getbasetemp() / "mine.yaml"
    file.write_text(dump_yaml(data))
    check_answer(*show(file))


PATHS = st.sampled_from(
    ["ppo.n_steps", "seed", "world", "ppo.clip_range", "policy.x", "a", '"a', "..", "opponents", ""]
)
OVERRIDES = st.tuples(PATHS, PIECES | st.text(max_size=8)).map("=".join)


@settings(max_examples=50)
@given(st.lists(OVERRIDES, max_size=3))
def test_no_override_gives_anything_but_0_or_2(tmp_path_factory: pytest.TempPathFactory, overrides: list[str]) -> None:
    file = tmp_path_factory.getbasetemp() / "mine.yaml"
    file.write_text(VALID)
    code, _, err = show(file, *overrides)
    assert code in (0, 2)
    assert (code == 2) == err.startswith("[ERROR] "), err
    assert "Traceback" not in err
