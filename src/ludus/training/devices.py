"""Which device a run uses, and the settings that make it fast there."""

import torch

from ludus.core.errors import DeviceError
from ludus.envs.registry import make_env
from ludus.training.config import TrainConfig

AUTO = "auto"


def choose_device(config: TrainConfig) -> TrainConfig:
    """Returns the settings with a device in the place of `auto`: CUDA if it is here and the world can use it."""
    if config.world.device != AUTO:
        return config
    device = "cuda" if torch.cuda.is_available() and _can_use_cuda(config) else "cpu"
    return config.model_copy(update={"world": config.world.model_copy(update={"device": device})})


def set_up_device(device: str) -> str:
    """Makes the settings that pay on a device, for the whole process, and returns them in words."""
    if torch.device(device).type != "cuda":
        return f"{torch.get_num_threads()} threads, float32"
    torch.set_float32_matmul_precision("high")  # TF32 in products of float32; bfloat16 is the policy's own setting
    torch.backends.cudnn.benchmark = True
    name = torch.cuda.get_device_name(device)
    return f"{name}, TF32 products, cuDNN chooses its fastest algorithms"


def _can_use_cuda(config: TrainConfig) -> bool:
    try:
        make_env(config.world.name, 1, "cuda", config=config.world.settings or None).close()
    except DeviceError:
        return False
    return True
