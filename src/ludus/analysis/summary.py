"""Strategy analysis: what an agent's features say about its opponent, how soon, and whether that wins matches."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.analysis import probe as probing
from ludus.analysis.ablation import Ablation, ablate
from ludus.analysis.analysed_policy import Features, check_features
from ludus.analysis.attention import AttentionClip, attention_clips, attention_to_tracks
from ludus.analysis.behaviour import Behaviour, describe_behaviour
from ludus.analysis.belief import (
    Belief,
    Classify,
    SwitchingMatch,
    describe_belief,
    own_classifier,
    switching_matches,
)
from ludus.analysis.drift import Drift, measure_drift
from ludus.analysis.probe import Probe, ProbeResult, Separation
from ludus.analysis.recording import HIDDEN_STYLES, Plan, Recording, record
from ludus.analysis.verdict import judge
from ludus.core.errors import ConfigError
from ludus.core.intervals import Interval
from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env
from ludus.envs.world_parts import styles_of
from ludus.evaluation.evaluate import PolicyEvaluator
from ludus.evaluation.matches import MAX_ENVS, Progress, partial_progress
from ludus.evaluation.players import check_player_name, find_players
from ludus.policies.agent import Agent

Array = NDArray[np.float64]

_EVERY_S = 0.5  # between samples, in matches that are long enough
_SAMPLES = 32  # at least, in shorter ones
_CLIP_S = 10.0
_SWITCHES_S, _SWITCH_STEP_S = 45.0, 0.1  # recorded of matches against switching bots, and the sample interval
_MAP_FRAMES = 1_500  # points of the t-SNE map, at most
# Share of the run time, roughly; the ablation takes the rest.
_SHARES = {"record": 0.2, "probe": 0.1, "drift": 0.1, "maps": 0.05}


@dataclass(frozen=True, slots=True)
class Planes:
    """Projections of frames and matches to a plane."""

    frames: Array  # `(frames, 2)` PCA of some frames of all matches
    frame_labels: NDArray[np.int64]  # `(frames,)` their styles
    shares: Array  # `(2,)` share of the variance along either axis
    matches: Array  # `(matches, 2)` PCA of the mean of each match
    tsne: Array  # `(frames, 2)` t-SNE of the same frames


@dataclass(frozen=True, slots=True)
class Analysis:
    """Results of an analysis."""

    world: str
    features: Features  # which features of the agent
    matches: int  # matches per style
    recording: Recording
    probes: dict[str, ProbeResult]  # probe accuracy for each kind of features
    separations: dict[str, Separation]  # separation of the styles for each kind
    planes: Planes
    clips: list[AttentionClip]  # attention in one match of each style
    drift: Drift | None  # response to a bot that switches its style; None if the world has no such bot
    ablation: Ablation | None  # what the features contribute to the score; None if it was not requested
    belief: Belief  # who the agent thinks it is fighting
    switching: tuple[SwitchingMatch, ...]  # the same in matches against a bot that switches its style
    behaviour: Behaviour  # what it does differently
    notes: tuple[str, ...]  # what could not be measured, and why
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "world": self.world,
            "features": self.features,
            "styles": list(self.recording.styles),
            "matches": self.matches,
            "times_s": self.recording.times_s.tolist(),
            "chance": self.probes["trained"].chance,
            "probes": {name: _probe_json(probe) for name, probe in self.probes.items()},
            "separation": {name: asdict(found) for name, found in self.separations.items()},
            "maps": {
                "variance_shares": self.planes.shares.tolist(),
                "labels": self.recording.labels.tolist(),
                "matches": np.round(self.planes.matches, 4).tolist(),
                "frame_labels": self.planes.frame_labels.tolist(),
                "frames": np.round(self.planes.frames, 4).tolist(),
                "neighbours": np.round(self.planes.tsne, 3).tolist(),
            },
            "attention": attention_to_tracks(self.clips),
            "drift": None if self.drift is None else self.drift.as_json(),
            "ablation": None if self.ablation is None else self.ablation.as_json(),
            "belief": self.belief.as_json(self.recording),
            "switching": [match.as_json() for match in self.switching],
            "behaviour": self.behaviour.as_json(),
            "verdict": [asdict(finding) for finding in judge(self)],
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
    max_envs: int = MAX_ENVS,
    progress: Progress = lambda _: None,
) -> Analysis:
    """Analyse an agent in its own world with its training settings.

    Args:
        agent: The agent.
        styles: Bots and agents whose styles are classified; all bots that keep one style if None.
        matches: Matches per style, for the probes and again for each condition of the ablation.
        seconds: How much of the start of every match is recorded.
        features: The strategy latent, or the recurrent state.
        ablation: Whether to run the ablation, which takes most of the time.
        seed: Seed of everything; equal seeds give equal numbers on the CPU.
        max_envs: Largest batch of the ablation.
        progress: Called with the fraction that is done.

    Raises:
        ConfigError: The agent has no such features, or there are too few styles or matches.
        MissingDependencyError: scikit-learn is not installed.
    """
    probing.check_sklearn()
    started_s = time.perf_counter()
    check_features(agent.policy, features)
    if matches < 3:
        raise ConfigError(f"matches must be at least 3 (some are held out), got {matches}")
    work = _Work(agent, features, matches, seed, progress)
    with make_env(agent.spec.id, 1, agent.device, config=agent.settings or None) as env:
        agent.check_world(env.spec)
        chosen, switchers = _choose_styles(env, styles)
        bots = env.spec.bots
    recording = work.record_styles(chosen, seconds)
    probes = work.probe(recording)
    belief, classify = work.believe(recording, probes["trained"])
    switched = work.record_switches(switchers)
    drift, reason = work.drift(recording, switched, bots)
    switching = () if switched is None else switching_matches(switched, classify, bots)
    planes = work.project(recording)
    played = work.ablate((*chosen, *switchers), max_envs) if ablation else None
    progress(1.0)
    points = {name: probing.match_means(values, recording.valid) for name, values in recording.features.items()}
    assert recording.actions is not None  # noqa: S101 - recorded with the controls; for the type checker
    return Analysis(
        world=agent.spec.id,
        features=features,
        matches=matches,
        recording=recording,
        probes=probes,
        separations={name: probing.separation(found, recording.labels) for name, found in points.items()},
        planes=planes,
        clips=attention_clips(agent.policy, recording) if features == "latent" else [],
        drift=drift,
        ablation=played,
        belief=belief,
        switching=switching,
        behaviour=describe_behaviour(recording.actions, recording.labels, len(recording.styles)),
        notes=(reason,) if reason else (),
        seconds=time.perf_counter() - started_s,
    )


class _Work:
    """The parts of an analysis, in the order of their names in `_SHARES`."""

    def __init__(self, agent: Agent, features: Features, matches: int, seed: int, progress: Progress) -> None:
        self._agent, self._policy, self._features = agent, agent.policy, features
        self._matches, self._seed, self._progress = matches, seed, progress
        self._done = 0.0

    def _part(self, name: str) -> Progress:
        start, share = self._done, _SHARES.get(name, 1.0 - self._done)
        self._done += share
        return lambda part: self._progress(start + share * part)

    def _make(self, games: int) -> BatchedEnv:
        agent = self._agent
        return make_env(agent.spec.id, games, agent.device, seed=self._seed, config=agent.settings or None)

    def _record(self, plan: Plan, progress: Progress) -> Recording:
        with self._make(plan.matches * (len(plan.styles) or HIDDEN_STYLES)) as env:
            return record(self._policy, env, plan, progress)

    def record_styles(self, styles: tuple[str, ...], seconds: float) -> Recording:
        """Record all styles, sampled more often where matches are short."""
        with self._make(1) as env:
            limit_s = (env.spec.step_limit or math.inf) / env.spec.rate_hz
        seconds = min(seconds, limit_s)
        every_s = min(_EVERY_S, seconds / _SAMPLES)
        plan = Plan(styles, self._matches, seconds, every_s, _CLIP_S, self._features, seed=self._seed)
        return self._record(plan, self._part("record"))

    def probe(self, recording: Recording) -> dict[str, ProbeResult]:
        """Probe every kind of features."""
        progress, kinds = self._part("probe"), recording.features
        found = {}
        for index, (name, values) in enumerate(kinds.items()):
            told = partial_progress(progress, index, len(kinds))
            found[name] = probing.probe_held_out(values, recording.labels, recording.valid, len(recording.styles), told)
        return found

    def believe(self, recording: Recording, probe: ProbeResult) -> tuple[Belief, Classify]:
        """Return the probabilities of the styles, and what classifies other matches in the same way.

        They are those of the agent's own classification head where it has one, else of the probe.
        """
        own = own_classifier(self._policy, recording.styles) if self._features == "latent" else None
        if own is not None:
            classes, classify = own
            return describe_belief("head", classes, classify(recording.features["trained"]), recording), classify
        fitted = _fit_all(recording)
        belief = describe_belief("probe", recording.styles, probe.probabilities, recording)
        return belief, lambda rows: np.exp(fitted.log_probabilities(rows))

    def record_switches(self, switchers: tuple[str, ...]) -> Recording | None:
        """Record matches against bots that switch their style; None if there are no such bots."""
        progress = self._part("drift")
        if not switchers:
            return None
        plan = Plan(switchers, self._matches, _SWITCHES_S, _SWITCH_STEP_S, 0.0, self._features, False, self._seed + 1)
        return self._record(plan, progress)

    def drift(
        self, recording: Recording, switched: Recording | None, bots: tuple[str, ...]
    ) -> tuple[Drift | None, str]:
        """Measure the drift, or return why there is none."""
        if switched is None:
            return None, f"no drift: {self._agent.spec.id} has no bot that switches its style"
        styles = {bots.index(name): index for index, name in enumerate(recording.styles) if name in bots}
        drift = measure_drift(switched, _fit_all(recording), styles)
        return drift, "" if drift is not None else "no drift: fewer than three switches were seen; play more matches"

    def project(self, recording: Recording) -> Planes:
        """Project features to a plane by PCA and t-SNE."""
        progress, features = self._part("maps"), recording.features["trained"]
        samples, matches = np.nonzero(recording.valid)
        chosen = np.unique(np.linspace(0, len(samples) - 1, min(_MAP_FRAMES, len(samples))).astype(np.int64))
        frames = features[samples[chosen], matches[chosen]].astype(np.float64)
        means = np.stack([features[recording.valid[:, m], m].mean(0) for m in range(features.shape[1])])
        plane, shares = probing.pca_plane(np.concatenate((frames, means)))
        tsne = probing.tsne_plane(frames, self._seed)
        progress(1.0)
        labels = recording.labels[matches[chosen]]
        return Planes(plane[: len(frames)], labels, shares, plane[len(frames) :], tsne)

    def ablate(self, opponents: tuple[str, ...], max_envs: int) -> Ablation:
        """Play the matches of the ablation."""
        progress = self._part("ablation")
        with self._make(min(max(len(opponents), 1) * self._matches, max_envs)) as env:
            found = find_players(opponents, env)
            evaluator = PolicyEvaluator(env, found, matches=self._matches, seed=self._seed)
            return ablate(self._policy, evaluator, self._matches, self._features, progress)


def _choose_styles(env: BatchedEnv, styles: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return who keeps one style and which bots switch, out of the given ones or of all bots."""
    switchers = styles_of(env.spec.id).switching_bots
    if styles is None:
        return tuple(bot for bot in env.spec.bots if bot not in switchers), switchers
    for name in styles:
        check_player_name(name, env)
    named = tuple(dict.fromkeys(styles))
    return tuple(name for name in named if name not in switchers), switchers


def _fit_all(recording: Recording) -> Probe:
    """Fit a probe to all matches, to classify others."""
    labels = np.ascontiguousarray(np.broadcast_to(recording.labels, recording.valid.shape)[recording.valid])
    return probing.fit_probe(recording.features["trained"][recording.valid], labels, len(recording.styles))


def _probe_json(probe: ProbeResult) -> dict[str, Any]:
    def numbers(interval: Interval) -> dict[str, float | None]:
        return {name: value if math.isfinite(value) else None for name, value in interval._asdict().items()}

    return {
        "frames": numbers(probe.frames),
        "matches": numbers(probe.matches),
        "by_time": list(map(numbers, probe.by_time)),
        "so_far": list(map(numbers, probe.so_far)),
        "confusion": np.round(probe.confusion, 4).tolist(),
    }
