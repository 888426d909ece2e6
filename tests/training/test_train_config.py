"""Settings: they survive JSON, say what is wrong, and decide when a checkpoint is due."""

from typing import Any

import pytest
from pydantic import ValidationError

from ludus.core.errors import ConfigError
from ludus.core.files import JSON
from ludus.training.callbacks import Counters
from ludus.training.checkpointing import is_due
from ludus.training.config import CheckpointConfig, TrainConfig


def test_settings_survive_json() -> None:
    config = TrainConfig.model_validate(
        {
            "world": {"name": "brawl", "settings": {"fixed_weapons": ["sword", "spear"]}},
            "policy": {"strategy": {"layers": 2, "heads": 2, "width": 8}, "net_arch": {"pi": [3]}},
            "ppo": {"learning_rate": {"kind": "kl_adaptive", "start": 1e-3}, "clip_range": 0.1},
            "rewards": {"weights": {"wins": 1.0}},
            "opponents": {"based": 2, "random": 0.5},
        }
    )
    assert TrainConfig.from_json(config.to_json()) == config
    assert TrainConfig.model_validate({"world": {"name": "duel"}, "opponents": "rock"}).opponents == {"rock": 1.0}


def test_settings_that_json_cannot_hold_are_refused() -> None:
    config = TrainConfig.model_validate({"world": {"name": "brawl", "settings": {"fixed_weapons": ("sword", "spear")}}})
    with pytest.raises(ConfigError, match="must be JSON values"):
        config.to_json()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"opponents": {}}, "needs a weight above 0"),
        ({"opponents": {"rock": 0}}, "needs a weight above 0"),
        ({"opponents": {"rock": -1}}, "greater than or equal to 0"),
        ({"total_env_steps": 0}, "greater than or equal to 1"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"speed": 1}, "Extra inputs"),
        ({"rewards": {"weights": {"wins": float("nan")}}}, "finite"),
        (
            {"algorithm": "sac", "sac": {}, "policy": {"recurrent": {"size": 8}}},
            "policy.recurrent",
        ),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        TrainConfig.model_validate({"world": {"name": "duel"}} | change)


def test_stored_settings_of_another_version_are_refused_by_name() -> None:
    document: JSON = {"world": {"name": "duel", "size": 3}, "ppo": {"n_steps": 0}}
    with pytest.raises(ConfigError, match=r"world.size: Extra inputs.*ppo.n_steps: "):
        TrainConfig.from_json(document)


def test_a_checkpoint_is_due_when_a_multiple_is_passed() -> None:
    steps = CheckpointConfig(every_env_steps=100)
    passed = [(90, 100), (90, 120), (100, 130), (190, 420)]
    due = [is_due(steps, Counters(env_steps=before), Counters(env_steps=after)) for before, after in passed]
    assert due == [True, True, False, True]
    iterations = CheckpointConfig(every_env_steps=None, every_iterations=3)
    assert [is_due(iterations, Counters(0, i), Counters(9, i + 1)) for i in range(6)] == [
        False, False, True, False, False, True,
    ]  # fmt: skip
    assert not is_due(CheckpointConfig(every_env_steps=None), Counters(), Counters(10**9, 10**6))
