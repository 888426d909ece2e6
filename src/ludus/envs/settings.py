"""Turns the `config` mapping of an `EnvRequest` into a world's own settings model, or says all that is wrong."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ludus.core.errors import ConfigError, did_you_mean


class EnvSettings(BaseModel):
    """Base of settings models: frozen, no unknown keys, no silent conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


SettingsT = TypeVar("SettingsT", bound=EnvSettings)


def read_settings(model: type[SettingsT], config: Mapping[str, Any] | None, owner: str) -> SettingsT:
    """Returns the checked settings of `owner`, such as `recall-v1`.

    Raises:
        ConfigError: Keys are unknown or values are wrong; all of them are listed at once.
    """
    try:
        return model.model_validate(dict(config or {}))
    except ValidationError as error:
        valid = tuple(model.model_fields)
        faults = []
        for fault in error.errors():
            key = ".".join(str(part) for part in fault["loc"]) or "settings"
            if fault["type"] == "extra_forbidden":
                faults.append(f"unknown key {key!r}{did_you_mean(key, valid)}")
            else:
                faults.append(f"{key}: {fault['msg']}, got {fault['input']!r}")
        raise ConfigError(
            f"settings of {owner}: {'; '.join(faults)}; valid keys: {', '.join(valid) or 'none'}"
        ) from error
