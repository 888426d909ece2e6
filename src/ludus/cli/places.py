"""The option `--device` of commands that play: which device is meant."""


def choose_device(asked: str, world: str) -> str:
    """Returns the device to play on; `auto` takes a GPU if there is one and the world can live on it.

    Raises:
        DeviceError: The device that was asked for is not here, or not for this world.
    """
    import torch

    from ludus.envs.registry import can_live_on, make_env

    if asked == "auto":
        return "cuda" if torch.cuda.is_available() and can_live_on(world, "cuda") else "cpu"
    if asked != "cpu":
        make_env(world, 1, asked).close()
    return asked
