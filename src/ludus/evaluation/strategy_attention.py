"""Where the strategy encoder looks: its attention over frames, beside what the opponent did in them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.brawl.observation import FIELDS
from ludus.evaluation.strategy_recording import Recording
from ludus.policies.policy import Policy

Array = NDArray[np.float64]

_BRAWL = "brawl"
_TELLING = ("state_", "phase_", "connected")  # fields of brawl that say what a fighter does
_MOST_TRACKS = 24  # of a world whose fields have no names here


@dataclass(frozen=True, slots=True)
class AttentionClip:
    """The beginning of one match.

    Attributes:
        style: Of the opponent.
        weights: `(frames, frames)`, share of attention that the latent of the row's frame pays to the column's.
        tracks: What the opponent did, by name, `(frames,)` each; what never happened is left out.
        window: Frames that a latent depends on.
        rate_hz: Frames a second.
    """

    style: str
    weights: Array
    tracks: dict[str, Array]
    window: int
    rate_hz: float


def attention_clips(policy: Policy, recording: Recording) -> list[AttentionClip]:
    """Returns the clip of every style; none for a policy without strategy encoder."""
    config = policy.config.strategy
    if config is None or not recording.clips:
        return []
    frames, styles = next(iter(recording.clips.values())).shape[:2]
    starts = torch.zeros((frames, styles), dtype=torch.bool, device=policy.device)
    starts[0] = True
    with torch.no_grad():
        by_age = policy.attention(recording.clips, policy.initial(styles), starts)
    flows = attention_flow(
        {name: weights.double().cpu() for name, weights in by_age.items()}, config.layers, config.window
    )
    tracks = _tracks(policy, recording.clips)
    clips = zip(recording.clip_labels.tolist(), recording.clip_frames.tolist(), strict=True)
    return [
        AttentionClip(
            recording.styles[label],
            flows[index, :length, :length],
            {name: values[:length, index] for name, values in tracks.items() if values[:length, index].any()},
            config.window,
            policy.spec.rate_hz,
        )
        for index, (label, length) in enumerate(clips)
    ]


def attention_flow(by_age: dict[str, Tensor], layers: int, window: int) -> Array:
    """Follows attention from the latent down through all layers to the frames: `(rows, steps, steps)`.

    A layer adds what it attends to (mean over heads) to the frame itself, so each is counted by half. A row of the
    result adds up to 1. For the window encoder, whose layers are known for the newest frame alone, it is a likeness.

    Args:
        by_age: What `Policy.attention` gives.
        layers: Of the encoder.
        window: Frames that a latent depends on; no attention goes beyond them.
    """
    flow = _by_frame(by_age["pooling"])
    own = torch.eye(flow.shape[-1], dtype=flow.dtype)
    for layer in reversed(range(layers)):
        flow = flow @ (0.5 * own + 0.5 * _by_frame(by_age[f"layer{layer}"].mean(1)))
    flow = torch.triu(flow, 1 - window)
    found: Array = (flow / flow.sum(-1, keepdim=True).clamp(min=1e-12)).numpy()
    return found


def _by_frame(by_age: Tensor) -> Tensor:
    """Turns weights by age `(rows, steps, ages)` into weights by frame `(rows, steps, steps)`."""
    rows, steps, ages = by_age.shape
    frame = torch.arange(steps).unsqueeze(1) - torch.arange(ages)
    weights = torch.zeros((rows, steps, steps), dtype=by_age.dtype)
    kept = torch.where(frame >= 0, by_age, 0.0)
    weights.scatter_add_(2, frame.clamp(min=0).expand(rows, -1, -1), kept)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)


def attention_by_delay(clip: AttentionClip) -> tuple[Array, Array]:
    """Returns the attention that each frame gets later, and how much it is compared with others.

    Only latents that look back on a whole window count, as the first ones have less to choose from.

    Returns:
        `(window, frames)`, the share of attention that a frame gets after so many frames, NaN where no latent tells;
        and `(frames,)`, the sum of it over that of an average frame, 1 for a frame that is looked at like any other.
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
    """Returns how much attention goes to frames in which something happens, over all clips.

    For each track: `share` of the frames within the window in which it happens, `attention` paid to these, and their
    `ratio`, which is 1 where the encoder looks at all frames alike. Tracks that are never or always on are left out.
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
    """Returns what the opponent did, as the encoder was shown it but not normalised: `(frames, styles)` a name."""
    config = policy.config.strategy
    assert config is not None  # noqa: S101 - for the type checker
    seen = clips[config.entry].flatten(2).double().cpu().numpy()
    start, stop = (0, seen.shape[2]) if config.block is None else policy.spec.blocks[config.entry][config.block]
    if policy.spec.name == _BRAWL:
        names = {index: field.name.rpartition(".")[2] for index, field in enumerate(FIELDS)}
        chosen = [index for index in range(start, stop) if names[index].startswith(_TELLING)]
        return {names[index].removeprefix("state_").replace("_", " "): seen[..., index] for index in chosen}
    return {f"input {index - start}": seen[..., index] for index in range(start, stop)[:_MOST_TRACKS]}
