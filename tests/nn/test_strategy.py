"""The strategy encoder and its reference: the frames they see, positions, episode ends, attention weights."""

from typing import Literal

import pytest
import torch
from pydantic import ValidationError
from tests.window_encoder import WindowEncoder
from torch import Tensor

from ludus.nn.strategy import StrategyConfig, StreamingEncoder
from ludus.nn.transformer import ROTARY_PERIOD

CPU = torch.device("cpu")
INPUTS = 3
Kind = Literal["streaming", "window"]
KINDS: tuple[Kind, ...] = ("streaming", "window")


def _make(kind: Kind, layers: int = 2, window: int = 9) -> StreamingEncoder:
    torch.manual_seed(0)
    config = StrategyConfig(layers=layers, heads=2, width=8, feedforward=16, window=window, pooling=4, latent=5)
    encoder = (StreamingEncoder if kind == "streaming" else WindowEncoder)(INPUTS, config).double()
    encoder.cache_dtype = torch.float64
    for parameter in encoder.parameters():  # away from symmetric starts, so that every path carries signal
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder


def _unroll(encoder: StreamingEncoder, frames: Tensor, episode_starts: Tensor | None = None) -> Tensor:
    steps, rows = frames.shape[:2]
    episode_starts = torch.zeros(steps, rows, dtype=torch.bool) if episode_starts is None else episode_starts
    return encoder.unroll(frames, encoder.initial(rows, CPU), episode_starts)


def _check_that_step_equals_unroll(
    encoder: StreamingEncoder, frames: Tensor, episode_starts: Tensor, before: int
) -> None:
    """Step through all frames; unroll those after the first `before` from the memory of that moment."""
    memory, latents = encoder.initial(frames.shape[1], CPU), []
    stored = memory
    with torch.no_grad():
        for t in range(len(frames)):
            if t == before:
                stored = {name: tensor.clone() for name, tensor in memory.items()}
            latent, memory = encoder.step(frames[t], memory, episode_starts[t])
            latents.append(latent)
    unrolled = encoder.unroll(frames[before:], stored, episode_starts[before:])
    torch.testing.assert_close(unrolled, torch.stack(latents[before:]), atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layers", "window"), [(1, 3), (2, 9), (3, 17), (6, 65)])
def test_the_latent_depends_on_exactly_the_window(kind: Kind, layers: int, window: int) -> None:
    encoder = _make(kind, layers, window)
    steps = window + 5
    frames = torch.randn(steps, 1, INPUTS, dtype=torch.float64)
    last = _unroll(encoder, frames)[-1]
    for age, changes in ((0, True), (window - 2, True), (window - 1, True), (window, False), (window + 3, False)):
        disturbed = frames.clone()
        disturbed[steps - 1 - age] += 1.0
        difference = (_unroll(encoder, disturbed)[-1] - last).abs().max()
        assert (difference > 1e-16) if changes else (difference == 0.0), (kind, age, difference)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 5, 32, 64])
def test_step_equals_unroll_from_any_memory(kind: Kind, steps: int) -> None:
    encoder = _make(kind)
    rows, before = 4, 23
    generator = torch.Generator().manual_seed(1)
    frames = torch.randn(before + steps, rows, INPUTS, generator=generator, dtype=torch.float64)
    episode_starts = torch.rand(before + steps, rows, generator=generator) < 0.1
    _check_that_step_equals_unroll(encoder, frames, episode_starts, before)


