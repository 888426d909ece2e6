"""Strategy analysis: what an agent knows of its opponent, how soon, and whether that wins matches."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError
from ludus.core.intervals import Interval
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env
from ludus.evaluation.contenders import find_contenders, is_bot
from ludus.evaluation.duels import MOST_GAMES, Duels
from ludus.evaluation.first_matches import ShareDone
from ludus.evaluation.strategy_ablation import Ablation, ablate
from ludus.evaluation.strategy_attention import AttentionClip, attention_clips, attention_to_tracks
from ludus.evaluation.strategy_drift import Drift, measure_drift
from ludus.evaluation.strategy_maps import Separation, match_means, neighbour_plane, principal_plane, separation
from ludus.evaluation.strategy_policy import Features, check_features
from ludus.evaluation.strategy_probe import Probe, ProbeResult, fit_probe, probe_held_out
from ludus.evaluation.strategy_recording import HIDDEN_STYLES, Plan, Recording, record
from ludus.evaluation.strategy_switches import switching_bots
from ludus.policies.agent import Agent
from ludus.policies.policy import Policy

Array = NDArray[np.float64]

_EVERY_S = 0.5  # between samples, in matches that are long enough
_SAMPLES = 32  # at least, in shorter ones
_CLIP_S = 10.0
_SWITCHES_S, _CLOSELY_S = 45.0, 0.1  # recorded of matches against switching bots, and how closely
_MAP_FRAMES = 1_500  # points of the t-SNE map, at most
# Where the time goes, roughly: recording, probes, switching bots, maps; what is left is the ablation's.
_SHARES = {"record": 0.2, "probe": 0.1, "drift": 0.1, "maps": 0.05}


@dataclass(frozen=True, slots=True)
class Planes:
    """Where frames and matches lie on a plane.

    Attributes:
        frames: `(frames, 2)` some frames of all matches.
        frame_labels: `(frames,)` their styles.
        shares: `(2,)` of the variance along either axis.
        matches: `(matches, 2)` the mean of each match.
        neighbours: `(frames, 2)` the same frames by t-SNE; None without scikit-learn.
    """

    frames: Array
    frame_labels: NDArray[np.int64]
    shares: Array
    matches: Array
    neighbours: Array | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that was found.

    Attributes:
        world: Where.
        features: Which part of the agent.
        matches: Against each style.
        recording: The matches.
        probes: For each kind of features, how well they tell the style.
        separations: For each kind, how far the styles lie apart.
        planes: The maps.
        clips: Attention in one match of each style.
        drift: What happens when a bot switches its style; None if the world has no such bot.
        ablation: What the features are worth; None if it was not asked for.
        notes: What could not be done, and why.
        seconds: Time it took.
    """

    world: str
    features: Features
    matches: int
    recording: Recording
    probes: dict[str, ProbeResult]
    separations: dict[str, Separation]
    planes: Planes
    clips: list[AttentionClip]
    drift: Drift | None
    ablation: Ablation | None
    notes: tuple[str, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "world": self.world,
            "features": self.features,
            "styles": list(self.recording.styles),
            "matches": self.matches,
            "times_s": self.recording.times_s.tolist(),
            "chance": self.probes["trained"].chance,
            "probes": {name: _probe_json(probe) for name, probe in self.probes.items()},
            "separation": {
                name: {key: getattr(found, key) for key in Separation.__slots__}
                for name, found in self.separations.items()
            },
            "maps": {
                "variance_shares": self.planes.shares.tolist(),
                "labels": self.recording.labels.tolist(),
                "matches": np.round(self.planes.matches, 4).tolist(),
                "frame_labels": self.planes.frame_labels.tolist(),
                "frames": np.round(self.planes.frames, 4).tolist(),
                "neighbours": None if self.planes.neighbours is None else np.round(self.planes.neighbours, 3).tolist(),
            },
            "attention": attention_to_tracks(self.clips),
            "drift": None if self.drift is None else self.drift.as_json(),
            "ablation": None if self.ablation is None else self.ablation.as_json(),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }


