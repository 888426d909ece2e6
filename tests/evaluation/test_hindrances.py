"""An agent that is hindered sees the frames of before, and noise; the games and other players see none of it."""

import pytest
import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import Observations
from ludus.evaluation.hindrances import Hindrance, hinder

CPU = torch.device("cpu")


class Witness:
    """Remembers what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Observations] = []
        self.kept: list[Tensor] = []

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:  # noqa: ARG002
        self.seen.append({name: tensor.clone() for name, tensor in observations.items()})

    def keep(self, games: Tensor) -> None:
        self.kept.append(games)


def test_late_frames_are_those_of_before_even_when_the_world_reuses_its_tensors() -> None:
    witness = Witness()
    player = hinder(witness, Hindrance(delay_frames=2), 0, CPU)
    frame = torch.zeros(2, 1)
    for match in range(2):
        for step in range(5):
            frame.fill_(10 * match + step)
            player.act({"vector": frame}, torch.zeros(2), first=step == 0)
    assert [int(seen["vector"][0, 0]) for seen in witness.seen] == [0, 0, 0, 1, 2, 10, 10, 10, 11, 12]


def test_noise_is_added_to_continuous_entries_alone() -> None:
    witness = Witness()
    player = hinder(witness, Hindrance(noise=0.5), 3, CPU)
    shown = {"vector": torch.ones(4000, 2), "choice": torch.ones(4000, dtype=torch.int64)}
    player.act(shown, torch.zeros(1), first=True)
    assert torch.equal(witness.seen[0]["choice"], shown["choice"])
    assert torch.equal(shown["vector"], torch.ones(4000, 2))
    noise = witness.seen[0]["vector"] - 1.0
    assert float(noise.std()) == pytest.approx(0.5, rel=0.05)
    assert abs(float(noise.mean())) < 0.03
    again = Witness()
    hinder(again, Hindrance(noise=0.5), 3, CPU).act(shown, torch.zeros(1), first=True)
    assert torch.equal(again.seen[0]["vector"], witness.seen[0]["vector"])


def test_without_a_hindrance_the_player_itself_plays() -> None:
    witness = Witness()
    assert hinder(witness, None, 0, CPU) is witness
    assert hinder(witness, Hindrance(), 0, CPU) is witness
    kept = torch.tensor([True, False])
    hinder(witness, Hindrance(1), 0, CPU).keep(kept)
    assert witness.kept == [kept]


@pytest.mark.parametrize(("delay", "noise"), [(-1, 0.0), (0, -0.1), (0, float("nan"))])
def test_what_cannot_be(delay: int, noise: float) -> None:
    with pytest.raises(ConfigError, match="both are 0 or more"):
        Hindrance(delay, noise)
