"""Where a world lives if nobody says, or asks for a device that it cannot live on."""

from typing import Any

import pytest
import torch

from ludus.core.errors import DeviceError
from ludus.envs.registry import can_live_on, place_for


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which torch sees a GPU, so that only the worlds themselves can refuse it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


def test_without_a_gpu_it_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert place_for("auto", "brawl") == place_for("cpu", "brawl") == "cpu"


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("world", "config"), [("mimic", {"physics": "mujoco"}), ("city", None), ("gym:CartPole-v1", None)]
)
def test_worlds_of_the_cpu_stay_there(world: str, config: dict[str, Any] | None) -> None:
    assert place_for("auto", world, config) == "cpu"
    assert not can_live_on("cuda", world, config)


@pytest.mark.cuda
def test_with_a_gpu_it_is_the_gpu() -> None:
    assert place_for("auto", "duel") == "cuda"


def test_a_device_that_is_not_here_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"'tpu'.*cpu, cuda"):
        place_for("tpu", "duel")
