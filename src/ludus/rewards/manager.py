"""The manager: weighs the terms of a rollout into its rewards, and keeps them apart for the account.

Where seats share (team spirit), each term is mixed with its mean over the seat's team. With `c` a seat's part of a
term, `n` the size of its team and `S` the team's sum, the seat gets

    (1 - team_spirit) * c + team_spirit * S / n

Several terms are rounded to multiples of 2^-16 before they are added. Sums of such numbers are exact in float32 up to
256 and in float64 far beyond any run, in whatever order they are added: so the account of a rollout, of an episode or
of a whole run adds up to its reward bit for bit.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.state import Count, StateModel, check_index, check_names
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import find_terms
from ludus.rewards.weights import RewardConfig, WeightPath

GRID = 2.0**-16
_OWN = "ludus."  # modules of the package


class RewardState(StateModel):
    """What `RewardManager` saves as JSON.

    Attributes:
        phase: Whose weights are the goal.
        since: Env steps at which it began.
        glide: Env steps that the weights take from the ones before to its own.
        old: Weights before, by term.
        shared_from: Team spirit before, where seats share.
    """

    phase: Count = Field(alias="stage")
    since: Count
    glide: Count
    old: dict[str, float] = Field(alias="from")
    shared_from: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


class RewardManager:
    """Terms and their weights at the present time of a run.

    Attributes:
        names: All terms that the run has in any of its phases, in the order of the account.
        weights: Present weight of each term, times its factor.
        team_spirit: How much seats share at present.
    """

    def __init__(
        self,
        world: str,
        events: tuple[str, ...],
        configs: tuple[RewardConfig, ...],
        sets: "Sets",
        teams: tuple[int, ...] = (),
    ) -> None:
        """Find the terms of all phases.

        Args:
            world: Name of the world without version.
            events: The world's events, which are terms too.
            configs: The rewards of every phase; the first one is in force.
            sets: The world's named sets of weights.
            teams: Team of each seat, where rewards are shared.

        Raises:
            UnknownNameError: A term or a set does not exist.
            ConfigError: There is nothing to reward, or there are no teams to share it in.
        """
        self._paths = tuple(resolve_weights(config, world, sets) for config in configs)
        self._configs = configs
        self.names = tuple(dict.fromkeys(name for paths in self._paths for name in paths))
        if not self.names:
            raise ConfigError(f"{world} needs at least one reward term; its events: {', '.join(events) or 'none'}")
        self._terms = find_terms(world, self.names, events)
        self._can_be_recorded = all(term.__module__.startswith(_OWN) for term in self._terms.values())
        self._phase, self._since, self._from = 0, 0, dict.fromkeys(self.names, 0.0)
        self._glide = 0
        self._teams, self._shared_from, self.team_spirit = teams, 0.0, 0.0
        if self.shares and not teams:
            raise ConfigError(f"{world} gives rewards without teams; leave out team_spirit")
        self.weights: dict[str, float] = {}
        self._plain: dict[str, float] = {}
        self._factors: dict[str, float] = {}
        self.set_time(0)

    @property
    def shares(self) -> bool:
        """Whether seats share their rewards in any phase: then `contributions` needs all seats of every game."""
        return any(config.team_spirit.highest > 0.0 for config in self._configs)

    def set_phase(self, phase: int, env_steps: int) -> None:
        """Make a phase's weights the goal from now on; its points count from here."""
        self._from, self._shared_from = dict(self._plain), self.team_spirit
        self._phase, self._since, self._glide = phase, env_steps, self._configs[phase].glide_env_steps
        self.set_time(env_steps)

    def set_time(self, env_steps: int) -> None:
        """Set the weights for the next rollout."""
        inside = env_steps - self._since
        paths = self._paths[self._phase]
        goal = {name: paths[name].value(inside) if name in paths else 0.0 for name in self.names}
        share = min(inside / self._glide, 1.0) if self._glide else 1.0
        self._plain = {name: (1.0 - share) * self._from[name] + share * goal[name] for name in self.names}
        self.weights = {name: weight * self._factors.get(name, 1.0) for name, weight in self._plain.items()}
        spirit = self._configs[self._phase].team_spirit.value(inside)
        self.team_spirit = (1.0 - share) * self._shared_from + share * spirit

    def set_factors(self, factors: Mapping[str, float]) -> None:
        """Multiply the weights of some terms by factors from the next `set_time` on; all others keep theirs.

        Raises:
            UnknownNameError: There is no such term in any phase.
        """
        for name in factors:
            if name not in self.names:
                raise UnknownNameError("reward term of the run", name, self.names)
        self._factors = dict(factors)

    def contributions(self, info: StepInfo) -> Tensor:
        """Return what each term adds to the reward, `(terms, ...)` float32, by `names`; rewards are their sum.

        Args:
            info: Of any rows; where rewards are shared, of all seats of every game, game after game.

        Raises:
            ConfigError: A term does not give one number for each element of the step, or seats are missing.
        """
        like = next(iter((info.events or info.state_metrics).values()))
        parts = torch.zeros((len(self.names), *like.shape), dtype=torch.float32, device=like.device)
        for part, name in zip(parts, self.names, strict=True):
            if self.weights[name] != 0.0:
                values = self._terms[name](info)
                if values.shape != like.shape:
                    raise ConfigError(
                        f"reward term {name!r} gave shape {tuple(values.shape)} for {tuple(like.shape)}; "
                        "it must give one number for each element"
                    )
                torch.mul(values, self.weights[name], out=part)
        if self.team_spirit != 0.0:
            parts = share_rewards(parts, self._teams, self.team_spirit)
        if len(self.names) > 1:
            parts.div_(GRID).round_().mul_(GRID)
        return parts

    @property
    def recording_key(self) -> object | None:
        """What a CUDA graph of `contributions` would depend on: the weights. None where there can be none.

        Terms of users may do what cannot be recorded.
        """
        return (tuple(self.weights.items()), self.team_spirit) if self._can_be_recorded else None

    def state(self) -> dict[str, Any]:
        """Return what the weights depend on beside the config, for JSON."""
        weights = {"stage": self._phase, "since": self._since, "glide": self._glide, "from": dict(self._from)}
        return {**weights, "shared_from": self._shared_from} if self.shares else weights

    def load_state(self, state: object, env_steps: int) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is of another config.
        """
        saved = RewardState.read(state, "course.rewards")
        check_index(saved.phase, len(self._paths), "course.rewards.stage")
        check_names(saved.old, self.names, "course.rewards.from")
        self._phase, self._since, self._glide = saved.phase, saved.since, saved.glide
        self._from = {name: saved.old[name] for name in self.names}
        self._shared_from = saved.shared_from
        self.set_time(env_steps)


def share_rewards(parts: Tensor, teams: Sequence[int], team_spirit: float) -> Tensor:
    """Share contributions among the seats of each team.

    Args:
        parts: `(terms, ..., rows)`, all seats of a game beside each other, game after game.
        teams: Team of each seat.
        team_spirit: Share of the team's mean in each seat's reward, 0 to 1.

    Raises:
        ConfigError: The rows are not all seats of a number of games.
    """
    if parts.shape[-1] % len(teams):
        raise ConfigError(
            f"rewards are shared among all {len(teams)} seats of a game, got {parts.shape[-1]} rows; give every seat's"
        )
    seats = parts.view(*parts.shape[:-1], -1, len(teams))
    # Not indexed by a list, which would have to be copied to a GPU: that cannot be recorded.
    columns = seats.unbind(-1)
    shared = torch.empty_like(seats)
    for team in dict.fromkeys(teams):
        members = [seat for seat, its in enumerate(teams) if its == team]
        total = torch.stack([columns[seat] for seat in members], -1).sum(-1)
        for seat in members:
            shared[..., seat] = seats[..., seat] * (1.0 - team_spirit) + total * (team_spirit / len(members))
    return shared.flatten(-2)


Sets = Mapping[str, Mapping[str, float | WeightPath]]


def resolve_weights(config: RewardConfig, world: str, sets: Sets) -> dict[str, WeightPath]:
    """Return the weight of each term: the named set, changed by the config's own weights.

    Raises:
        UnknownNameError: The world has no such set.
    """
    paths: dict[str, WeightPath] = {}
    if config.base is not None:
        if config.base not in sets:
            raise UnknownNameError(f"set of rewards of {world}", config.base, tuple(sets))
        for name, weight in sets[config.base].items():
            paths[name] = weight if isinstance(weight, WeightPath) else WeightPath(points=((0, weight),))
    paths |= config.weights
    return {name: path for name, path in paths.items() if any(weight != 0.0 for _, weight in path.points)}