@pytest.mark.cuda
@pytest.mark.parametrize("steps", [5, 32, 64])
def test_cuda_gives_the_same_latents_and_attention(steps: int) -> None:
    encoder = _make("streaming")
    frames, episode_starts = torch.randn(steps, 4, INPUTS, dtype=torch.float64), torch.rand(steps, 4) < 0.1
    memory = {name: torch.rand_like(tensor) for name, tensor in encoder.initial(4, CPU).items() if tensor.dim() > 1}
    memory = encoder.initial(4, CPU) | memory
    on_cpu = encoder.unroll(frames, memory, episode_starts)
    weights = encoder.attention(frames, memory, episode_starts)
    on_gpu = {name: tensor.cuda() for name, tensor in memory.items()}
    encoder.cuda()
    torch.testing.assert_close(encoder.unroll(frames.cuda(), on_gpu, episode_starts.cuda()).cpu(), on_cpu)
    for name, tensor in encoder.attention(frames.cuda(), on_gpu, episode_starts.cuda()).items():
        torch.testing.assert_close(tensor.cpu(), weights[name])


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_passes_an_episode_start(kind: Kind) -> None:
    encoder = _make(kind)
    frames = torch.randn(40, 1, INPUTS, dtype=torch.float64, requires_grad=True)
    episode_starts = torch.zeros(40, 1, dtype=torch.bool)
    episode_starts[35] = True
    (gradient,) = torch.autograd.grad(_unroll(encoder, frames, episode_starts)[35:].sum(), frames)
    assert gradient[:35].abs().max() == 0.0
    assert gradient[35:].abs().amax(dim=(1, 2)).min() > 0.0


def test_positions_are_relative_and_wrap_without_a_seam() -> None:
    encoder = _make("streaming")
    frames = torch.randn(12, 2, INPUTS, dtype=torch.float64)
    episode_starts = torch.zeros(12, 2, dtype=torch.bool)
    near_the_seam = encoder.initial(2, CPU)
    near_the_seam["position"] += ROTARY_PERIOD - 5
    torch.testing.assert_close(
        encoder.unroll(frames, encoder.initial(2, CPU), episode_starts),
        encoder.unroll(frames, near_the_seam, episode_starts),
        atol=1e-6,  # the tables of cosines and sines are float32
        rtol=1e-5,
    )


def test_the_order_of_frames_matters() -> None:
    for kind in KINDS:
        encoder = _make(kind)
        frames = torch.randn(6, 1, INPUTS, dtype=torch.float64)
        swapped = frames[[1, 0, 2, 3, 4, 5]]
        assert (_unroll(encoder, frames)[-1] - _unroll(encoder, swapped)[-1]).abs().max() > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_attention_weights_are_shares_of_the_episodes_frames(kind: Kind) -> None:
    encoder = _make(kind)
    steps, rows = 12, 3
    episode_starts = torch.zeros(steps, rows, dtype=torch.bool)
    episode_starts[10, 1] = True
    frames = torch.randn(steps, rows, INPUTS, dtype=torch.float64)
    weights = encoder.attention(frames, encoder.initial(rows, CPU), episode_starts)
    assert set(weights) == {"layer0", "layer1", "pooling"}
    looks_back = encoder.config.look_back if kind == "streaming" else (8, 8, encoder.config.look_back[-1])
    assert weights["layer0"].shape == (rows, 2, steps, looks_back[0] + 1)
    assert weights["pooling"].shape == (rows, steps, looks_back[-1] + 1)
    for share in weights.values():
        torch.testing.assert_close(share.sum(-1), torch.ones(share.shape[:-1], dtype=torch.float64))
    assert weights["layer0"][0, :, 0, 1:].abs().max() == 0.0  # the first frame sees itself alone
    assert weights["layer0"][1, :, 11, 2:].abs().max() == 0.0  # one frame after the start at 10
    assert weights["layer0"][0, :, 11, 1:3].min() > 0.0


def test_look_backs_add_up_for_every_size() -> None:
    for layers, window in ((1, 9), (2, 33), (4, 65), (6, 65)):
        config = StrategyConfig(layers=layers, window=window)
        assert len(config.look_back) == config.layers + 1
        assert sum(config.look_back) == config.window - 1
        assert max(config.look_back) - min(config.look_back) <= 1
    assert StrategyConfig().look_back == (9, 9, 9, 9, 9, 9, 10)


def test_both_encoders_have_the_same_parameters() -> None:
    streaming, window = _make("streaming"), _make("window")
    window.load_state_dict(streaming.state_dict())
    frame = torch.randn(1, 2, INPUTS, dtype=torch.float64)
    torch.testing.assert_close(_unroll(streaming, frame), _unroll(window, frame))  # one frame: nothing to differ in


def _make_events(layers: int = 2, window: int = 9) -> StreamingEncoder:
    """An encoder of events, which are frames in which input 2 comes up from zero."""
    torch.manual_seed(0)
    shape = {"layers": layers, "heads": 2, "width": 8, "feedforward": 16, "window": window, "pooling": 4, "latent": 5}
    encoder = StreamingEncoder(INPUTS, StrategyConfig.model_validate(shape | {"events": ["hit"]}), 0.0, (2,)).double()
    encoder.cache_dtype = torch.float64
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder


