"""Which stages of a run need games of their own: those whose world, or whose part of mirrored games, is another."""

from typing import NamedTuple

from ludus.league.mix import mirrored_games
from ludus.training.config import TrainConfig, WorldConfig


class Layout(NamedTuple):
    """What games, rows and tensors of a stage are made by; the next stage goes on in the same games if it is the same.

    Attributes:
        world: The games.
        mirrored: In how many of them the learner plays every seat.
    """

    world: WorldConfig
    mirrored: int


def layout_of(config: TrainConfig, stage: int = 0) -> Layout:
    """Returns the layout of a stage, or of a run without stages."""
    world, stages = config.at_stage(stage).world, config.stages()
    return Layout(world, mirrored_games(stages[stage].opponents, world.num_games) if stages else 0)


def stages_with_own_games(config: TrainConfig) -> tuple[int, ...]:
    """Returns the first stage, and every later one whose layout none before it has."""
    layouts = [layout_of(config, stage) for stage in range(max(len(config.stages()), 1))]
    return tuple(stage for stage, layout in enumerate(layouts) if layout not in layouts[:stage])


def stage_label(config: TrainConfig, stage: int) -> str:
    """Returns `stage 'name'`, or nothing in a run without a curriculum."""
    return f"stage {config.curriculum[stage].name!r}" if config.curriculum else ""
