"""The option `--device` of commands that play: which device is meant."""

from typing import TYPE_CHECKING

from ludus.core.errors import DeviceError

if TYPE_CHECKING:
    from ludus.envs.base import EnvSpec


def choose_device(asked: str, spec: "EnvSpec") -> str:
    """Returns the device to play on; `auto` takes a GPU if there is one and the world can live on it."""
    import torch

    if asked != "auto":
        if asked.partition(":")[0] not in spec.device_types:
            raise DeviceError(f"{spec.id} lives on {' or '.join(spec.device_types)}, not on {asked}; or use auto")
        return asked
    return "cuda" if torch.cuda.is_available() and "cuda" in spec.device_types else "cpu"