def analyse(
    agent: Agent,
    styles: Sequence[str] | None = None,
    *,
    matches: int = 40,
    seconds: float = 20.0,
    features: Features = "latent",
    ablation: bool = True,
    seed: int = 0,
    max_games: int = MOST_GAMES,
    progress: ShareDone = lambda _: None,
) -> Analysis:
    """Analyses an agent in its own world with the settings that it was trained with.

    Args:
        agent: Who.
        styles: Bots whose styles shall be told apart; all that keep to one style if None.
        matches: Against each style; for the probes and again for each condition of the ablation.
        seconds: Of the beginning of every match that are recorded.
        features: The strategy latent, or the recurrent memory.
        ablation: Whether to play it; it takes most of the time.
        seed: Of everything; equal seeds give equal numbers on the CPU.
        max_games: Most games in a batch of the ablation.
        progress: Is told the share that is done.

    Raises:
        ConfigError: The agent has no such part, or there are too few styles or matches.
    """
    started_s = time.perf_counter()
    policy = agent.policy
    check_features(policy, features)
    if matches < 3:
        raise ConfigError(f"matches must be at least 3, since some are held out from the probe; got {matches}")
    work = _Work(agent, policy, features, matches, seed, progress)
    with make_env(agent.spec.id, 1, agent.device, config=agent.settings or None) as env:
        agent.check_world(env.spec)
        chosen, switchers = _choose_styles(env, styles)
    recording = work.record_styles(chosen, seconds)
    probes = work.probe(recording)
    drift, reason = work.drift(recording, switchers)
    planes, missing = work.maps(recording)
    played = work.ablate((*chosen, *switchers), max_games) if ablation else None
    progress(1.0)
    points = {name: match_means(values, recording.valid) for name, values in recording.features.items()}
    return Analysis(
        world=agent.spec.id,
        features=features,
        matches=matches,
        recording=recording,
        probes=probes,
        separations={name: separation(found, recording.labels) for name, found in points.items()},
        planes=planes,
        clips=attention_clips(policy, recording) if features == "latent" else [],
        drift=drift,
        ablation=played,
        notes=tuple(note for note in (reason, missing) if note),
        seconds=time.perf_counter() - started_s,
    )


