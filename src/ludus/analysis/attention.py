"""Attention of the strategy encoder over frames, beside what the opponent did in them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.analysis.recording import Recording
from ludus.envs.world_parts import styles_of
from ludus.policies.policy import Policy

Array = NDArray[np.float64]

_MAX_TRACKS = 24  # of a world whose fields are unnamed


@dataclass(frozen=True, slots=True)
class AttentionClip:
    """The start of one match."""

    style: str
    weights: Array  # `(frames, frames)`, attention of the latent at the row's frame to the column's frame
    tracks: dict[str, Array]  # what the opponent did, one `(frames,)` array per name; what never happened is left out
    window: int  # frames that a latent depends on
    rate_hz: float


def attention_clips(policy: Policy, recording: Recording) -> list[AttentionClip]:
    """Return the clip of every style; none for a policy without strategy encoder, or with one that keeps events.

    Events are seconds apart: few of them lie within a clip.
    """
    config = policy.config.strategy
    if config is None or config.events or not recording.clips:
        return []
    frames, styles = next(iter(recording.clips.values())).shape[:2]
    episode_starts = torch.zeros((frames, styles), dtype=torch.bool, device=policy.device)
    episode_starts[0] = True
    with torch.no_grad():
        by_age = policy.attention(recording.clips, policy.initial(styles), episode_starts)
    on_host = {name: weights.double().cpu() for name, weights in by_age.items()}
    flows, tracks = attention_flow(on_host, config.layers, config.window), _tracks(policy, recording.clips)
    clips = []
    for index, (label, length) in enumerate(zip(recording.clip_labels, recording.clip_frames, strict=True)):
        own = {name: values[:length, index] for name, values in tracks.items() if values[:length, index].any()}
        weights, style = flows[index, :length, :length], recording.styles[label]
        clips.append(AttentionClip(style, weights, own, config.window, policy.spec.rate_hz))
    return clips


def attention_flow(by_age: dict[str, Tensor], layers: int, window: int) -> Array:
    """Compute attention rollout from the latent through all layers to the frames: `(rows, steps, steps)`.

    A layer adds its attention output (mean over heads) to the residual stream, so both count half. Rows of the result
    sum to 1. The weights are those of `Policy.attention`; attention to frames beyond the window is cut off.
    """
    flow = _by_frame(by_age["pooling"])
    own = torch.eye(flow.shape[-1], dtype=flow.dtype)
    for layer in reversed(range(layers)):
        flow = flow @ (0.5 * own + 0.5 * _by_frame(by_age[f"layer{layer}"].mean(1)))
    flow = torch.triu(flow, 1 - window)
    found: Array = (flow / flow.sum(-1, keepdim=True).clamp(min=1e-12)).numpy()
    return found


def _by_frame(by_age: Tensor) -> Tensor:
    """Convert weights by age `(rows, steps, ages)` into weights by frame `(rows, steps, steps)`."""
    rows, steps, ages = by_age.shape
    frame = torch.arange(steps).unsqueeze(1) - torch.arange(ages)
    weights = torch.zeros((rows, steps, steps), dtype=by_age.dtype)
    kept = torch.where(frame >= 0, by_age, 0.0)
    weights.scatter_add_(2, frame.clamp(min=0).expand(rows, -1, -1), kept)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)


def attention_by_delay(clip: AttentionClip) -> tuple[Array, Array]:
    """Return the attention that each frame receives later, and its total relative to other frames.

    Only latents with a whole window behind them count, as the first ones have fewer frames to attend to.

    Returns:
        `(window, frames)`, attention to a frame after so many frames, NaN where unknown; and `(frames,)`, its sum
        over that of an average frame.
    """
    steps = len(clip.weights)
    window = min(clip.window, steps)
    later = np.full((window, steps), np.nan)
    for delay in range(window):
        first = window - 1 - delay  # the first frame that a whole window sees with this delay
        later[delay, first : steps - delay] = np.diagonal(clip.weights, -delay)[first:]
    told = np.isfinite(later)
    usual = np.where(told, later, 0.0).sum(1) / np.maximum(told.sum(1), 1)
    expected = (told * usual[:, None]).sum(0)
    return later, np.where(told, later, 0.0).sum(0) / np.maximum(expected, 1e-12)


def attention_to_tracks(clips: list[AttentionClip]) -> dict[str, dict[str, float]]:
    """Return the attention to frames in which something happens, over all clips.

    For each track: `share` of the frames within the window in which it happens, `attention` to these, and their
    `ratio`, which is 1 for uniform attention. Tracks that are never or always on are left out.
    """
    shares: dict[str, float] = {}
    paid: dict[str, float] = {}
    count = 0
    for clip in clips:
        steps = len(clip.weights)
        rows = np.arange(min(clip.window, steps), steps)
        count += len(rows)
        evenly = np.tril(np.ones((steps, steps))) - np.tril(np.ones((steps, steps)), -clip.window)
        evenly /= np.maximum(evenly.sum(1, keepdims=True), 1.0)
        for name, values in clip.tracks.items():
            is_on = (values > 0.5).astype(np.float64)
            shares[name] = shares.get(name, 0.0) + float((evenly[rows] @ is_on).sum())
            paid[name] = paid.get(name, 0.0) + float((clip.weights[rows] @ is_on).sum())
    return {
        name: {"share": share / count, "attention": paid[name] / count, "ratio": paid[name] / share}
        for name, share in shares.items()
        if 0.0 < share < count
    }


def _tracks(policy: Policy, clips: dict[str, Tensor]) -> dict[str, Array]:
    """Return what the opponent did, unnormalized, one `(frames, styles)` array per name."""
    config = policy.config.strategy
    assert config is not None  # noqa: S101 - for the type checker
    seen = clips[config.entry].flatten(2).double().cpu().numpy()
    columns, fields = policy.memory.columns, styles_of(policy.spec.id).action_fields
    if fields:
        return {fields[index]: seen[..., index] for index in columns if index in fields}
    return {f"input {place}": seen[..., index] for place, index in enumerate(columns[:_MAX_TRACKS])}
