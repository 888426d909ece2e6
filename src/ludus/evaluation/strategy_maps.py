"""Maps of features: how far the styles lie apart, and planes on which to look at them (PCA and t-SNE)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError

Array = NDArray[np.float64]

_PERPLEXITY = 30.0


@dataclass(frozen=True, slots=True)
class Separation:
    """How far the styles lie apart; every match is one point, the mean of its frames.

    Attributes:
        silhouette: -1 to 1: how much nearer a match is to those of its own style than to those of the next one.
        between_within: Variance between styles over that within them.
        between_within_by_chance: What that is on average where the style makes no difference.
    """

    silhouette: float
    between_within: float | None
    between_within_by_chance: float


def match_means(features: NDArray[np.float32], valid: NDArray[np.bool_]) -> Array:
    """Returns the mean `(matches, size)` of standardised features `(samples, matches, size)` over valid frames."""
    frames = features[valid].astype(np.float64)
    scale = frames.std(0)
    scaled = (features - frames.mean(0)) / np.where(scale > 1e-9, scale, 1.0)
    weights = valid / np.maximum(valid.sum(0), 1)
    means: Array = np.einsum("smf,sm->mf", scaled, weights)
    return means


def separation(points: Array, labels: NDArray[np.int64]) -> Separation:
    """Returns how far the styles of points `(matches, size)` with labels `(matches,)` lie apart."""
    styles = np.unique(labels)
    middle = points.mean(0)
    groups = [points[labels == style] for style in styles]
    within = sum(float(np.square(group - group.mean(0)).sum()) for group in groups)
    between = sum(len(group) * float(np.square(group.mean(0) - middle).sum()) for group in groups)
    return Separation(
        silhouette=silhouette(points, labels),
        between_within=between / within if within > 1e-12 else None,
        between_within_by_chance=(len(styles) - 1) / max(len(points) - len(styles), 1),
    )


def silhouette(points: Array, labels: NDArray[np.int64]) -> float:
    """Returns the mean silhouette of points `(points, size)`; 0 where all points are the same.

    With a the mean distance to the others of its style and b the least mean distance to another style, a point's is
    (b - a) / max(a, b); that of a point alone in its style is 0.
    """
    styles = np.unique(labels)
    if len(styles) < 2:
        raise ConfigError(f"a silhouette needs at least 2 styles, got {len(styles)}")
    squares = np.square(points).sum(1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares[None] - 2.0 * points @ points.T, 0.0))
    np.fill_diagonal(distances, 0.0)
    belongs = (labels[:, None] == styles[None]).astype(np.float64)
    counts = belongs.sum(0)
    sums = distances @ belongs
    own = belongs.astype(bool)
    size = counts[own.argmax(1)]
    inside = sums[own] / np.maximum(size - 1.0, 1.0)
    outside = np.where(own, np.inf, sums / counts).min(1)
    larger = np.maximum(inside, outside)
    scores = np.where((size > 1) & (larger > 1e-9), (outside - inside) / np.where(larger > 1e-9, larger, 1.0), 0.0)
    return float(scores.mean())


def principal_plane(points: Array) -> tuple[Array, Array]:
    """Returns coordinates `(points, 2)` on the two directions of most variance, and each one's share of it.

    The larger end of each direction is the positive one, so that equal data give equal pictures.
    """
    centred = points - points.mean(0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    if len(sizes) < 2:  # one feature, or one point
        left, sizes, right = (np.pad(part, pad) for part, pad in (
            (left, ((0, 0), (0, 1))), (sizes, (0, 1)), (right, ((0, 1), (0, 0)))))  # fmt: skip
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(1)])
    coordinates = left[:, :2] * sizes[:2] * np.where(signs[:2] == 0.0, 1.0, signs[:2])
    total = float(np.square(sizes).sum())
    return coordinates, np.square(sizes[:2]) / (total if total > 0.0 else 1.0)


def neighbour_plane(points: Array, seed: int = 0) -> Array:
    """Returns coordinates `(points, 2)` by t-SNE, which keeps neighbours together; distances in it mean little.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "analysis", "the t-SNE map") from error
    perplexity = min(_PERPLEXITY, max((len(points) - 1) / 3.0, 1.0))
    model = TSNE(2, perplexity=perplexity, init="pca", learning_rate="auto", random_state=seed)
    plane: Array = np.asarray(model.fit_transform(points), np.float64)
    return plane
