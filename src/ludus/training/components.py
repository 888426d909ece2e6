"""The parts that learn together, made from a config, and their whole state as tensors and back."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import Field
from torch import Tensor

from ludus.algorithms.algorithm import LearnerParts
from ludus.algorithms.learner import Learner
from ludus.core.errors import UnsupportedError
from ludus.core.random import stream_hash
from ludus.core.state import Count, StateModel, check_names
from ludus.envs.base import BatchedEnv, EnvSpec, check_fits
from ludus.envs.registry import make_env
from ludus.envs.world_parts import default_rewards, metrics_of, reward_sets
from ludus.league.opponents import LeagueOpponents
from ludus.policies.policy import Policy
from ludus.rewards.manager import RewardManager
from ludus.rewards.weights import RewardConfig
from ludus.rollout.buffer import RolloutBuffer
from ludus.rollout.episodes import EpisodeRecorder
from ludus.training.agent_opponents import load_agent_opponents
from ludus.training.config import TrainConfig
from ludus.training.distributed import SINGLE_PROCESS
from ludus.training.resolve import ResolvedRun, layout_of, phase_label, resolve

logger = logging.getLogger(__name__)

_STREAM_RETRY = 0x4E7B
_STREAM_PHASE = 0x57A6


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that the future of a run depends on, at the end of an iteration.

    The groups of tensors are those of the learner, trace, random; games and opponents where there are.
    """

    tensors: Mapping[str, Mapping[str, Tensor]]
    learner: Mapping[str, Any]  # its counters, as JSON
    course: Mapping[str, Any] = field(default_factory=dict)  # state of rewards, curriculum and league, as JSON

    def with_other_randomness(self, seed: int, iteration: int, attempt: int) -> "RunState":
        """Return the state with other exploration and minibatches, so that a retry does not repeat a fault."""
        device = self.tensors["policy"][next(iter(self.tensors["policy"]))].device  # its generators differ
        high, low = (stream_hash(seed, iteration, attempt, half, _STREAM_RETRY) for half in (0, 1))
        generator = torch.Generator(device).manual_seed(high << 31 | low >> 1)
        return replace(self, tensors={**self.tensors, "random": {"learner": generator.get_state()}})


class PhaseStart(StateModel):
    """For which phase the present games were made, and how many steps the run had done."""

    phase: Count = Field(default=0, alias="stage")
    env_steps: Count = 0


START = PhaseStart()


