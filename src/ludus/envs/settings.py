"""Turn the `config` mapping of an `EnvRequest` into a world's own settings model, or report all that is wrong."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ludus.core.errors import ConfigError, brief, did_you_mean
from ludus.core.text import short_text

CORES = os.cpu_count() or 1
MOST_WORKERS = max(32, 4 * CORES)  # worker processes of a batch: more would only be in each other's way

MOST_MATCHES = 20  # of an episode
_MOST_FAULTS = 10  # of one error: a file may have thousands

EpisodeSteps: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]
"""A setting for the length of an episode in a toy world."""


class EnvSettings(BaseModel):
    """Base of settings models: frozen, no unknown keys, no silent conversion between types.

    An agent's file holds the settings of its world, so every number has bounds and every list a length: an untrusted
    file cannot ask for an episode without end or a million processes. A test goes through all models.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MatchSettings(EnvSettings):
    """Base of the settings of worlds of matches.

    Attributes:
        matches_per_episode: Matches of an episode: a set against the same opponent in the same seats, over which all
            memories are kept. All of them are played, and who wins more of them wins the episode.
    """

    matches_per_episode: Annotated[int, Field(ge=1, le=MOST_MATCHES)] = 1


def host_threads(asked: int | None) -> int:
    """Return how many host threads to use: one per core, or fewer if fewer are asked for."""
    return CORES if asked is None else min(asked, CORES)


SettingsT = TypeVar("SettingsT", bound=EnvSettings)


def read_settings(model: type[SettingsT], config: Mapping[str, Any] | None, owner: str) -> SettingsT:
    """Return the checked settings of `owner`, such as `recall-v1`; raise a ConfigError that lists all faults."""
    try:
        return model.model_validate(dict(config or {}))
    except ValidationError as error:
        valid = tuple(model.model_fields)
        faults = []
        for fault in error.errors(include_url=False)[:_MOST_FAULTS]:
            key = short_text(".".join(str(part) for part in fault["loc"])) or "settings"
            if fault["type"] == "extra_forbidden":
                faults.append(f"unknown key {key!r}{did_you_mean(key, valid)}")
            else:
                faults.append(f"{key}: {short_text(fault['msg'])}, got {brief(fault['input'])}")
        more = error.error_count() - len(faults)
        raise ConfigError(
            f"settings of {owner}: {'; '.join(faults)}{f'; and {more} more' if more else ''}; "
            f"valid keys: {', '.join(valid) or 'none'}"
        ) from error
