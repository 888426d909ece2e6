"""Configuration: YAML files and overrides with the place of every value, layers, presets and checked models."""

from ludus.config.layers import PresetDirectory, extended_layers, merge_layers, read_layers, read_overrides
from ludus.config.nodes import KeyPath, Node, Origin, Plain, list_faults, short, show_path, single, suggest
from ludus.config.python import as_document
from ludus.config.validation import (
    Check,
    Origins,
    UserDefaults,
    part_check,
    read_config,
    read_config_with_origins,
    read_user_defaults,
    user_defaults_file,
)
from ludus.config.yaml import Document, dump_yaml, parse_document, read_document, read_yaml

__all__ = [
    "Check",
    "Document",
    "KeyPath",
    "Node",
    "Origin",
    "Origins",
    "Plain",
    "PresetDirectory",
    "UserDefaults",
    "as_document",
    "dump_yaml",
    "extended_layers",
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
