"""Which part of a run one process does: its games, its share of a minibatch, its device and its seeds.

`world.num_games` and `ppo.batch_size` are those of the whole run, however many processes share it: games keep their
index, so that all of them together play the games that one process would.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ludus.core.errors import ConfigError
from ludus.core.random import stream_hash
from ludus.curriculum.config import StageConfig
from ludus.training.config import TrainConfig

_STREAM_RANK = 0x4A4B
_NEEDED = ("MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class Place:
    """One process among those of a run.

    Attributes:
        rank: Its number, from 0; rank 0 writes.
        count: Processes of the run.
        local_rank: Its number on its machine, which is also the number of its GPU.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Reads the place that `torchrun` gives to a process; without it, or if it starts one, a process is alone.

        Raises:
            ConfigError: The variables contradict each other or are no whole numbers.
        """
        if "RANK" not in environment or "WORLD_SIZE" not in environment:
            return cls()
        rank, count = _whole(environment, "RANK"), _whole(environment, "WORLD_SIZE")
        local_rank = _whole(environment, "LOCAL_RANK") if "LOCAL_RANK" in environment else rank
        if not 0 <= rank < count:
            raise ConfigError(f"RANK is {rank} and WORLD_SIZE {count}; RANK must be 0 to {count - 1}; use torchrun")
        missing = [name for name in _NEEDED if name not in environment]
        if count > 1 and missing:
            raise ConfigError(f"WORLD_SIZE is {count}, but {', '.join(missing)} not set; start the run by torchrun")
        return cls(rank, count, local_rank) if count > 1 else cls()

    def share(self, config: TrainConfig) -> TrainConfig:
        """Returns the settings of this process's part: games, minibatch and device are its own.

        Raises:
            ConfigError: The games or the minibatch cannot be divided evenly, or the device or the algorithm is not for
                several.
        """
        if self.count == 1:
            return config
        if config.algorithm != "ppo":
            raise ConfigError(
                f"algorithm {config.algorithm} learns in one process, not in {self.count}; start it without "
                "torchrun, or use algorithm ppo"
            )
        world, ppo = config.world, config.ppo
        games = self._part(world.num_games, "world.num_games")
        batch_size = ppo.batch_size  # that of minibatch_count follows from the rows of a process
        if ppo.minibatch_count is None:
            batch_size = self._part(ppo.batch_size, "ppo.batch_size")
        device = self._device(world.device)
        return config.model_copy(
            update={
                "world": world.model_copy(update={"num_games": games, "device": device}),
                "ppo": ppo.model_copy(update={"batch_size": batch_size}),
                "curriculum": tuple(self._share_stage(stage, i) for i, stage in enumerate(config.curriculum)),
            }
        )

    def _share_stage(self, stage: StageConfig, index: int) -> StageConfig:
        if stage.world is None or stage.world.num_games is None:
            return stage
        games = self._part(stage.world.num_games, f"curriculum.{index}.world.num_games")
        return stage.model_copy(update={"world": stage.world.model_copy(update={"num_games": games})})

    def first_game(self, config: TrainConfig) -> int:
        """Returns the index of the first of its games in the whole run's settings."""
        return self.rank * (config.world.num_games // self.count)

    def seed(self, seed: int) -> int:
        """Returns the seed of its exploration and minibatches, 0 to 2**63 - 1; rank 0 has the run's own."""
        if self.rank == 0:
            return seed
        high, low = (stream_hash(seed, self.rank, half, _STREAM_RANK) for half in (0, 1))
        return high << 31 | low >> 1

    def _part(self, whole: int, name: str) -> int:
        if whole % self.count:
            below, above = whole // self.count * self.count, -(-whole // self.count) * self.count
            valid = f"{below} or {above}" if below else str(above)
            raise ConfigError(
                f"{name} {whole} cannot be divided evenly among {self.count} processes; use a multiple of "
                f"{self.count}, such as {valid}, or another number of processes"
            )
        return whole // self.count

    def _device(self, asked: str) -> str:
        kind, _, number = asked.partition(":")
        if number:
            raise ConfigError(
                f"world.device {asked!r} names one device for {self.count} processes; use {kind!r}, of which every "
                "process takes its own"
            )
        return asked if kind == "cpu" else f"{kind}:{self.local_rank}"


ALONE = Place()


def _whole(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise ConfigError(f"{name} is {environment[name]!r}; it must be a whole number; use torchrun") from None
