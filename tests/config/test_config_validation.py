"""Layers into a model: every fault at once with its place, key, expectation and the nearest valid key."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NewType

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, RootModel, model_validator

from ludus.config import (
    Node,
    parse_document,
    part_check,
    read_config,
    read_config_with_origins,
    read_document,
    read_overrides,
    show_path,
)
from ludus.config.yaml import MAX_FAULTS
from ludus.core.errors import ConfigError, ConfigFault, ConfigFileError, UnknownNameError
from ludus.core.schedules import ScheduleConfig


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Box(Frozen):
    shape: Literal["box"] = "box"
    width: float = 1.0


class Ball(Frozen):
    shape: Literal["ball", "sphere"] = "ball"
    radius: float = Field(gt=0)


class Cat(Frozen):
    lives: int


class Dog(Frozen):
    bones: int
    name: str = "rex"


class Secret(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    variable: str = Field(default="X", pattern="^[A-Z]+$")


class Stage(Frozen):
    name: str
    mix: dict[Literal["self", "bots"], float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_all(self) -> "Stage":
        if self.name == "all":
            raise ValueError("stage 'all' needs a mix")
        return self


def _check_colour(raw: object) -> object:
    if raw == "rde":
        raise UnknownNameError("colour", "rde", ["red", "blue"])
    return raw


Metres = NewType("Metres", float)
Words = RootModel[list[str]]


class Model(Frozen):
    steps: int = 1
    flag: bool = False
    name: str = "x"
    path: Path | None = None
    clip: ScheduleConfig | None = None
    thing: Annotated[Box | Ball, Field(discriminator="shape")] = Box()
    other: Annotated[Box | Ball, Discriminator("shape")] | None = None
    pet: Cat | Dog | None = None
    size: int | Literal["auto", "all"] | None = None
    number_or_list: int | list[int] = 1
    stages: tuple[Stage, ...] = ()
    pair: tuple[int, str] = (1, "a")
    weights: dict[str, Box] = Field(default_factory=dict)
    open: dict[str, Any] = Field(default_factory=dict)
    length: Metres = Metres(1.0)
    words: Words = Words(["a"])
    colour: Annotated[str, BeforeValidator(_check_colour)] = "red"
    secret: Secret = Secret()
    kind: Literal["fast", "slow"] = "fast"
    renamed: int = Field(default=1, alias="new-name")


def faults(text: str, *overrides: str) -> list[str]:
    layers = [parse_document(text, "f.yaml"), *read_overrides(overrides)]
    with pytest.raises(ConfigFileError) as caught:
        read_config(Model, layers)
    assert caught.value.left_out == 0
    return [str(fault) for fault in caught.value.faults]


KEYS = ", ".join(field.alias or name for name, field in Model.model_fields.items())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("stepz: 1", f"1:1: stepz: unknown key (got 1); did you mean 'steps'? valid: {KEYS}"),
        ("qqqqqq: 1", f"1:1: qqqqqq: unknown key (got 1); valid: {KEYS}"),
        ("steps: many", "1:8: steps: should be a whole number (got 'many')"),
        ("steps: 1.5", "1:8: steps: should be a whole number (got 1.5)"),
        ("steps: [1]", "1:8: steps: should be a whole number (got [1])"),
        ("steps:", "1:7: steps: should be a whole number (got None)"),
        ("flag: 3", "1:7: flag: should be true or false (got 3)"),
        ("name: 3", "1:7: name: should be text (got 3)"),
        ("path: [a]", "1:7: path: should be a path (got ['a'])"),
        (
            "clip: {kind: linea, start: 1, end: 0}",
            "1:14: clip.kind: should be one of constant, linear, exponential, cosine (got 'linea'); "
            "did you mean 'linear'?",
        ),
        ("clip: {start: 1, end: 0}", "1:7: clip.kind: is required: one of constant, linear, exponential, cosine"),
        (
            "clip: {kind: linear, start: 1, end: 0, utnil: 1}",
            "1:40: clip.utnil: unknown key (got 1); did you mean 'until'? valid: start, end, until, kind",
        ),
        ("clip: .nan", "1:7: clip: should be a finite number (got nan)"),
        (
            "clip: fast",
            "1:7: clip: should be a mapping (got 'fast'); with the key kind, one of constant, linear, "
            "exponential, cosine, or the short form of one",
        ),
        ("thing: {shape: ball, radius: 0}", "1:30: thing.radius: should be greater than 0 (got 0)"),
        (
            "thing: {shape: sphere, radios: 1, radius: 1}",
            "1:24: thing.radios: unknown key (got 1); did you mean 'radius'? valid: shape, radius",
        ),
        ("thing: [1]", "1:8: thing: should be a mapping (got [1]); with the key shape, one of box, ball, sphere"),
        ("other: {shape: ball}", "1:8: other.radius: is required"),
        ("pet: {lives: many}", "1:14: pet.lives: should be a whole number (got 'many')"),
        ("pet: {bones: 1, nam: x}", "1:17: pet.nam: unknown key (got 'x'); did you mean 'name'? valid: bones, name"),
        ("pet: 3", "1:6: pet: should be a mapping (got 3); keys: lives"),
        (
            "size: al",
            "1:7: size: should be a whole number, or should be one of auto, all (got 'al'); did you mean 'all'?",
        ),
        ("number_or_list: [1, x]", "1:21: number_or_list.1: should be a whole number (got 'x')"),
        ("number_or_list: x", "1:17: number_or_list: should be a whole number, or should be a list (got 'x')"),
        (
            "stages:\n  - name: a\n  - nmae: b\n    name: c",
            "3:5: stages.1.nmae: unknown key (got 'b'); did you mean 'name'? valid: name, mix",
        ),
        ("stages:\n  - {}", "2:5: stages.0.name: is required"),
        ("stages:\n  - name: all", "2:5: stages.0: stage 'all' needs a mix"),
        (
            "stages:\n  - {name: a, mix: {slef: 1}}",
            "2:21: stages.0.mix.slef: should be one of self, bots (got 1); did you mean 'self'?",
        ),
        ("stages: {name: a}", "1:9: stages: should be a list (got {'name': 'a'})"),
        ("pair: [1]", "1:7: pair.1: is required"),
        ("pair: [x, b]", "1:8: pair.0: should be a whole number (got 'x')"),
        (
            "weights: {a: {widht: 2}}",
            "1:15: weights.a.widht: unknown key (got 2); did you mean 'width'? valid: shape, width",
        ),
        ("weights: {'a b': 3}", '1:18: weights."a b": should be a mapping (got 3); keys: shape, width'),
        ("weights: 3", "1:10: weights: should be a mapping (got 3)"),
        ("length: long", "1:9: length: should be a number (got 'long')"),
        ("words: [a, 1]", "1:12: words.1: should be text (got 1)"),
        ("colour: rde", "1:9: colour: unknown colour 'rde' (did you mean 'red'?); valid: red, blue (got 'rde')"),
        ("secret: {variable: discord.com/x}", "1:20: secret.variable: String should match pattern '^[A-Z]+$'"),
        ("name: [https://example.com/token]", "1:7: name: should be text (got ['https://...'])"),
        ("kind: fats", "1:7: kind: should be one of fast, slow (got 'fats'); did you mean 'fast'?"),
        ("new-name: x", "1:11: new-name: should be a whole number (got 'x')"),
        (f"steps: {'x' * 5000}", f"1:8: steps: should be a whole number (got '{'x' * 27}...{'x' * 28}')"),
        ("- 1", f"1:1: top level: should be a mapping (got [1]); keys: {KEYS}"),
        ("hello", f"1:1: top level: should be a mapping (got 'hello'); keys: {KEYS}"),
    ],
)
def test_faults_by_hand(text: str, line: str) -> None:
    assert faults(text) == [f"f.yaml:{line}"]


def test_all_faults_in_the_order_of_the_file_and_then_the_command_line() -> None:
    text = "zzz: 1\nthing: {shape: ball, radius: 0}\nsteps: x\nsteps: y\nflag: !a 2\n"
    found = faults(text, "name=[1]", "stages=[{}]")
    assert [line.split(": ")[0] for line in found] == [
        "f.yaml:1:1", "f.yaml:2:30", "f.yaml:4:1", "f.yaml:4:8", "f.yaml:5:7", "command line", "command line",
    ]  # fmt: skip
    assert found[5:] == [
        "command line: name=[1]: name: should be text (got [1])",
        "command line: stages=[{}]: stages.0.name: is required",
    ]


def test_the_error_is_one_of_ours_and_says_how_many() -> None:
    with pytest.raises(ConfigError, match=r"^1 fault.*\nf.yaml:1:1: a: "):
        read_config(Model, [parse_document("a: 1", "f.yaml")])
    many = "".join(f"k{index}: 1\n" for index in range(MAX_FAULTS + 7))
    with pytest.raises(ConfigFileError, match=rf"^{MAX_FAULTS + 7} faults") as caught:
        read_config(Model, [parse_document(many, "f.yaml")])
    assert len(caught.value.faults) == MAX_FAULTS
    assert str(caught.value).endswith("\nand 7 more")


def test_a_file_that_cannot_be_read_is_not_checked_further() -> None:
    layers = [parse_document("a: [", "f.yaml"), parse_document("bad: 1", "g.yaml")]
    with pytest.raises(ConfigFileError) as caught:
        read_config(Model, layers)
    assert [fault.place for fault in caught.value.faults] == ["f.yaml:1:5"]


def test_good_layers_become_a_frozen_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("steps: 5\nclip: 0.2\nthing: {shape: ball, radius: 2}\nstages: [{name: a, mix: {self: 1}}]\n")
    layers = [parse_document("", "empty"), read_document(file), *read_overrides(["steps=7", "thing.radius=3"])]
    model, origins = read_config_with_origins(Model, layers)
    assert (model.steps, model.thing) == (7, Ball(radius=3))
    assert model.clip is not None
    assert model.clip.value(0.5) == 0.2
    with pytest.raises(ValueError, match="frozen"):
        model.steps = 8
    shown = {
        ("steps",): "command line: steps=7",
        ("thing",): f"{file}:3:1",
        ("thing", "shape"): f"{file}:3:16",
        ("thing", "radius"): "command line: thing.radius=3",
        ("clip", "level"): f"{file}:2:7",
        ("stages", 0, "mix", "self"): f"{file}:4:32",
    }
    for path, place in shown.items():
        assert str(origins.of(path)) == place, show_path(path)
    assert origins.of(("flag",)) is None
    assert origins.of(("stages", 0, "other")) is None


def test_parts_that_the_model_leaves_open_are_checked_too() -> None:
    layers = [parse_document("open: {widht: 1}\nsteps: x\n", "f.yaml")]

    def never(root: Node) -> list[ConfigFault]:
        node = root.find(("steps",))
        assert node is not None
        return [ConfigFault(str(node.origin), "steps", "said already"), ConfigFault("elsewhere", "a", "b")]

    with pytest.raises(ConfigFileError) as caught:
        read_config(Model, layers, [part_check(("open",), Box), part_check(("gone",), Box), never])
    assert [str(fault) for fault in caught.value.faults] == [
        "f.yaml:1:8: open.widht: unknown key (got 1); did you mean 'width'? valid: shape, width",
        "f.yaml:2:8: steps: should be a whole number (got 'x')",
        "elsewhere: a: b",
    ]
    assert read_config(Model, [parse_document("open: {width: 2}", "f")], [part_check(("open",), Box)]).open == {
        "width": 2
    }


class Trimmed(BaseModel):
    """A model that has lost a key."""

    model_config = ConfigDict(extra="forbid")
    removed_keys: ClassVar[dict[str, str]] = {"overlap": "learner.md#overlap"}

    n_steps: int = 8


def test_a_removed_key_says_so_and_where_to_read_why() -> None:
    with pytest.raises(ConfigFileError) as caught:
        read_config(Trimmed, [parse_document("overlap: true\n", "mine.yaml")])
    (fault,) = caught.value.faults
    assert (fault.place, fault.key, fault.expectation) == ("mine.yaml:1:1", "overlap", "was removed")
    assert fault.hint == "docs/research/learner.md#overlap says why"
