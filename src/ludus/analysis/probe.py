"""Linear probes of an agent's features: do they predict the opponent's style? Its separation and projections."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError
from ludus.core.intervals import Interval, mean_interval, wilson_interval

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FOLDS = 4
_DECAY = 1e-3  # weight decay beside the mean cross-entropy; features have deviation 1
_ITERATIONS = 100

Array = NDArray[np.float64]

_PERPLEXITY = 30.0


@dataclass(frozen=True, slots=True)
class Probe:
    """Multinomial logistic regression on standardized features."""

    model: "Pipeline"  # a fitted pipeline of scikit-learn
    styles: int  # how many styles there are

    def log_probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Map features `(..., size)` to log probabilities of the styles `(..., styles)`."""
        rows = features.reshape(-1, features.shape[-1]).astype(np.float64)
        scores = self.model.decision_function(rows)
        if self.styles == 2:  # scikit-learn returns the score of the second style alone
            scores = np.stack((np.zeros_like(scores), scores), axis=-1)
        found: NDArray[np.float64] = torch.log_softmax(torch.from_numpy(scores), dim=-1).numpy()
        return found.reshape(*features.shape[:-1], self.styles)


def fit_probe(features: NDArray[np.float32], labels: NDArray[np.int64], styles: int) -> Probe:
    """Fit a probe to features `(rows, size)` and labels `(rows,)`, in which every style occurs.

    Equal data give equal numbers.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    check_sklearn()
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # scikit-learn minimizes C * sum(cross-entropy) + |w|^2 / 2, we mean(cross-entropy) + decay * |w|^2 / 2. For two
    # styles it has one weight vector instead of two opposite halves, whose penalty is twice as large.
    strength = (2.0 if styles == 2 else 1.0) / (_DECAY * len(labels))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=_ITERATIONS))
    with warnings.catch_warnings():
        # Held-out accuracy saturates long before the optimum is exact.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features.astype(np.float64), labels)
    return Probe(model, styles)


def check_sklearn() -> None:
    """Raise MissingDependencyError with the install command if scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "analysis", "the strategy analysis") from error


