"""Linear probes: what is separable is told apart, what says nothing is chance, and no match is on both sides."""

import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.analysis.probe import (
    fit_probe,
    fold_by_match,
    match_means,
    pca_plane,
    probe_held_out,
    separation,
    tsne_plane,
)
from ludus.core.errors import ConfigError, MissingDependencyError

pytestmark = pytest.mark.train

Floats = NDArray[np.float32]
SAMPLES, MATCHES, STYLES = 10, 24, 3
LABELS = np.repeat(np.arange(STYLES), MATCHES // STYLES)
ALL = np.ones((SAMPLES, MATCHES), np.bool_)


def noise(seed: int, size: int = 4) -> Floats:
    return np.random.default_rng(seed).normal(size=(SAMPLES, MATCHES, size)).astype(np.float32)


def test_styles_that_lie_apart_are_named_without_fault() -> None:
    features = noise(0) * np.float32(0.1)
    features[..., 0] += LABELS
    found = probe_held_out(features, LABELS, ALL, STYLES)
    assert (found.frames.estimate, found.matches.estimate) == (1.0, 1.0)
    assert found.matches.low == pytest.approx(0.862, abs=1e-3)  # Wilson, 24 of 24
    assert np.array_equal(found.confusion, np.eye(STYLES))


def test_a_constant_is_chance() -> None:
    found = probe_held_out(np.ones((SAMPLES, MATCHES, 2), np.float32), LABELS, ALL, STYLES)
    assert found.chance == pytest.approx(1 / 3)
    assert found.frames.estimate == pytest.approx(1 / 3)
    assert found.matches.low < 1 / 3 < found.matches.high


def test_matches_are_never_on_both_sides() -> None:
    """Every match has a mark of its own that says nothing of the style: only a probe that cheats could use it."""
    marks = np.random.default_rng(1).normal(size=(1, MATCHES, 30)).astype(np.float32)
    features = np.repeat(marks, SAMPLES, 0) + np.float32(0.05) * noise(2, 30)
    honest = probe_held_out(features, LABELS, ALL, STYLES)
    assert honest.frames.low < 1 / 3 < honest.frames.high
    by_frame = np.arange(SAMPLES * MATCHES) // MATCHES % 4
    rows = features.reshape(-1, 30)
    of_row = np.broadcast_to(LABELS, ALL.shape).reshape(-1)
    leaky = fit_probe(rows[by_frame != 0], np.ascontiguousarray(of_row[by_frame != 0]), STYLES)
    right = leaky.log_probabilities(rows[by_frame == 0]).argmax(-1) == of_row[by_frame == 0]
    assert right.mean() > 0.95


def test_folds_are_even_and_keep_both_sides_together() -> None:
    labels = np.array([0] * 8 + [1] * 4)
    assert fold_by_match(labels).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1]


def test_what_is_known_later_is_named_later() -> None:
    features = noise(3)
    for style in range(STYLES):
        features[6:, style == LABELS, style] += 9.0
    found = probe_held_out(features, LABELS, ALL, STYLES)
    assert len(found.by_time) == SAMPLES
    assert all(interval.estimate == 1.0 for interval in found.by_time[6:])
    assert all(interval.estimate < 0.7 for interval in found.by_time[:6])
    assert found.so_far[-1] == found.matches
    assert found.so_far[0] == found.by_time[0]


def test_frames_after_the_end_do_not_count() -> None:
    features, valid = noise(4), ALL.copy()
    features[..., 0] += 9.0 * LABELS
    valid[5:, ::2] = False
    features[~valid] = 1e6
    found = probe_held_out(features, LABELS, valid, STYLES)
    assert found.frames.estimate == 1.0
    assert found.by_time[-1].low == pytest.approx(0.757, abs=1e-3)  # 12 of 12


def test_equal_data_give_equal_numbers() -> None:
    one, two = (probe_held_out(noise(5), LABELS, ALL, STYLES) for _ in range(2))
    assert one.frames == two.frames


@pytest.mark.parametrize("labels", [[0] * MATCHES, [0] * (MATCHES - 2) + [1] * 2])
def test_too_little_to_hold_out(labels: list[int]) -> None:
    with pytest.raises(ConfigError, match="styles"):
        probe_held_out(noise(0), np.array(labels), ALL, max(labels) + 1)


LINE = np.array([[0.0], [2.0], [10.0], [12.0]])
PAIRS = np.array([0, 0, 1, 1])


def test_silhouette_by_hand() -> None:
    # Own distance 2 each; to the other style 11, 9, 9, 11.
    assert separation(LINE, PAIRS).silhouette == pytest.approx((9 / 11 + 7 / 9 + 7 / 9 + 9 / 11) / 4)
    assert separation(np.zeros((4, 2)), PAIRS).silhouette == 0.0
    assert separation(LINE, np.array([0, 1, 0, 1])).silhouette < 0.0


def test_a_point_alone_in_its_style_counts_nothing() -> None:
    # 0 and 1 are 10 and 9 from the loner, who is 0 by definition.
    points, labels = np.array([[0.0], [1.0], [10.0]]), np.array([0, 0, 1])
    assert separation(points, labels).silhouette == pytest.approx((9 / 10 + 8 / 9 + 0) / 3)


def test_between_over_within_by_hand() -> None:
    found = separation(LINE, PAIRS)
    assert found.between_within == pytest.approx(100.0 / 4.0)  # means 1 and 11 around 6, squares 4 x 25 and 4 x 1
    assert found.between_within_by_chance == pytest.approx(1 / 2)
    assert separation(np.zeros((4, 1)), PAIRS).between_within is None


def test_matches_are_means_of_their_valid_frames() -> None:
    features = np.array([[[0.0, 5.0], [4.0, 5.0]], [[2.0, 5.0], [99.0, 5.0]]], np.float32)
    valid = np.array([[True, True], [True, False]])
    # Frames that count are 0, 4, 2: mean 2, variance 8/3; the constant says nothing.
    deviation = np.sqrt(8 / 3)
    assert match_means(features, valid) == pytest.approx(np.array([[-1.0 / deviation, 0.0], [2.0 / deviation, 0.0]]))


def test_the_pca_plane_by_hand() -> None:
    points = np.array([[3.0, 0.0, 1.0], [-3.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0]])
    plane, shares = pca_plane(points)
    assert plane == pytest.approx(points[:, :2])
    assert shares == pytest.approx([0.9, 0.1])


def test_one_feature_has_no_second_direction() -> None:
    plane, shares = pca_plane(LINE)
    assert plane[:, 0] == pytest.approx(LINE[:, 0] - 6.0)
    assert plane[:, 1] == pytest.approx(0.0)
    assert shares == pytest.approx([1.0, 0.0])


def test_neighbours_stay_together() -> None:
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(size=(20, 5)), 30.0 + random.normal(size=(20, 5))])
    plane = tsne_plane(points)
    assert separation(plane, np.repeat([0, 1], 20)).silhouette > 0.6
    assert np.array_equal(plane, tsne_plane(points))


def test_without_scikit_learn_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingDependencyError, match=r"\[analysis\]"):
        separation(LINE, PAIRS)
