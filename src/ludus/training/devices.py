"""Which device a run uses, and the settings that make it fast there."""

import torch

from ludus.envs.registry import AUTO, place_for
from ludus.training.config import TrainConfig


def choose_device(config: TrainConfig) -> TrainConfig:
    """Returns the settings with a device in the place of `auto`: CUDA if it is here and the world can use it."""
    if config.world.device != AUTO:
        return config
    world = config.world
    device = place_for(AUTO, world.name, world.settings or None)
    return config.model_copy(update={"world": world.model_copy(update={"device": device})})


def set_up_device(device: str) -> str:
    """Makes the settings that pay on a device, for the whole process, and returns them in words."""
    if torch.device(device).type != "cuda":
        return f"{torch.get_num_threads()} threads, float32"
    torch.set_float32_matmul_precision("high")  # TF32 in products of float32; bfloat16 is the policy's own setting
    torch.backends.cudnn.benchmark = True
    name = torch.cuda.get_device_name(device)
    return f"{name}, TF32 products, cuDNN chooses its fastest algorithms"
