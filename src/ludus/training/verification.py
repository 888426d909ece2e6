"""Start-up verification."""

from collections.abc import Iterator
from pathlib import Path

from ludus.training.config import TrainConfig


def verify(config: TrainConfig) -> Iterator[str]:
    """Checks a run before it starts."""
    yield f"world {config.world.name}"


def summarise(config: TrainConfig, folder: Path, user: str) -> Iterator[str]:
    """Tells what a run is."""
    yield f"user {user or '-'}, {config.world.num_games} games, {folder}"
