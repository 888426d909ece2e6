"""Who an agent thinks it is fighting: certainty, calibration, its own head and switches, with numbers made by hand."""

import numpy as np
import pytest
import torch
from tests.strategies import MINIMAL

from ludus.analysis.belief import OTHERS, calibrate, describe_belief, own_classifier, switching_matches
from ludus.analysis.recording import Recording
from ludus.core.intervals import wilson_interval
from ludus.envs.registry import make_env
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy


def make_recording(labels: list[int], samples: int, styles_now: list[int] | None = None) -> Recording:
    matches = len(labels)
    now = np.zeros((samples, matches), np.int64) if styles_now is None else np.array(styles_now)[:, None]
    return Recording(
        styles=tuple(f"style {label}" for label in range(max(labels) + 1)),
        labels=np.array(labels),
        times_s=np.arange(samples, dtype=np.float64) * 0.1,
        valid=np.ones((samples, matches), np.bool_),
        features={"trained": np.arange(samples * matches, dtype=np.float32).reshape(samples, matches, 1)},
        styles_now=now,
        clips={},
        clip_labels=np.zeros(0, np.int64),
        clip_frames=np.zeros(0, np.int64),
    )


def test_certainty_and_doubt_by_hand() -> None:
    recording = make_recording([0, 0, 1, 1], 2)
    recording.valid[1, 3] = False  # the last match is over by then
    even, sure, wrong = [0.5, 0.5], [1.0, 0.0], [0.25, 0.75]
    probabilities = np.array([[even, even, even, even], [sure, wrong, [0.0, 1.0], sure]])
    belief = describe_belief("probe", ("style 0", "style 1"), probabilities, recording)
    # In a draw the first class counts: right in 2, 1, 1 and 0 of the 2, 2, 2 and 1 frames of the matches.
    assert belief.right.estimate == pytest.approx((1.0 + 0.5 + 0.5 + 0.0) / 4)
    assert belief.said == pytest.approx((0.75 + 0.625 + 0.75 + 0.5) / 4)
    assert [each.estimate for each in belief.top[0]] == pytest.approx([0.5, (1.0 + 0.75) / 2])
    assert belief.entropy_bits[0][0] == pytest.approx((1.0, 1.0, 1.0))
    assert belief.entropy_bits[0][1].estimate == pytest.approx((0.0 + 0.811278) / 2)
    assert belief.entropy_bits[1][1].estimate == pytest.approx(0.0, abs=1e-9)
    assert belief.mean[1, 0].tolist() == [0.625, 0.375]
    assert belief.mean[1, 1].tolist() == [0.0, 1.0]
    document = belief.as_json(recording)
    assert document["top"][1][1] == {"estimate": 1.0, "low": 0.0, "high": 1.0}  # one match: nothing is known
    shown = [(match["style"], match["kind"], match["match"]) for match in document["matches"]]
    assert shown == [(0, "typical", 1), (0, "clearest", 0), (1, "typical", 3), (1, "clearest", 2)]
    assert len(document["matches"][2]["probabilities"]) == 1


def test_calibration_by_hand() -> None:
    top = np.array([[0.95, 0.95, 0.55], [0.95, 1.0, 0.2]])
    right = np.array([[True, True, False], [True, False, True]])
    valid = np.array([[True, True, True], [True, True, False]])
    low, high = calibrate(top, right, valid)
    assert (low.frames, low.matches, low.said, low.right.estimate) == (1, 1, 0.55, 0.0)
    assert low.right == wilson_interval(0, 1)
    assert (high.frames, high.matches) == (4, 2)
    assert high.said == pytest.approx((0.95 * 3 + 1.0) / 4)
    assert high.right.estimate == 0.75
    assert high.right.low == wilson_interval(2, 2).low  # three of four frames: two of two matches, rounded
    belief = describe_belief("probe", ("a", "b"), np.array([[[0.9, 0.1]] * 4]), make_recording([0, 0, 1, 1], 1))
    assert belief.calibration_error == pytest.approx(0.9 - 0.5)


def make_policy(strategy: dict[str, object]) -> Policy:
    with make_env("duel") as env:
        return Policy(env.spec, PolicyConfig.model_validate({"strategy": MINIMAL | strategy}))


def test_the_head_of_the_agent_is_asked() -> None:
    policy = make_policy({"classify": 0.5})
    with torch.no_grad():
        policy.get_parameter("auxiliary.recognition.head.1.weight").zero_()
        policy.get_parameter("auxiliary.recognition.head.1.bias").copy_(
            torch.log(torch.tensor([0.5, 0.3, 0.2]))
        )  # rock, cycle, random
    found = own_classifier(policy, ("cycle", "rock:delay=2"))
    assert found is not None
    classes, classify = found
    assert classes == ("cycle", "rock:delay=2", OTHERS)
    assert classify(np.ones((2, 4, 3), np.float32)) == pytest.approx(np.broadcast_to([0.3, 0.5, 0.2], (2, 4, 3)))
    everyone = own_classifier(policy, ("rock", "cycle", "random"))
    assert everyone is not None
    assert everyone[0] == ("rock", "cycle", "random")


def test_no_head_that_tells_the_styles_apart() -> None:
    assert own_classifier(make_policy({}), ("rock", "cycle")) is None
    assert own_classifier(make_policy({"classify": 0.5}), ("rock", "rock:delay=2")) is None
    assert own_classifier(make_policy({"classify": 0.5}), ("style 0", "style 1")) is None


def test_a_match_against_a_switching_bot() -> None:
    recording = make_recording([0], 6, [1, 1, 1, 0, 0, 0])
    recording.valid[5] = False

    def classify(features: np.ndarray) -> np.ndarray:
        return np.concatenate((features / 10.0, 1.0 - features / 10.0), axis=-1).astype(np.float64)

    (match,) = switching_matches(recording, classify, ("rock", "cycle"))
    assert match.opponent == "style 0"
    assert [style for _, style in match.styles] == ["cycle", "rock"]
    assert [start_s for start_s, _ in match.styles] == pytest.approx([0.0, 0.3])
    assert match.times_s.tolist() == pytest.approx([0.0, 0.2, 0.4])
    assert match.probabilities[:, 0].tolist() == pytest.approx([0.0, 0.2, 0.4])
    assert match.as_json()["styles"] == [[0.0, "cycle"], [0.3, "rock"]]
