"""What of torch's global state off-policy learning sets for itself while it works, and puts back."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.distributions import Distribution


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Lets torch's global random numbers begin with a seed; whoever else uses them does not notice."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def small_products() -> Iterator[None]:
    """Lets torch multiply matrices without oneDNN, which prepares every product anew on ARM processors.

    One of 64 x 32 by 32 x 32 took 577 us with it and 14 us without, one of 256 x 256 by 256 x 256 1.6 and 1.05 ms. On
    x86 torch does not use it for products in float32.
    """
    was_enabled = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]  # a property, which the type checker cannot see
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = was_enabled


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Lets torch's distributions take any parameters: NaN is found by whoever looks at the losses, and checks cost."""
    was_checked = Distribution._validate_args  # noqa: SLF001 - torch has no way to ask
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(was_checked)
