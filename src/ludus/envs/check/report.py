"""What goes into the conformance kit and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ludus.envs.base import BatchedEnv


class EnvMaker(Protocol):
    """Makes a batch of the world that is to be checked."""

    def __call__(self, num_games: int, seed: int, first_game: int, /) -> BatchedEnv:
        """Returns a new batch; `first_game` is the index of its first game."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How hard the kit looks.

    Attributes:
        num_games: Games in the batches that are played (fewer if the world allows only fewer).
        steps: Steps that two runs are compared over.
        end_steps: Steps after which the kit no longer waits for a game to end. Make the world with a small step
            limit if its games are longer than that.
        seed: Seed of the games and of the random actions.
        random: Whether different seeds must give different games; False for a world without any randomness.
    """

    num_games: int = 4
    steps: int = 50
    end_steps: int = 3000
    seed: int = 17
    random: bool = True


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """What the kit found.

    Attributes:
        world: Versioned name of the world.
        passed: Names of the checks that held.
        skipped: For checks that do not apply to this world, why.
        failed: For checks that failed, what was wrong.
    """

    world: str
    passed: tuple[str, ...]
    skipped: Mapping[str, str]
    failed: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        lines = [f"{self.world}: {len(self.passed)} passed, {len(self.skipped)} skipped, {len(self.failed)} failed"]
        lines += [f"[OK] {name}" for name in self.passed]
        lines += [f"[SKIP] {name}: {reason}" for name, reason in self.skipped.items()]
        lines += [f"[ERROR] {name}: {fault}" for name, faults in self.failed.items() for fault in faults]
        return "\n".join(lines)


class NotApplicableError(Exception):
    """Raised by a check that has nothing to look at in this world; the text says why."""