class _Work:
    """The parts of an analysis, in the order of their names in `_SHARES`."""

    def __init__(
        self, agent: Agent, policy: Policy, features: Features, matches: int, seed: int, progress: ShareDone
    ) -> None:
        self._agent, self._policy, self._features = agent, policy, features
        self._matches, self._seed, self._progress = matches, seed, progress
        self._done = 0.0

    def _part(self, name: str) -> ShareDone:
        start, share = self._done, _SHARES.get(name, 1.0 - self._done)
        self._done += share
        return lambda part: self._progress(start + share * part)

    def _make(self, games: int) -> BatchedEnv:
        agent = self._agent
        return make_env(agent.spec.id, games, agent.device, seed=self._seed, config=agent.settings or None)

    def _record(self, plan: Plan, progress: ShareDone) -> Recording:
        with self._make(plan.matches * (len(plan.styles) or HIDDEN_STYLES)) as env:
            return record(self._policy, env, plan, progress)

    def record_styles(self, styles: tuple[str, ...], seconds: float) -> Recording:
        """Records all styles, sampled more closely where matches are short."""
        with self._make(1) as env:
            limit_s = (env.spec.step_limit or math.inf) / env.spec.rate_hz
        seconds = min(seconds, limit_s)
        every_s = min(_EVERY_S, seconds / _SAMPLES)
        plan = Plan(styles, self._matches, seconds, every_s, _CLIP_S, self._features, seed=self._seed)
        return self._record(plan, self._part("record"))

    def probe(self, recording: Recording) -> dict[str, ProbeResult]:
        """Probes every kind of features."""
        progress, kinds = self._part("probe"), recording.features
        return {
            name: probe_held_out(
                values,
                recording.labels,
                recording.valid,
                len(recording.styles),
                progress=partial(_tell, progress, index, len(kinds)),
            )
            for index, (name, values) in enumerate(kinds.items())
        }

    def drift(self, recording: Recording, switchers: tuple[str, ...]) -> tuple[Drift | None, str]:
        """Measures the drift, or says why there is none."""
        progress = self._part("drift")
        if not switchers:
            return None, f"no drift: {self._agent.spec.id} has no bot that switches its style"
        plan = Plan(switchers, self._matches, _SWITCHES_S, _CLOSELY_S, 0.0, self._features, False, self._seed + 1)
        switched = self._record(plan, progress)
        with self._make(1) as env:
            bots = {name: index for index, name in enumerate(env.spec.bots)}
        styles = {bots[name]: index for index, name in enumerate(recording.styles) if name in bots}
        drift = measure_drift(switched, _fit_all(recording), styles)
        return drift, "" if drift is not None else "no drift: fewer than three switches were seen; play more matches"

    def maps(self, recording: Recording) -> tuple[Planes, str]:
        """Draws up the maps; says what is missing if t-SNE cannot be had."""
        progress = self._part("maps")
        features = recording.features["trained"]
        samples, matches = np.nonzero(recording.valid)
        chosen = np.unique(np.linspace(0, len(samples) - 1, min(_MAP_FRAMES, len(samples))).astype(np.int64))
        frames = features[samples[chosen], matches[chosen]].astype(np.float64)
        means = np.stack([features[recording.valid[:, m], m].mean(0) for m in range(features.shape[1])])
        plane, shares = principal_plane(np.concatenate((frames, means)))
        missing, neighbours = "", None
        try:
            neighbours = neighbour_plane(frames, self._seed)
        except MissingDependencyError as error:
            missing = str(error)
        progress(1.0)
        labels = recording.labels[matches[chosen]]
        return Planes(plane[: len(frames)], labels, shares, plane[len(frames) :], neighbours), missing

    def ablate(self, opponents: tuple[str, ...], max_games: int) -> Ablation:
        """Plays the ablation."""
        progress = self._part("ablation")
        with self._make(min(max(len(opponents), 1) * self._matches, max_games)) as env:
            found = find_contenders(opponents, env)
            duels = Duels(env, found, matches=self._matches, seed=self._seed)
            return ablate(self._policy, duels, self._matches, self._features, progress)


def _choose_styles(env: BatchedEnv, styles: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the bots that keep to one style and those that switch, out of the given ones or all."""
    switchers = switching_bots(env)
    if styles is None:
        return tuple(bot for bot in env.spec.bots if bot not in switchers), switchers
    strangers = [name for name in styles if not is_bot(name, env)]
    if strangers:
        raise ConfigError(
            f"no bot of {env.spec.id}: {', '.join(strangers)}; valid: {', '.join(env.spec.bots) or 'none'}, with "
            "settings if they have any"
        )
    named = tuple(dict.fromkeys(styles))
    return tuple(name for name in named if name not in switchers), switchers


def _fit_all(recording: Recording) -> Probe:
    """Fits a probe to all matches, for others that it then names."""
    labels = np.ascontiguousarray(np.broadcast_to(recording.labels, recording.valid.shape)[recording.valid])
    return fit_probe(recording.features["trained"][recording.valid], labels, len(recording.styles))


def _probe_json(probe: ProbeResult) -> dict[str, Any]:
    def numbers(interval: Interval) -> dict[str, float | None]:
        return {name: value if math.isfinite(value) else None for name, value in interval._asdict().items()}

    return {
        "frames": numbers(probe.frames),
        "matches": numbers(probe.matches),
        "by_time": [numbers(interval) for interval in probe.by_time],
        "so_far": [numbers(interval) for interval in probe.so_far],
        "confusion": np.round(probe.confusion, 4).tolist(),
    }


def _tell(progress: ShareDone, done: int, total: int, share: float) -> None:
    progress((done + share) / total)