class Components:
    """Games, policy, learner, opponents and reward of one run.

    Attributes:
        phase_start: When its games were made, and for which phase.
        env: The games.
        policy: What is learned.
        learner: Collects and updates.
        rewards: Weighs the terms.
        trace: What happened in the last rollout.
        opponents: Who plays the seats that are not the learner's, or None.
        agents: Policies of the agents among the opponents, by name.
    """

    def __init__(
        self, run: TrainConfig | ResolvedRun, phase_start: PhaseStart = START, folder: Path | None = None
    ) -> None:
        """Make everything and start the games; the same arguments give the same numbers.

        Settings alone are those of a run in one process. `folder` is the run folder, if there is one; it holds copies
        of the agents among the opponents.

        Raises:
            ConfigError: The run cannot be divided among its processes, or a setting is wrong otherwise.
        """
        self._run = resolve(run, SINGLE_PROCESS)
        config = self._config = self._run.own
        self.env = self._make_games(phase_start)
        try:
            with torch.random.fork_rng(devices=[]):  # parameters are drawn on the host, from a stream of their own
                torch.manual_seed(config.seed)
                self.policy = Policy(self.env.spec, config.playing_policy(), self.env.device)
            self.agents = load_agent_opponents(config, self.env.spec, self.env.device, folder)
            self._make_players(None)
        except BaseException:
            self.env.close()
            raise

    def begin_phase(self, phase: int, env_steps: int) -> None:
        """Rebuild games, opponents, recorder and rollout for a phase after `env_steps`; everything learned is kept.

        Raises:
            ConfigError: Something else would be seen or done in its games.
        """
        groups, counters = self.learner.state()
        learned = {name: group for name, group in groups.items() if name != "collector"}
        weights, spec, carry_over_from = self.rewards.state(), self.env.spec, self.opponents
        self.env.close()
        del self.learner, self.trace, groups  # the new ones need their memory
        self.env = self._make_games(PhaseStart(stage=phase, env_steps=env_steps))
        try:
            check_fits(spec, self.env.spec, phase_label(self._config, phase))
            self.policy.spec = self.env.spec
            self._make_players(carry_over_from)
            self.rewards.load_state(weights, env_steps)
            self.learner.load_learned(learned, counters)
        except BaseException:
            self.env.close()
            raise

    def has_games_of(self, phase: int) -> bool:
        """Return whether the current games and their seat counts are those of a phase."""
        return layout_of(self._config, phase) == layout_of(self._config, self.phase_start.phase)

    def _make_games(self, phase_start: PhaseStart) -> BatchedEnv:
        self.phase_start, self._here = phase_start, self._config.at_phase(phase_start.phase)
        seed, world = self._config.seed, self._here.world
        # Games that begin later are other ones than the first, also where the same phase begins twice.
        self._seed = seed if phase_start == START else stream_hash(seed, phase_start.env_steps, _STREAM_PHASE)
        first, settings = self._run.first_game(phase_start.phase), world.settings or None
        return make_env(
            world.name, world.num_envs, self._here.learner_device, seed=self._seed, first_game=first, config=settings,
            games_device=world.device,
        )  # fmt: skip

    def _make_players(self, carry_over_from: LeagueOpponents | None) -> None:
        config, env = self._here, self.env
        self.rewards = make_rewards(env.spec, config)
        self.opponents = self._make_opponents(config, carry_over_from)
        self.trace = EpisodeRecorder(env.spec, self.rewards, metrics_of(env.spec.id), self.opponents)
        seed, learner = self._run.process.seed(config.seed), self.opponents.learner if self.opponents else None
        parts = LearnerParts(
            env, self.policy, config.policy, self.trace, seed=seed, learner=learner, opponents=self.opponents
        )
        self.learner: Learner = config.method.make_learner(config.hyperparameters, parts)
        if self.opponents is not None:
            self.opponents.attach(self.learner.rows)

    @property
    def buffer(self) -> RolloutBuffer:
        """The last rollout of an on-policy algorithm.

        Raises:
            UnsupportedError: The algorithm keeps other rollouts.
        """
        rollout = self.learner.rollout
        if not isinstance(rollout, RolloutBuffer):
            raise UnsupportedError(f"algorithm {self._config.algorithm} keeps no rollout buffer; use algorithm ppo")
        return rollout

    def _make_opponents(self, config: TrainConfig, before: LeagueOpponents | None) -> LeagueOpponents | None:
        phases = config.phases()
        if not phases:
            return None
        weights = {name: 0.0 for phase in phases for name in phase.opponents} | phases[self.phase_start.phase].opponents
        return LeagueOpponents(
            self.env, self.policy, weights, config.league, self._seed, agents=self.agents, carry_over_from=before
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the world in which the agent is evaluated at present."""
        return self._config.judged_settings(self.phase_start.phase)

    @property
    def env_steps(self) -> int:
        """Steps of learner seats that all processes did; each has as many as the others."""
        return self.learner.env_steps * self._run.process.count

    def state(self) -> RunState:
        """Return a copy of the whole state."""
        groups, counters = self.learner.state()
        tensors: dict[str, Mapping[str, Tensor]] = {**groups, "trace": self.trace.state()}
        if self.env.spec.snapshots:
            tensors["games"] = self.env.snapshot()
        if self.opponents is not None:
            tensors["opponents"] = self.opponents.state()
        return RunState(tensors, counters)

    def load_state(self, state: RunState) -> None:
        """Restore a state; a world that cannot restore its games restarts them, with a warning.

        Raises:
            StateError: A part is missing or does not fit.
            SnapshotError: The games' part does not fit.
        """
        expected = {*self.learner.groups, "trace"} | ({"games"} if self.env.spec.snapshots else set())
        expected |= {"opponents"} if self.opponents is not None else set()
        check_names(state.tensors.keys(), expected, "the run's state")
        if self.opponents is not None:
            self.opponents.load_state(state.tensors["opponents"])
        self.trace.load_state(state.tensors["trace"])
        groups = {name: state.tensors[name] for name in self.learner.groups}
        if self.env.spec.snapshots:
            self.learner.load_state(groups, state.learner, self.env.restore(state.tensors["games"]))
            return
        logger.warning(
            "[WARN] %s cannot restore its games: all %d restart, the learner resumes at env step %d",
            self.env.spec.id, self.env.num_envs, state.learner["env_steps"] * self._run.process.count,
        )  # fmt: skip
        self.learner.load_state(groups, state.learner, self.env.reset(), games_restarted=True)
        self.trace.restart()
        if self.opponents is not None:
            self.opponents.restart()

    def close(self) -> None:
        """Close the games."""
        self.env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_rewards(spec: EnvSpec, config: TrainConfig) -> RewardManager:
    """Make the rewards of all phases of a run; see `TrainConfig.rewards` for what is taken when none are named.

    Raises:
        UnknownNameError: A term or a set of weights does not exist.
    """
    configs = tuple(phase.rewards or config.rewards for phase in config.phases()) or (config.rewards,)
    named = tuple(each if each.base is not None or each.weights else _usual(spec, each) for each in configs)
    return RewardManager(spec.name, spec.events, named, reward_sets(spec.id), spec.teams)


def _usual(spec: EnvSpec, config: RewardConfig) -> RewardConfig:
    """Return the world's own rewards with what stands in a config beside whatever is rewarded."""
    shared = ("team_spirit", "glide_env_steps")
    return default_rewards(spec).model_copy(update={name: getattr(config, name) for name in shared})
