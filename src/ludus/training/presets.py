"""The configuration of a run: a user's defaults, a preset or a file, and overrides, in one checked `TrainConfig`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from ludus.config import (
    Check,
    Document,
    KeyPath,
    Node,
    Origin,
    Origins,
    Shelf,
    UserDefaults,
    merge_layers,
    part_check,
    read_config,
    read_config_with_origins,
    read_layers,
    read_overrides,
    short,
    show_path,
    single,
    suggest,
)
from ludus.config.schema import as_model, child_annotation
from ludus.config.user_defaults import user_defaults_document
from ludus.core.errors import ConfigError, ConfigFileError, UnknownNameError
from ludus.core.faults import ConfigFault
from ludus.envs.registry import preset_package, settings_model, world_id
from ludus.envs.settings import EnvSettings
from ludus.training.config import TrainConfig

FIRST_PRESETS = ("quick", "walk", "default")  # taken in this order when none is named

_NAME, _SETTINGS = ("world", "name"), ("world", "settings")
_USER_DEFAULTS = {  # key of the user's file -> key of a run
    "device": ("world", "device"),
    "webhook_env": ("monitoring", "webhook", "address_env"),
    "wandb_project": ("monitoring", "wandb", "project"),
}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A run's settings, and where each of them comes from."""

    config: TrainConfig
    origins: Origins


def load_run_config(
    world: str, preset: str | None = None, file: Path | None = None, overrides: Sequence[str] = ()
) -> TrainConfig:
    """Returns the settings of a run.

    Each layer wins over those before it: the user's defaults, the preset or the file with all that it
    extends, and the overrides.

    Args:
        world: A world, such as `brawl` or `gym:CartPole-v1`; it becomes `world.name` unless a layer says so itself.
        preset: Name of a preset of the world; None takes `quick`, `walk` or `default`, the first there is, if no file
            is given.
        file: A file of the user's own, which may extend a preset.
        overrides: `key.path=value` each, in YAML.

    Raises:
        UnknownNameError: There is no such world or preset.
        ConfigError: Both a preset and a file are given.
        ConfigFileError: Files or overrides have faults; all of them are listed.
    """
    return load_run_config_with_origins(world, preset, file, overrides).config


def load_run_config_with_origins(
    world: str, preset: str | None = None, file: Path | None = None, overrides: Sequence[str] = ()
) -> RunConfig:
    """Does what `load_run_config` does, and also says where each setting comes from."""
    if preset is not None and file is not None:
        raise ConfigError(
            f"both preset {preset!r} and file {file} are given; choose one, or let the file extend {preset}"
        )
    shelf = Shelf(preset_package(world))
    start = file if file is not None else _preset_file(shelf, world, preset)
    layers = [
        _world_layer(world),
        *(read_layers(start, shelf) if start is not None else ()),
        *read_overrides(overrides),
    ]
    layers = [*_user_layers(layers), *layers]
    checks: list[Check] = [partial(_check_world, world), _check_finite]
    settings = settings_model(world)
    if settings is not None:
        checks.append(partial(_check_settings, settings))
    return RunConfig(*read_config_with_origins(TrainConfig, layers, checks))


def world_of_file(file: Path) -> str:
    """Returns the world that a configuration file, or one that it extends, says it is for.

    Raises:
        ConfigFileError: The file cannot be read.
        ConfigError: It does not say.
    """
    *_, own = documents = read_layers(file, Shelf(""))  # its presets are not known before its world is
    if own.root.content is None and own.faults:
        raise ConfigFileError(own.faults)
    names = (document.root.find(_NAME) for document in reversed(documents))
    for name in names:
        if name is not None and isinstance(name.content, str):
            return name.content
    raise ConfigError(f"{file} does not say its world; give it world.name, or use: ludus verify WORLD --config {file}")


def _preset_file(shelf: Shelf, world: str, preset: str | None) -> Path | None:
    """Returns the file of a preset; None for a world that has none, whose runs then begin with the plain defaults."""
    names = shelf.names()
    if preset is not None:
        return shelf.file(preset)
    for name in FIRST_PRESETS:
        if name in names:
            return shelf.file(name)
    if names:
        raise ConfigError(
            f"{world} has no preset {' or '.join(FIRST_PRESETS)}; choose one with --preset: {', '.join(names)}"
        )
    return None


