"""The configuration of a run: a user's defaults, a preset or a file, and overrides, in one checked `TrainConfig`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
    PresetDirectory,
    UserDefaults,
    extended_layers,
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
from ludus.config.layers import as_model, child_annotation
from ludus.config.validation import user_defaults_document
from ludus.core.errors import ConfigError, ConfigFault, ConfigFileError, UnknownNameError
from ludus.envs.registry import settings_model, world_id
from ludus.envs.settings import EnvSettings
from ludus.envs.stored import Outside, is_allowed, outside_names
from ludus.envs.world import find_world
from ludus.training.config import TrainConfig

_IN_PYTHON = Path("settings given in Python")  # files that they extend are relative to the working folder
_NAME, _SETTINGS = ("world", "name"), ("world", "settings")
_USER_DEFAULTS = {  # key of the user's file -> key of a run
    "device": ("world", "device"),
    "webhook_env": ("monitoring", "webhook", "address_env"),
    "wandb_project": ("monitoring", "wandb", "project"),
}


def load_run_config(
    world: str,
    preset: str | None = None,
    file: Path | Document | None = None,
    overrides: Sequence[str] = (),
    sections: Sequence[Document] = (),
) -> TrainConfig:
    """Return the settings of a run.

    Each layer wins over those before it: the user's defaults, the preset or the file with all that it
    extends, the sections, and the overrides.

    Args:
        world: A world, such as `brawl` or `gym:CartPole-v1`; it becomes `world.name` unless a layer says so itself.
        preset: Name of a preset of the world; None takes the world's `default_preset` if no file is given.
        file: A file of the user's own, or its content, which may extend a preset.
        overrides: `key.path=value` each, in YAML.
        sections: Settings given in Python.

    Raises:
        UnknownNameError: There is no such world or preset.
        ConfigError: Both a preset and a file are given.
        ConfigFileError: Files or overrides have faults; all of them are listed.
    """
    return load_run_config_with_origins(world, preset, file, overrides, sections)[0]


def load_run_config_with_origins(
    world: str,
    preset: str | None,
    file: Path | Document | None,
    overrides: Sequence[str],
    sections: Sequence[Document] = (),
) -> tuple[TrainConfig, Origins]:
    """Do what `load_run_config` does, and also return where each setting comes from."""
    return read_run_layers(world, run_layers(world, preset, file, overrides, sections))


def run_layers(
    world: str,
    preset: str | None,
    file: Path | Document | None,
    overrides: Sequence[str],
    sections: Sequence[Document] = (),
) -> list[Document]:
    """Return the layers of the settings of a run, the most general first, without the user's defaults.

    Raises:
        UnknownNameError: There is no such world or preset.
        ConfigError: Both a preset and a file are given.
    """
    if preset is not None and file is not None:
        raise ConfigError(
            f"both preset {preset!r} and file {file} are given; choose one, or let the file extend {preset}"
        )
    directory = PresetDirectory(find_world(world).package)
    start = file if file is not None else _preset_file(directory, world, preset)
    if isinstance(start, Document):
        files = extended_layers(start, _IN_PYTHON, directory)
    else:
        files = read_layers(start, directory) if start is not None else []
    return [_world_layer(world), *files, *sections, *read_overrides(overrides)]


def read_run_layers(world: str, layers: Sequence[Document]) -> tuple[TrainConfig, Origins]:
    """Return the settings of a run from its layers and the user's defaults, and where each setting comes from.

    Raises:
        ConfigFileError: The layers have faults; all of them are listed.
    """
    layers = [*_user_layers(layers), *layers]
    checks: list[Check] = [partial(_check_world, world), _check_finite, partial(_check_code, world)]
    settings = settings_model(world)
    if settings is not None:
        checks.append(partial(_check_settings, settings))
    return read_config_with_origins(TrainConfig, layers, checks)


def world_of_file(file: Path) -> str:
    """Return the world that a configuration file, or one that it extends, says it is for.

    Raises:
        ConfigFileError: The file cannot be read.
        ConfigError: It does not say.
    """
    *_, own = documents = read_layers(file, PresetDirectory(""))  # its presets are not known before its world is
    if own.root.content is None and own.faults:
        raise ConfigFileError(own.faults)
    world = _named_world(documents)
    if world is not None:
        return world
    raise ConfigError(f"{file} does not say its world; give it world.name, or use: ludus verify WORLD --config {file}")


def world_of_settings(settings: Document | None, sections: Sequence[Document]) -> str:
    """Return the world of settings given in Python, or raise ConfigError if they do not say."""
    documents = [] if settings is None else extended_layers(settings, _IN_PYTHON, PresetDirectory(""))
    world = _named_world([*documents, *sections])
    if world is None:
        raise ConfigError(
            "the mapping does not say its world; add 'world': {'name': ...} to it"
            if settings is not None
            else "nothing says which world: pass its name first, or an environment as env="
        )
    return world


def _named_world(documents: Sequence[Document]) -> str | None:
    for name in (document.root.find(_NAME) for document in reversed(documents)):
        if name is not None and isinstance(name.content, str):
            return name.content
    return None


def default_preset(world: str) -> str | None:
    """Return the preset of a run that names none; None for a world that has no presets.

    Raises:
        UnknownNameError: There is no such world.
        ConfigError: The world has presets, but not the one that it names as its default.
    """
    record = find_world(world)
    names = PresetDirectory(record.package).names()
    default = record.default_preset() if callable(record.default_preset) else record.default_preset
    if default in names:
        return default
    if names:
        raise ConfigError(f"{world} has no preset {default}; choose one with --preset: {', '.join(names)}")
    return None


def run_title(world: str, preset: str | None = None, file: Path | None = None) -> str:
    """Return the title of a run, with which the name of its folder begins: the world, and the preset or the file."""
    about = file.stem if file is not None else preset or default_preset(world)
    return f"{world.replace(':', '-')}-{about or 'run'}"


def _preset_file(directory: PresetDirectory, world: str, preset: str | None) -> Path | None:
    """Return the file of a preset; None for a world that has none, whose runs then begin with the plain defaults."""
    name = preset if preset is not None else default_preset(world)
    return None if name is None else directory.file(name)


def _user_layers(layers: Sequence[Document]) -> list[Document]:
    """Return the user's defaults, the lowest layer of a run.

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
    """Raise if a file is for another world than the requested one."""
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
    """Find faults of the world's own settings, and of the overrides anywhere in the run."""
    faults = part_check(_SETTINGS, model)(root)
    base = root.find(_SETTINGS)
    if faults:
        return faults  # every override would repeat them
    found: list[ConfigFault] = []
    for path, parts in _laid_over_settings(root):
        layers = [node for node in (base, *parts) if node is not None and isinstance(node.content, dict)]
        keys = tuple(map(str, path))
        found += part_check(keys, model)(single(keys, reduce(partial(_with_overrides, model), layers)))
    return found


