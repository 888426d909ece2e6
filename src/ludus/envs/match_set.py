"""Sets: episodes of several matches, of any world of matches, as roshambo's episodes already are of many throws.

An agent that is to adapt to its opponent has to meet it again. In a set the opponent, the seats and every memory stay,
simply because the episode goes on. `make_env` wraps the games where the setting `matches_per_episode` asks for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import (
    BatchedEnv,
    Bots,
    Columns,
    Observations,
    StepResult,
    check_snapshot,
    packed,
)

WON_MATCH = "wins_match_"  # how the events begin that tell who has won the match of a number, from 1 on
_MATCH, _LEAD = "match_set/match", "match_set/lead"  # in snapshots


class MatchSetEnv(BatchedEnv):
    """Games whose episodes are sets of matches: who wins more matches wins the episode.

    Observations, rewards and events of a match are those of the games, and a match that ends begins the next one within
    the step. `wins`, `losses` and `draws` are those of the set, in its last step. The events `wins_match_1` and so on
    are 1 where a seat wins the match of that number.

    Attributes:
        games: The batch itself.
        matches: Matches of a set; all of them are played.
    """

    def __init__(self, games: BatchedEnv, matches: int) -> None:
        """Take over a batch; closing this one closes it.

        Raises:
            ConfigError: The world has one team, or no events that tell who has won.
        """
        spec = games.spec
        if len(set(spec.teams)) < 2 or not {"wins", "losses"} <= set(spec.events):
            raise ConfigError(f"{spec.id} has no matches that somebody wins; leave matches_per_episode out")
        self.games, self.matches, self.num_envs, self.device = games, matches, games.num_envs, games.device
        self.first_game, self.warnings = games.first_game, games.warnings
        events = (*spec.events, *(f"{WON_MATCH}{number}" for number in range(1, matches + 1)))
        limit = None if spec.step_limit is None else matches * spec.step_limit
        self.spec = replace(spec, step_limit=limit, events=events)
        games.play_sets(matches)
        self._untouched = True
        self._match = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)  # number of each game's match
        self._lead = torch.zeros((self.num_envs, spec.seats), device=self.device)  # matches won minus matches lost
        # A step changes these in place, so that a CUDA graph can hold it.
        self._events = Columns(torch.zeros((self.num_envs, spec.seats, len(events)), device=self.device), events)
        self._terminated, self._truncated = (torch.zeros_like(self._match, dtype=torch.bool) for _ in range(2))
        self._numbers = torch.arange(matches, device=self.device)

    @property
    def seed(self) -> int:  # type: ignore[override]  # a reset may change that of the games
        """Seed of all random streams."""
        return self.games.seed

    @property
    def games_device(self) -> torch.device:
        """Device that the games are played on."""
        return self.games.games_device

    @property
    def unwrapped(self) -> BatchedEnv:
        """The games of the world; see `BatchedEnv.unwrapped`."""
        return self.games.unwrapped

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start new sets; see `BatchedEnv.reset`."""
        self._check_reset(games, seed)
        if seed is not None or (games is None and self._untouched):
            observations = self.games.reset(seed=seed)
        else:
            # Bots draw what lasts for a set by the number of the match over the matches of a set: none is left out.
            due = torch.ones_like(self._terminated) if games is None else games
            for number in range(self.matches):
                observations = self.games.reset(due & (self._match + number < self.matches))
        chosen = torch.ones_like(self._terminated) if games is None else games
        self._match.masked_fill_(chosen, 0)
        self._lead.masked_fill_(chosen.unsqueeze(1), 0.0)
        self._untouched = False
        return observations

    def _advance(self, actions: Tensor) -> StepResult:
        result = self.games.step(actions)
        self._untouched = False
        own, ended = self.games.spec.events, result.ended
        last = ended & (self._match == self.matches - 1)
        self._lead += result.events["wins"] - result.events["losses"]
        won = (self._match.unsqueeze(1) == self._numbers).unsqueeze(1) & (result.events["wins"] > 0.0).unsqueeze(2)
        self._events.packed[..., : len(own)].copy_(packed(result.events, own))
        self._events.packed[..., len(own) :].copy_(won)
        outcomes = {"wins": self._lead > 0.0, "losses": self._lead < 0.0, "draws": self._lead == 0.0}
        for name in outcomes.keys() & set(own):
            self._events[name].copy_(outcomes[name] & last.unsqueeze(1))
        self._terminated.copy_(result.terminated & last)
        self._truncated.copy_(result.truncated & last)
        self._lead.masked_fill_(last.unsqueeze(1), 0.0)
        self._match.add_(ended).remainder_(self.matches)
        return replace(result, terminated=self._terminated, truncated=self._truncated, events=self._events)

    def recording_key(self) -> object | None:
        """Return that of the games; see `BatchedEnv.recording_key`."""
        return self.games.recording_key()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state; see `BatchedEnv.snapshot`."""
        return self.games.snapshot() | {name: tensor.clone() for name, tensor in self._own_state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Take the state of `snapshot`; see `BatchedEnv.restore`."""
        state = self._own_state()
        own = {name: tensor for name, tensor in snapshot.items() if name in state}
        check_snapshot(own, state, self.spec.id, {_MATCH: (0, self.matches - 1)})
        observations = self.games.restore({name: tensor for name, tensor in snapshot.items() if name not in own})
        for name, tensor in state.items():
            tensor.copy_(own[name])
        self._untouched = False
        return observations

    def _own_state(self) -> dict[str, Tensor]:
        return {_MATCH: self._match, _LEAD: self._lead}

    def bots(self, names: Sequence[str]) -> Bots:
        """Make scripted players of the given names; see `BatchedEnv.bots`."""
        return self.games.bots(names)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Draw one game; see `BatchedEnv.render`."""
        return self.games.render(game)

    def close(self) -> None:
        """Close the games."""
        self.games.close()
