"""What makes it harder for an agent: it sees the world late, or through noise; the agent itself does not change."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import Observations
from ludus.evaluation.first_matches import Leaving


@dataclass(frozen=True, slots=True)
class Hindrance:
    """How an agent is hindered.

    Attributes:
        delay_frames: Steps by which all that it sees is late; until then it sees the first frame of the match.
        noise: Standard deviation of what is added to every continuous entry of an observation, in its own units:
            worlds give observations whose fields are of the order of 1.
    """

    delay_frames: int = 0
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.delay_frames < 0 or not 0.0 <= self.noise < float("inf"):
            raise ConfigError(
                f"a delay of {self.delay_frames} frames and noise of {self.noise} cannot be; both are 0 or more"
            )


class HinderedPlayer:
    """An actor that sees less than the others do; see `Hindrance`."""

    def __init__(self, player: Leaving, hindrance: Hindrance, seed: int, device: torch.device) -> None:
        """Stands between the games and a player.

        Args:
            player: Who decides.
            hindrance: What it suffers.
            seed: Of the noise.
            device: Of the games.
        """
        self._player, self._hindrance = player, hindrance
        self._generator = torch.Generator(device).manual_seed(seed)
        self._past: list[Observations] = []

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Lets the player decide on what it sees; see `Actor.act`."""
        self._player.act(self._blur(self._late(observations, first=first)), actions, first=first)

    def keep(self, games: Tensor) -> None:
        """Goes on in the games of this mask `(games,)` alone."""
        self._player.keep(games)

    def _late(self, observations: Observations, *, first: bool) -> Observations:
        delay = self._hindrance.delay_frames
        if delay == 0:
            return observations
        if first:
            self._past = []
        # The environment overwrites its tensors at the next step.
        self._past.append({name: tensor.clone() for name, tensor in observations.items()})
        return self._past.pop(0) if len(self._past) > delay else self._past[0]

    def _blur(self, observations: Observations) -> Observations:
        if self._hindrance.noise == 0.0:
            return observations
        return {name: self._blurred(tensor) for name, tensor in observations.items()}

    def _blurred(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        drawn = torch.randn(tensor.shape, generator=self._generator, dtype=tensor.dtype, device=tensor.device)
        return tensor + self._hindrance.noise * drawn


def hinder(player: Leaving, hindrance: Hindrance | None, seed: int, device: torch.device) -> Leaving:
    """Returns the player itself if nothing hinders it, else one that sees the world as the hindrance has it."""
    if hindrance is None or hindrance == Hindrance():
        return player
    return HinderedPlayer(player, hindrance, seed, device)