def _check_code(world: str, root: Node) -> Sequence[ConfigFault]:
    """Find what a file names that can start programs: the user has to name it, on the command line or in Python."""
    faults: list[ConfigFault] = []
    for path in (_SETTINGS, *(path for path, _ in _laid_over_settings(root))):
        part = root.find(path)
        for named in outside_names(world, _mapping(part)):
            leaf = part.find(named.path) if part is not None else None
            if leaf is not None and named.what.is_code and not _is_named_by_user(named, leaf):
                key, expectation = (*path, *named.path), f"names a {named.what.kind}, which can start programs"
                hint = "if you trust it, name it on the command line, or name that very file with --allow-files"
                faults.append(ConfigFault(str(leaf.origin), show_path(key), expectation, short(named.value), hint))
    return faults


def _is_named_by_user(named: Outside, leaf: Node) -> bool:
    """Return whether a value comes from the command line or Python, or is allowed where a file says it."""
    return leaf.origin.line is None or is_allowed(named, Path(leaf.origin.source))


def _mapping(node: Node | None) -> Mapping[str, Any]:
    plain = None if node is None else node.plain()
    return plain if isinstance(plain, Mapping) else {}


def _with_overrides(annotation: Any, lower: Node, upper: Node) -> Node:  # noqa: ANN401 - whatever a model says
    """Do to the nodes of a document what `ludus.envs.registry` does to settings."""
    if as_model(annotation) is None or not isinstance(lower.content, dict) or not isinstance(upper.content, dict):
        return upper
    merged = dict(lower.content)
    for key, node in upper.content.items():
        inner = child_annotation(annotation, key)
        merged[key] = _with_overrides(inner, merged[key], node) if key in merged else node
    return replace(upper, content=merged)


def _laid_over_settings(root: Node) -> Iterator[tuple[KeyPath, list[Node]]]:
    """Yield the path of every part of a run that overrides the world's settings, and the overrides."""
    curriculum, common = root.child("curriculum"), root.find(("evaluation", "settings"))
    phases = len(curriculum.content) if curriculum and isinstance(curriculum.content, list) else 0
    paths: list[KeyPath] = [("curriculum", place, "world", "settings") for place in range(phases)]
    for path in (*paths, ("evaluation", "settings")):
        part = root.find(path)
        if part is not None:
            yield path, [part]
    modes = root.find(("evaluation", "modes"))
    for name, part in modes.content.items() if modes is not None and isinstance(modes.content, dict) else ():
        yield ("evaluation", "modes", name), [*([common] if common is not None else []), part]


def _check_finite(root: Node, path: KeyPath = ()) -> Sequence[ConfigFault]:
    """Raise on NaN or Inf anywhere in the settings: no file of a run can hold them."""
    content = root.content
    if isinstance(content, float) and not math.isfinite(content):
        return [ConfigFault(str(root.origin), show_path(path), "should be a finite number", short(content))]
    below: list[tuple[str | int, Node]] = []
    if isinstance(content, dict):
        below.extend(content.items())
    elif isinstance(content, list):
        below.extend(enumerate(content))
    return [fault for part, node in below for fault in _check_finite(node, (*path, part))]
