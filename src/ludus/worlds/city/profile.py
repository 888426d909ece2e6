"""Load game profiles."""

import hashlib
from pathlib import Path

from ludus.config import PresetDirectory, dump_yaml, read_config_with_origins, read_layers
from ludus.core.errors import UnknownNameError
from ludus.worlds.city.config import EMBEDDED
from ludus.worlds.city.profile_schema import GameProfile

PROFILES = PresetDirectory("ludus.worlds.city", kind="profile")
_FILE_ENDINGS = (".yaml", ".yml")


def is_shipped(name: str) -> bool:
    """Return whether `game` means the embedded game or a profile that ships with Ludus."""
    return name == EMBEDDED or name in PROFILES.names()


def load_profile(name: str) -> GameProfile:
    """Return a profile by its name, or by the path of a file ending in .yaml, which may extend another.

    Raises:
        UnknownNameError: There is no profile of this name.
        ConfigFileError: The file has faults; all of them are listed, each with its place.
    """
    if "/" in name or name.endswith(_FILE_ENDINGS):
        file = Path(name)
    elif name in PROFILES.names():
        file = PROFILES.file(name)
    else:
        raise UnknownNameError("game profile", name, (*PROFILES.names(), "the path of a file ending in .yaml"))
    profile, origins = read_config_with_origins(GameProfile, read_layers(file, PROFILES))
    return profile.named(file.stem, hashlib.sha256(dump_yaml(origins.root.plain()).encode()).hexdigest()[:16])