def fold_by_match(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold `(matches,)` in which each match is held out; every style is spread evenly over the folds.

    Two consecutive matches share a fold, since the agent's side alternates.
    """
    fold = np.zeros_like(labels)
    for style in np.unique(labels):
        own = np.flatnonzero(labels == style)
        fold[own] = np.arange(len(own)) // 2 % FOLDS
    return fold


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Accuracy of a probe on held-out matches."""

    frames: Interval  # accuracy per frame, each match with equal weight; the interval is over matches
    matches: Interval  # accuracy per match, from all its frames together
    by_time: tuple[Interval, ...]  # accuracy per frame at each sample time
    so_far: tuple[Interval, ...]  # accuracy at each sample time from all frames of the match up to then
    confusion: Array  # `(styles, styles)`, share of frames of the row's style that are classified as the column's
    chance: float  # accuracy of always predicting the most frequent style
    probabilities: Array  # `(samples, matches, styles)`, each match by a probe that has not seen it


def probe_held_out(
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    valid: NDArray[np.bool_],
    styles: int,
    progress: Callable[[float], None] = lambda _: None,
) -> ProbeResult:
    """Cross-validate a probe over folds of matches; `progress` is called with the fraction done.

    Features are `(samples, matches, size)`, labels `(matches,)`; `valid`, `(samples, matches)`, are frames that count.

    Raises:
        ConfigError: There are fewer than two styles, or too few matches to hold any out.
    """
    fold = fold_by_match(labels)
    counts = np.bincount(labels, minlength=styles)
    if styles < 2 or counts.min() < 3:
        raise ConfigError(
            f"a probe needs at least 2 styles with 3 matches each, got {styles} styles, {counts.min()} matches of one; "
            "play more matches"
        )
    log_probabilities = np.zeros((*valid.shape, styles))
    for number in np.unique(fold):
        held_out = fold == number
        trained = valid & ~held_out
        of_frame = np.broadcast_to(labels, valid.shape)[trained]
        probe = fit_probe(features[trained], np.ascontiguousarray(of_frame), styles)
        log_probabilities[:, held_out] = probe.log_probabilities(features[:, held_out])
        progress((float(number) + 1.0) / (float(fold.max()) + 1.0))
    return _judge(log_probabilities, labels, valid, styles)


def _judge(
    log_probabilities: NDArray[np.float64], labels: NDArray[np.int64], valid: NDArray[np.bool_], styles: int
) -> ProbeResult:
    predicted = log_probabilities.argmax(-1)
    right = (predicted == labels) & valid
    together = np.cumsum(np.where(valid[..., None], log_probabilities, 0.0), axis=0)
    right_so_far = (together.argmax(-1) == labels) & valid
    shares = right.sum(0) / np.maximum(valid.sum(0), 1)
    frames = mean_interval(shares[valid.any(0)].tolist())
    confusion = np.zeros((styles, styles))
    np.add.at(confusion, (np.broadcast_to(labels, valid.shape)[valid], predicted[valid]), 1.0)
    by_time, so_far = (
        tuple(wilson_interval(int(r.sum()), int(v.sum())) for r, v in zip(found, valid, strict=True))
        for found in (right, right_so_far)
    )
    return ProbeResult(
        frames=Interval(frames.estimate, max(frames.low, 0.0), min(frames.high, 1.0)),
        matches=wilson_interval(int((together[-1].argmax(-1) == labels).sum()), len(labels)),
        by_time=by_time,
        so_far=so_far,
        confusion=confusion / np.maximum(confusion.sum(1, keepdims=True), 1.0),
        chance=float(np.bincount(labels).max() / len(labels)),
        probabilities=np.exp(log_probabilities),
    )


@dataclass(frozen=True, slots=True)
class Separation:
    """Separation of the styles; every match is one point, the mean of its frames."""

    silhouette: float  # mean silhouette coefficient, -1 to 1; 0 where all points are equal
    between_within: float | None  # variance between styles over that within them
    between_within_by_chance: float  # its expectation where the style makes no difference


def match_means(features: NDArray[np.float32], valid: NDArray[np.bool_]) -> Array:
    """Return the mean `(matches, size)` of standardized features `(samples, matches, size)` over valid frames."""
    frames = features[valid].astype(np.float64)
    scale = frames.std(0)
    scaled = (features - frames.mean(0)) / np.where(scale > 1e-9, scale, 1.0)
    weights = valid / np.maximum(valid.sum(0), 1)
    means: Array = np.einsum("smf,sm->mf", scaled, weights)
    return means


def separation(points: Array, labels: NDArray[np.int64]) -> Separation:
    """Return the separation of the styles of points `(matches, size)` with labels `(matches,)`; two or more styles."""
    check_sklearn()
    from sklearn.metrics import silhouette_score

    styles = np.unique(labels)
    middle = points.mean(0)
    groups = [points[labels == style] for style in styles]
    within = sum(float(np.square(group - group.mean(0)).sum()) for group in groups)
    between = sum(len(group) * float(np.square(group.mean(0) - middle).sum()) for group in groups)
    return Separation(
        silhouette=float(silhouette_score(points, labels)),
        between_within=between / within if within > 1e-12 else None,
        between_within_by_chance=(len(styles) - 1) / max(len(points) - len(styles), 1),
    )


def pca_plane(points: Array) -> tuple[Array, Array]:
    """Return coordinates `(points, 2)` on the first two principal components, and their shares of the variance."""
    check_sklearn()
    from sklearn.decomposition import PCA

    if points.shape[1] == 1:  # a constant second feature adds a component of no variance
        points = np.pad(points, ((0, 0), (0, 1)))
    model = PCA(2, svd_solver="full")
    with np.errstate(invalid="ignore"):  # 0 / 0 if all points are equal
        plane = model.fit_transform(points)
    return plane, np.nan_to_num(model.explained_variance_ratio_)


def tsne_plane(points: Array, seed: int = 0) -> Array:
    """Return coordinates `(points, 2)` by t-SNE, which keeps neighbours together; distances in it mean little."""
    check_sklearn()
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, max((len(points) - 1) / 3.0, 1.0))
    model = TSNE(2, perplexity=perplexity, init="pca", learning_rate="auto", random_state=seed)
    plane: Array = np.asarray(model.fit_transform(points), np.float64)
    return plane
