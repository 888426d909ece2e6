"""Configuration: YAML files and overrides with the place of every value, layers, presets and checked models."""

from ludus.config.dump import dump_yaml
from ludus.config.layers import merge_layers, read_layers
from ludus.config.node import KeyPath, Node, Origin, Plain, show_path, single
from ludus.config.overrides import read_overrides
from ludus.config.reader import Document, parse_document, read_document, read_yaml
from ludus.config.reading import Check, Origins, part_check, read_config, read_config_with_origins
from ludus.config.shelf import Shelf
from ludus.config.shown import list_faults, short, suggest
from ludus.config.user_defaults import UserDefaults, read_user_defaults, user_defaults_file

__all__ = [
    "Check",
    "Document",
    "KeyPath",
    "Node",
    "Origin",
    "Origins",
    "Plain",
    "Shelf",
    "UserDefaults",
    "dump_yaml",
    "list_faults",
    "merge_layers",
    "parse_document",
    "part_check",
    "read_config",
    "read_config_with_origins",
    "read_document",
    "read_layers",
    "read_overrides",
    "read_user_defaults",
    "read_yaml",
    "short",
    "show_path",
    "single",
    "suggest",
    "user_defaults_file",
]
