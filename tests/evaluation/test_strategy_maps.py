"""Maps of features: separation by hand, PCA by hand, t-SNE where it is installed and its absence named."""

import sys

import numpy as np
import pytest

from ludus.core.errors import ConfigError, MissingDependencyError
from ludus.evaluation.strategy_maps import match_means, neighbour_plane, principal_plane, separation, silhouette

LINE = np.array([[0.0], [2.0], [10.0], [12.0]])
PAIRS = np.array([0, 0, 1, 1])


def test_silhouette_by_hand() -> None:
    # Own distance 2 each; to the other style 11, 9, 9, 11.
    assert silhouette(LINE, PAIRS) == pytest.approx((9 / 11 + 7 / 9 + 7 / 9 + 9 / 11) / 4)
    assert silhouette(np.zeros((4, 2)), PAIRS) == 0.0
    assert silhouette(LINE, np.array([0, 1, 0, 1])) < 0.0
    with pytest.raises(ConfigError, match="at least 2 styles"):
        silhouette(LINE, np.zeros(4, np.int64))


def test_a_point_alone_in_its_style_counts_nothing() -> None:
    # 0 and 1 are 10 and 9 from the loner, who is 0 by definition.
    points, labels = np.array([[0.0], [1.0], [10.0]]), np.array([0, 0, 1])
    assert silhouette(points, labels) == pytest.approx((9 / 10 + 8 / 9 + 0) / 3)


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


def test_the_principal_plane_by_hand() -> None:
    points = np.array([[3.0, 0.0, 1.0], [-3.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0]])
    plane, shares = principal_plane(points)
    assert plane == pytest.approx(points[:, :2])
    assert shares == pytest.approx([0.9, 0.1])


def test_one_feature_has_no_second_direction() -> None:
    plane, shares = principal_plane(LINE)
    assert plane[:, 0] == pytest.approx(LINE[:, 0] - 6.0)
    assert plane[:, 1] == pytest.approx(0.0)
    assert shares == pytest.approx([1.0, 0.0])


def test_neighbours_stay_together() -> None:
    pytest.importorskip("sklearn")
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(size=(20, 5)), 30.0 + random.normal(size=(20, 5))])
    plane = neighbour_plane(points)
    assert silhouette(plane, np.repeat([0, 1], 20)) > 0.6
    assert np.array_equal(plane, neighbour_plane(points))


def test_without_scikit_learn_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "ludus\[analysis\]"'):
        neighbour_plane(LINE)
