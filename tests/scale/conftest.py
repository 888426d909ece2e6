"""A sweep of runs that take a fraction of a second."""

from collections.abc import Callable
from pathlib import Path

import pytest

TINY = """\
world: {name: identity, num_envs: 8}
total_env_steps: 256
policy: {net_arch: {pi: [4], vf: [4]}}
ppo:
  n_steps: 8
  batch_size: 64
  n_epochs: 1
  learning_rate: {sweep: log_uniform, low: 1e-4, high: 1e-1}
evaluation: {every_env_steps: 64, matches: 2}
checkpoints: {every_env_steps: null}
monitoring: {tensorboard: false, resources: false}
"""

Write = Callable[..., Path]


@pytest.fixture
def write_sweep(tmp_path: Path) -> Write:
    """Writes a configuration with a section `sweep` and returns its path: `write_sweep("trials: 2, seeds: 1")`."""

    def write(section: str = "", more: str = "", text: str = TINY) -> Path:
        file = tmp_path / "sweep.yaml"
        file.write_text(f"{text}{more}\nsweep: {{{section}}}\n")
        return file

    return write
