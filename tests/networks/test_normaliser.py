"""The running normaliser."""

import torch

from ludus.networks.normaliser import Normaliser


def test_it_normalises_by_everything_it_was_given() -> None:
    normaliser = Normaliser(2, 10.0, torch.device("cpu"))
    normaliser.update(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    normaliser.update(torch.tensor([[[4.0, 5.0]], [[6.0, 5.0]]]))
    # Mean 3, variance 5 (0, 2, 4, 6); the second feature is constant.
    normalised = normaliser(torch.tensor([[3.0 + 5.0**0.5, 5.0], [1000.0, 6.0]]))
    torch.testing.assert_close(normalised, torch.tensor([[1.0, 0.0], [10.0, 10.0]]))


def test_before_the_first_update_it_only_clips() -> None:
    normaliser = Normaliser(1, 3.0, torch.device("cpu"))
    torch.testing.assert_close(normaliser(torch.tensor([[2.0], [5.0]])), torch.tensor([[2.0], [3.0]]))


def test_evaluation_mode_freezes_it() -> None:
    normaliser = Normaliser(1, 10.0, torch.device("cpu")).eval()
    normaliser.update(torch.tensor([[100.0]]))
    assert normaliser.state()["count"] == 0.0


def test_state_goes_round() -> None:
    normaliser, other = (Normaliser(3, 10.0, torch.device("cpu")) for _ in range(2))
    normaliser.update(torch.randn(50, 3) * 4.0 + 1.0)
    other.load_state(normaliser.state())
    frames = torch.randn(5, 3)
    assert torch.equal(normaliser(frames), other(frames))
