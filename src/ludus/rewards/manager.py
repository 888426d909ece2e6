"""The manager: weighs the terms of a rollout into its rewards, and keeps them apart for the account.

Several terms are rounded to multiples of 2^-16 before they are added. Sums of such numbers are exact in float32 up to
256 and in float64 far beyond any run, in whatever order they are added: so the account of a rollout, of an episode or
of a whole run adds up to its reward bit for bit.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.core.state import Count, StateModel, check_index, check_names
from ludus.rewards.discriminator import STYLE, Discriminator
from ludus.rewards.sharing import Sharing, check_teams, share_rewards
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import RewardTerm, find_terms
from ludus.rewards.weights import RewardConfig, WeightPath

GRID = 2.0**-16
_OWN = "ludus."  # modules of the package


class SharingState(StateModel):
    """A `Sharing` as JSON."""

    team_spirit: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    zero_sum: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


class RewardState(StateModel):
    """What `RewardManager` saves as JSON.

    Attributes:
        phase: Whose weights are the goal.
        since: Env steps at which it began.
        glide: Env steps that the weights take from the ones before to its own.
        old: Weights before, by term.
        shared_from: Sharing before, where seats share.
    """

    phase: Count = Field(alias="stage")
    since: Count
    glide: Count
    old: dict[str, float] = Field(alias="from")
    shared_from: SharingState = SharingState()


class RewardManager:
    """Terms and their weights at the present time of a run.

    Attributes:
        names: All terms that the run has in any of its phases, in the order of the account.
        weights: Present weight of each term, times its factor.
        sharing: How much seats share at present.
        discriminator: Who rates the term `style`, and learns from every rollout; None where no phase has it.
    """

    def __init__(
        self,
        world: str,
        events: tuple[str, ...],
        configs: tuple[RewardConfig, ...],
        sets: "Sets",
        teams: tuple[int, ...] = (),
        discriminator: Discriminator | None = None,
    ) -> None:
        """Find the terms of all phases.

        Args:
            world: Name of the world without version.
            events: The world's events, which are terms too.
            configs: The rewards of every phase; the first one is in force.
            sets: The world's named sets of weights.
            teams: Team of each seat, where rewards are shared.
            discriminator: Who rates the term `style`, where a phase has it.

        Raises:
            UnknownNameError: A term or a set does not exist.
            ConfigError: There is nothing to reward, or no seat to share it with.
        """
        self._paths = tuple(resolve_weights(config, world, sets) for config in configs)
        self._configs = configs
        self.names = tuple(dict.fromkeys(name for paths in self._paths for name in paths))
        if not self.names:
            raise ConfigError(f"{world} needs at least one reward term; its events: {', '.join(events) or 'none'}")
        self.discriminator = discriminator
        learned: dict[str, RewardTerm] = {} if discriminator is None else {STYLE: discriminator}
        self._terms = learned | find_terms(world, tuple(name for name in self.names if name not in learned), events)
        is_own = all(term.__module__.startswith(_OWN) for term in self._terms.values())
        self._can_be_recorded = is_own and discriminator is None
        self._phase, self._since, self._from = 0, 0, dict.fromkeys(self.names, 0.0)
        self._glide = 0
        self._teams, self._shared_from, self.sharing = teams, Sharing(), Sharing()
        for config in configs:
            check_teams(Sharing(config.team_spirit.highest, float(config.zero_sum)), teams, world)
        self.weights: dict[str, float] = {}
        self._plain: dict[str, float] = {}
        self._factors: dict[str, float] = {}
        self.set_time(0)

    @property
    def shares(self) -> bool:
        """Whether seats share their rewards in any phase: then `contributions` needs all seats of every game."""
        return any(config.zero_sum or config.team_spirit.highest > 0.0 for config in self._configs)

    def set_phase(self, phase: int, env_steps: int) -> None:
        """Make a phase's weights the goal from now on; its points count from here."""
        self._from, self._shared_from = dict(self._plain), self.sharing
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
        config = self._configs[self._phase]
        shared = Sharing(config.team_spirit.value(inside), float(config.zero_sum))
        self.sharing = self._shared_from.toward(shared, share)

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
        if self.sharing:
            parts = share_rewards(parts, self._teams, self.sharing)
        if len(self.names) > 1:
            parts.div_(GRID).round_().mul_(GRID)
        return parts

    @property
    def recording_key(self) -> object | None:
        """What a CUDA graph of `contributions` would depend on: the weights. None where there can be none.

        Terms of users may do what cannot be recorded, and a discriminator learns meanwhile.
        """
        return (tuple(self.weights.items()), self.sharing) if self._can_be_recorded else None

    def learn(self, info: StepInfo) -> None:
        """Let the discriminator, if there is one, learn from a rollout whose rewards were weighed."""
        if self.discriminator is not None:
            self.discriminator.learn(info)

    def state(self) -> dict[str, Any]:
        """Return what the weights depend on beside the config, for JSON."""
        shared = {"team_spirit": self._shared_from.team_spirit, "zero_sum": self._shared_from.zero_sum}
        weights = {"stage": self._phase, "since": self._since, "glide": self._glide, "from": dict(self._from)}
        return {**weights, "shared_from": shared} if self.shares else weights

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
        self._shared_from = Sharing(saved.shared_from.team_spirit, saved.shared_from.zero_sum)
        self.set_time(env_steps)


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
