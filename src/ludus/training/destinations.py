"""Where runs report to over the network: where this user has said so once, never because a run folder says so.

A run folder that was passed on may switch on the webhook or W&B. So the destinations of the runs that a user starts
are remembered in a file beside the user defaults, and a run that is resumed reports to no others.
"""

import json
import logging
from contextlib import suppress

from ludus.config import read_user_defaults, user_defaults_file
from ludus.core.errors import FormatError, StoreError, brief
from ludus.core.files import read_json_object, write_text_atomic
from ludus.training.config import MonitoringConfig, TrainConfig, WebhookConfig

FILE = "destinations.json"

_MOST_BYTES = 1 << 20
_KEY = "destinations"

logger = logging.getLogger(__name__)


def remember(monitoring: MonitoringConfig) -> None:
    """Note where a run that the user starts reports to; a folder that cannot be written only means a warning later."""
    known, named = _remembered(), set(_destinations(monitoring).values())
    if named - known:
        with suppress(StoreError):
            write_text_atomic(
                user_defaults_file().with_name(FILE), json.dumps({_KEY: sorted(known | named)}, indent=1) + "\n"
            )


def withhold(config: TrainConfig) -> TrainConfig:
    """Return the settings of a run folder without destinations that the user never named, which are warned of."""
    defaults = read_user_defaults()
    # The address in a variable of Ludus's own is the user's, whoever switches the webhook on.
    own = (WebhookConfig(), *((WebhookConfig(address_env=defaults.webhook_env),) if defaults.webhook_env else ()))
    known = _remembered().union(*(_destinations(MonitoringConfig(webhook=each)).values() for each in own))
    unknown = {name: to for name, to in _destinations(config.monitoring).items() if to not in known}
    for name, to in unknown.items():
        logger.warning(
            "[WARN] the run's folder asks to report to %s, which no run that you started on this machine has done: "
            "monitoring.%s is off; to report, add monitoring.%s={...} to the command", brief(to), name, name,
        )  # fmt: skip
    off = config.monitoring.model_copy(update=dict.fromkeys(unknown))
    return config.model_copy(update={"monitoring": off}) if unknown else config


def _destinations(monitoring: MonitoringConfig) -> dict[str, str]:
    """Return where runs with these settings report to over the network, by the name of the setting."""
    found = {}
    if monitoring.webhook is not None:
        found["webhook"] = f"the address in {monitoring.webhook.address_env}"
    if monitoring.wandb is not None and monitoring.wandb.mode == "online":
        found["wandb"] = f"W&B: {json.dumps([monitoring.wandb.entity, monitoring.wandb.project])}"
    return found


def _remembered() -> set[str]:
    try:
        listed = read_json_object(user_defaults_file().with_name(FILE), limit=_MOST_BYTES).get(_KEY)
    except FormatError:  # there is none
        return set()
    return {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else set()
