"""The strategy log: its numbers by hand, its cadence and sample, and a run that goes on with the same rows."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer, train
from ludus.training.components import Components
from ludus.training.strategy_log import (
    Sample,
    StrategyLog,
    drift_between,
    drift_within,
    entropy_of,
    mean_latents,
    sample_size,
    separation,
    spread,
)

STRATEGY = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5, "latent": 4, "pooling": 4}
FILE = "strategy_analysis.csv"


def make_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 16},
            "total_env_steps": 6 * 16 * 16,
            "policy": {"strategy": STRATEGY},
            "ppo": {"n_steps": 16, "sequence_length": 4, "batch_size": 64, "n_epochs": 1},
            "opponents": {"rock": 1, "cycle": 1},
            "monitoring": {"strategy_every_iterations": 2},
        }
        | changes
    )


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / FILE).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def sample(*segments: tuple[str, bool, list[list[float]]]) -> Sample:
    """Makes a sample of (opponent, whole, latents of its frames) each."""
    latents = torch.tensor([frames for _, _, frames in segments], dtype=torch.float64).transpose(0, 1)
    whole = torch.tensor([is_whole for _, is_whole, _ in segments])
    return Sample(latents, whole, tuple(name for name, _, _ in segments))


def test_drift_within_is_the_way_from_the_first_to_the_last_frame_of_whole_segments() -> None:
    looked_at = sample(
        ("a", True, [[0.0, 0.0], [9.0, 9.0], [3.0, 4.0]]),
        ("a", True, [[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]]),
        ("a", False, [[0.0, 0.0], [0.0, 0.0], [100.0, 0.0]]),
    )
    assert drift_within(looked_at) == pytest.approx((5.0 + 1.0) / 2.0)
    assert drift_within(sample(("a", False, [[0.0], [1.0]]))) is None


def test_separation_is_the_variance_between_opponents_over_that_within() -> None:
    # Mean latents of the segments: a at 0 and 2, b at 10 and 12. Middles 1, 11, of all 6.
    # Within: 4 x 1 = 4; between: 4 x 25 = 100.
    looked_at = sample(
        ("b", True, [[9.0], [11.0]]),
        ("a", True, [[0.0], [0.0]]),
        ("b", True, [[12.0], [12.0]]),
        ("a", True, [[1.0], [3.0]]),
        ("c", False, [[1000.0], [1000.0]]),
    )
    assert separation(looked_at) == pytest.approx(25.0)
    assert mean_latents(looked_at) == {"a": [1.0], "b": [11.0]}
    assert separation(sample(("a", True, [[0.0]]), ("a", True, [[1.0]]))) is None, "one opponent"
    assert separation(sample(("a", True, [[0.0]]), ("b", True, [[1.0]]))) is None, "nothing varies within"


def test_drift_between_is_the_mean_way_of_opponents_that_are_in_both_rows() -> None:
    before = {"a": [0.0, 0.0], "b": [1.0, 1.0], "gone": [5.0, 5.0]}
    assert drift_between(before, {"a": [3.0, 4.0], "b": [1.0, 2.0], "new": [7.0, 7.0]}) == pytest.approx(3.0)
    assert drift_between({}, before) is None


def test_entropy_of_attention_by_hand() -> None:
    weights = torch.tensor([[[0.25, 0.25, 0.25, 0.25]], [[1.0, 0.0, 0.0, 0.0]]])
    assert float(entropy_of(weights)) == pytest.approx(math.log(4.0) / 2.0)


@pytest.mark.parametrize(("segments", "size"), [(4, 4), (64, 8), (512, 64), (2048, 256), (100_000, 256)])
def test_a_sample_is_bounded(segments: int, size: int) -> None:
    assert sample_size(segments) == size


def test_a_sample_is_spread_over_rows_and_chunks() -> None:
    rows, chunks = 512, 4
    chosen = spread(256, rows * chunks)
    assert len(set(chosen.tolist())) == 256
    counts = torch.bincount(chosen // rows, minlength=chunks)
    assert counts.min() >= 60
    assert counts.max() <= 68
    assert len(set((chosen % rows).tolist())) >= 200, "equal steps of 8 would give 64 rows"
    assert spread(1, 1).tolist() == [0]


def test_rows_are_made_at_the_cadence_and_mean_what_the_policy_does() -> None:
    with Components(make_config()) as components:
        log = StrategyLog(components, 2)
        components.learner.iterate()
        (first,) = log.look(Counters(256, 1, 4))
        assert (first["iteration"], first["env_steps"], first["segments"], first["opponents"]) == (1, 256, 8, 2)
        assert first["drift_between_iterations"] is None
        components.learner.iterate()
        assert log.look(Counters(512, 2, 8)) == []
        (third,) = log.look(Counters(768, 3, 12))
        assert third["drift_between_iterations"] is not None
        with torch.no_grad():  # an encoder whose pooling cannot choose weighs all frames that it sees alike
            for parameter in components.policy.memory.strategy.pooling_score.parameters():  # type: ignore[union-attr]
                parameter.zero_()
        components.learner.collect()
        components.learner.collect()  # scores in the first memory of this one are of the pooling as it is now, too
        (fifth,) = log.look(Counters(1280, 5, 20))
        # Matches of 10 rounds; this rollout is rounds 48 to 63 of all games, in chunks of 4; pooling sees 3 frames.
        seen = [[min((48 + 4 * chunk + step) % 10 + 1, 3) for step in range(4)] for chunk in range(4)]
        chunks = (spread(8, 64) // 16).tolist()
        expected = sum(math.log(frames) for chunk in chunks for frames in seen[chunk]) / 32
        assert fifth["attention_entropy"] == pytest.approx(expected, rel=1e-5)
        with torch.no_grad():
            components.policy.memory.strategy.latent.weight.zero_()  # type: ignore[union-attr]
            components.policy.memory.strategy.latent.bias.fill_(0.5)  # type: ignore[union-attr]
        (seventh,) = log.look(Counters(1536, 7, 24))
        assert seventh["latent_mean"] == 0.5
        assert seventh["latent_std"] == 0.0
        assert seventh["latent_norm"] == 1.0, "the length of (0.5, 0.5, 0.5, 0.5)"
        assert seventh["drift_within_episodes"] == 0.0
        assert seventh["separation"] is None


def test_a_run_writes_rows_and_one_that_went_on_writes_the_same(tmp_path: Path) -> None:
    class StopAfter(BaseCallback):
        def on_iteration(self, iteration: Iteration) -> None:
            if iteration.counters.iterations == 4:
                self.trainer.stop()

    train(make_config(), tmp_path / "straight")
    stop = StopAfter()
    with Trainer(make_config(), tmp_path / "stopped", [stop]) as trainer:
        trainer.run()
    assert [row["iteration"] for row in rows_of(tmp_path / "stopped")] == ["1", "3"]
    train(make_config(), tmp_path / "stopped")
    assert [row["iteration"] for row in rows_of(tmp_path / "straight")] == ["1", "3", "5"]
    assert (tmp_path / "straight" / FILE).read_bytes() == (tmp_path / "stopped" / FILE).read_bytes()
    last = rows_of(tmp_path / "straight")[-1]
    assert last["opponents"] == "2"
    assert all(math.isfinite(float(value)) for value in last.values())


def test_there_is_no_file_without_an_encoder(tmp_path: Path) -> None:
    train(make_config(policy={}, total_env_steps=256), tmp_path)
    assert (tmp_path / "metrics.jsonl").exists()
    assert not (tmp_path / FILE).exists()


def test_a_world_without_opponents_is_one_group(tmp_path: Path) -> None:
    train(make_config(opponents=None, total_env_steps=512), tmp_path)
    (row,) = rows_of(tmp_path)
    assert row["opponents"] == "1"
    assert row["separation"] == ""