def _user_layers(layers: Sequence[Document]) -> list[Document]:
    """Returns the user's defaults that a run takes, below all its layers.

    A default fills in what a part needs that is there anyway; it never switches on a report to the network.
    """
    document = user_defaults_document()
    read_config(UserDefaults, [document])  # says all that is wrong with the file, not only with what is used here
    run = merge_layers([layer.root for layer in layers if isinstance(layer.root.content, dict)])
    taken: list[Document] = []
    for key, path in _USER_DEFAULTS.items():
        node, part = document.root.child(key), run.find(path[:-1])
        if node is not None and node.content is not None and part is not None and isinstance(part.content, dict):
            taken.append(Document(single(path, node)))
    return taken


def _world_layer(world: str) -> Document:
    origin = Origin("command line: WORLD")
    return Document(single(_NAME, Node(world, origin, origin)))


def _check_world(world: str, root: Node) -> Sequence[ConfigFault]:
    """Refuses a file that is for another world than the one that was asked for."""
    node = root.find(_NAME)
    if node is None or not isinstance(node.content, str):
        return ()
    place, key, got = str(node.origin), show_path(_NAME), short(node.content)
    try:
        same = world_id(node.content) == world_id(world)
    except UnknownNameError as error:
        return [ConfigFault(place, key, "should be a world", got, suggest(node.content, error.valid))]
    return () if same else [ConfigFault(place, key, f"should be {world}, the world that was asked for", got)]


def _check_settings(model: type[EnvSettings], root: Node) -> Sequence[ConfigFault]:
    """Finds faults of the world's own settings, and of those that are laid over them somewhere in the run."""
    faults = part_check(_SETTINGS, model)(root)
    base = root.find(_SETTINGS)
    if faults:
        return faults  # they would come again with everything that is laid over them
    found: list[ConfigFault] = []
    for path, parts in _laid_over_settings(root):
        layers = [node for node in (base, *parts) if node is not None and isinstance(node.content, dict)]
        keys = tuple(map(str, path))
        found += part_check(keys, model)(single(keys, reduce(partial(_with_overrides, model), layers)))
    return found


def _with_overrides(annotation: Any, lower: Node, upper: Node) -> Node:  # noqa: ANN401 - whatever a model says
    """Does to the nodes of a document what `ludus.envs.overrides` does to settings."""
    if as_model(annotation) is None or not isinstance(lower.content, dict) or not isinstance(upper.content, dict):
        return upper
    merged = dict(lower.content)
    for key, node in upper.content.items():
        inner = child_annotation(annotation, key)
        merged[key] = _with_overrides(inner, merged[key], node) if key in merged else node
    return replace(upper, content=merged)


def _laid_over_settings(root: Node) -> Iterator[tuple[KeyPath, list[Node]]]:
    """Gives the path of every part of a run that changes the world's settings, and what is laid over them there."""
    curriculum, common = root.child("curriculum"), root.find(("evaluation", "settings"))
    paths: list[KeyPath] = [
        ("curriculum", place, "world", "settings")
        for place in range(len(curriculum.content) if curriculum and isinstance(curriculum.content, list) else 0)
    ]
    paths += [("evaluation", "settings")]
    for path in paths:
        part = root.find(path)
        if part is not None:
            yield path, [part]
    modes = root.find(("evaluation", "modes"))
    for name, part in modes.content.items() if modes is not None and isinstance(modes.content, dict) else ():
        yield ("evaluation", "modes", name), [*([common] if common is not None else []), part]


def _check_finite(root: Node, path: KeyPath = ()) -> Sequence[ConfigFault]:
    """Refuses numbers that are not finite, wherever they are: no file of a run can hold them."""
    content = root.content
    if isinstance(content, float) and not math.isfinite(content):
        return [ConfigFault(str(root.origin), show_path(path), "should be a finite number", short(content))]
    below: list[tuple[str | int, Node]] = []
    if isinstance(content, dict):
        below.extend(content.items())
    elif isinstance(content, list):
        below.extend(enumerate(content))
    return [fault for part, node in below for fault in _check_finite(node, (*path, part))]