def _frames_with_events(going_on: Tensor) -> Tensor:
    frames = torch.randn(*going_on.shape, INPUTS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    frames[..., 2] = torch.where(going_on, frames[..., 2].abs() + 0.1, -frames[..., 2].abs())
    return frames


@pytest.mark.parametrize(("layers", "window"), [(1, 3), (2, 9), (3, 17)])
def test_of_events_the_latent_depends_on_the_last_ones_and_on_the_current_frame_alone(layers: int, window: int) -> None:
    encoder = _make_events(layers, window)
    steps = 5 * (window + 3)
    going_on = torch.zeros(steps, 1, dtype=torch.bool)
    going_on[::5] = going_on[1::5] = True  # an event begins in every fifth frame and goes on for one more
    frames = _frames_with_events(going_on)
    last = _unroll(encoder, frames)[-1]
    begins = range(0, steps, 5)
    kept = {steps - 1, *begins[-(window - 1) :]}
    for time in range(steps):
        disturbed = frames.clone()
        disturbed[time, :, :2] += 1.0
        difference = (_unroll(encoder, disturbed)[-1] - last).abs().max()
        assert (difference > 1e-16) if time in kept else (difference == 0.0), (time, difference)


@pytest.mark.parametrize("steps", [1, 5, 32, 64])
def test_of_events_step_equals_unroll_from_any_memory(steps: int) -> None:
    encoder = _make_events()
    rows, before = 4, 41
    generator = torch.Generator().manual_seed(2)
    going_on = torch.rand(before + steps, rows, generator=generator) < 0.3
    episode_starts = torch.rand(before + steps, rows, generator=generator) < 0.05
    frames = _frames_with_events(going_on)
    _check_that_step_equals_unroll(encoder, frames, episode_starts, before)


def test_of_events_weights_are_shares_by_the_age_in_events() -> None:
    encoder = _make_events(layers=1, window=7)  # the layer and the pooling look back three events each
    going_on = torch.zeros(12, 2, dtype=torch.bool)
    going_on[[1, 4, 5, 8], 0] = True  # 5 goes on from 4
    weights = encoder.attention(
        _frames_with_events(going_on), encoder.initial(2, CPU), torch.zeros(12, 2, dtype=torch.bool)
    )
    assert weights["layer0"].shape == (2, 2, 12, 4)
    assert weights["pooling"].shape == (2, 12, 4)
    for share in weights.values():
        torch.testing.assert_close(share.sum(-1), torch.ones(share.shape[:-1], dtype=torch.float64))
    events_before = (weights["pooling"][0] > 0.0).sum(-1) - 1
    assert events_before.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    assert weights["layer0"][1, :, :, 1:].abs().max() == 0.0  # nothing ever happened there


@pytest.mark.cuda
def test_cuda_keeps_the_same_events() -> None:
    encoder = _make_events()
    going_on, episode_starts = torch.rand(64, 4) < 0.3, torch.rand(64, 4) < 0.05
    frames = _frames_with_events(going_on)
    on_cpu = _unroll(encoder, frames, episode_starts)
    encoder.cuda()
    memory = encoder.initial(4, torch.device("cuda"))
    torch.testing.assert_close(encoder.unroll(frames.cuda(), memory, episode_starts.cuda()).cpu(), on_cpu)
    latents = []
    with torch.no_grad():
        for frame, starts in zip(frames.cuda(), episode_starts.cuda(), strict=True):
            latent, memory = encoder.step(frame, memory, starts)
            latents.append(latent.cpu())
    torch.testing.assert_close(torch.stack(latents), on_cpu, atol=1e-6, rtol=1e-4)  # `attend_one` is in float32


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValidationError, match="predict_before_events needs events"):
        StrategyConfig(predict_before_events=True, predict_actions=1.0)
    with pytest.raises(ValidationError, match="6 layers"):
        StrategyConfig(window=7)
    with pytest.raises(ValidationError, match="3 heads"):
        StrategyConfig(heads=3, width=32)
