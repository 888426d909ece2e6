"""The parts that learn together, made from a config, and their whole state as tensors and back."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from ludus.algorithms.learner import Learner
from ludus.algorithms.off_policy.learner import OffPolicyLearner
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import StateError, UnsupportedError
from ludus.core.random import stream_hash
from ludus.envs.adapters.rewards import default_weights
from ludus.envs.base import BatchedEnv, EnvSpec
from ludus.envs.behaviour import behaviour_of
from ludus.envs.fitting import check_fits
from ludus.envs.registry import make_env
from ludus.envs.reward_sets import reward_sets
from ludus.league.opponents import LeagueOpponents
from ludus.policies.memory import part_of, with_prefix
from ludus.policies.policy import Policy
from ludus.rewards.manager import RewardManager
from ludus.rewards.weights import RewardConfig, WeightPath
from ludus.training.config import TrainConfig
from ludus.training.devices import choose_device
from ludus.training.layouts import layout_of, stage_label
from ludus.training.place import ALONE, Place
from ludus.training.trace import RolloutTrace

logger = logging.getLogger(__name__)

_STREAM_RETRY = 0x4E7B
_STREAM_STAGE = 0x57A6


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that the future of a run depends on, at the end of an iteration.

    Attributes:
        tensors: Groups of tensors: those of the learner, trace, random; games and opponents where there are.
        learner: The learner's counters, as JSON.
        course: Where rewards, curriculum and league stand, as JSON.
    """

    tensors: Mapping[str, Mapping[str, Tensor]]
    learner: Mapping[str, Any]
    course: Mapping[str, Any] = field(default_factory=dict)

    def with_other_randomness(self, seed: int, iteration: int, attempt: int) -> "RunState":
        """Returns the state with other exploration and minibatches, so that a retry does not repeat a fault."""
        device = self.tensors["policy"][next(iter(self.tensors["policy"]))].device  # its generators differ
        high, low = (stream_hash(seed, iteration, attempt, half, _STREAM_RETRY) for half in (0, 1))
        generator = torch.Generator(device).manual_seed(high << 31 | low >> 1)
        return replace(self, tensors={**self.tensors, "random": {"learner": generator.get_state()}})


class Begun(NamedTuple):
    """When the present games were made.

    Attributes:
        stage: For which stage.
        env_steps: Steps that the run had done.
    """

    stage: int = 0
    env_steps: int = 0


START = Begun()


class Workbench:
    """Games, policy, learner, opponents and reward of one run.

    Attributes:
        begun: When its games were made, and for which stage.
        env: The games.
        policy: What is learned.
        learner: Collects and updates.
        rewards: Weighs the terms.
        trace: What happened in the last rollout.
        opponents: Who plays the seats that are not the learner's, or None.
    """

    def __init__(self, config: TrainConfig, place: Place = ALONE, begun: Begun = START) -> None:
        """Makes everything and starts the games; the same arguments give the same numbers.

        Args:
            config: Of the whole run.
            place: Which part of it this process does.
            begun: Which stage's games are played.

        Raises:
            ConfigError: The run cannot be divided among its processes, or a setting is wrong otherwise.
        """
        self._whole, self._place = choose_device(config), place
        self._config = place.share(self._whole)
        self.env = self._make_games(begun)
        try:
            with torch.random.fork_rng(devices=[]):  # parameters are drawn on the host, from a stream of their own
                torch.manual_seed(config.seed)
                self.policy = Policy(self.env.spec, config.playing_policy(), self.env.device)
            self._make_players(None)
        except BaseException:
            self.env.close()
            raise

    def begin_stage(self, stage: int, env_steps: int) -> None:
        """Makes games, opponents, trace and rollout anew for a stage; all that was learned goes on.

        Args:
            stage: Its index.
            env_steps: Steps that the run has done.

        Raises:
            ConfigError: Something else would be seen or done in its games.
        """
        flat, counters = self.ppo.state()
        learned = {name: tensor for name, tensor in flat.items() if not name.startswith("collector.")}
        weights, spec, heir_of = self.rewards.state(), self.env.spec, self.opponents
        self.env.close()
        del self.learner, self.trace, flat  # the new ones need their memory
        self.env = self._make_games(Begun(stage, env_steps))
        try:
            check_fits(spec, self.env.spec, stage_label(self._config, stage))
            self.policy.spec = self.env.spec
            self._make_players(heir_of)
            self.rewards.load_state(weights, env_steps)
            self.ppo.load_learned(learned, counters)
        except BaseException:
            self.env.close()
            raise

    def has_games_of(self, stage: int) -> bool:
        """Says whether the present games, and who plays how many of their seats, are as a stage wants them."""
        return layout_of(self._config, stage) == layout_of(self._config, self.begun.stage)

    def _make_games(self, begun: Begun) -> BatchedEnv:
        self.begun, self._here = begun, self._config.at_stage(begun.stage)
        seed, world = self._config.seed, self._here.world
        # Games that begin later are other ones than the first, also where the same stage begins twice.
        self._seed = seed if begun == START else stream_hash(seed, begun.env_steps, _STREAM_STAGE)
        return make_env(
            world.name,
            world.num_games,
            world.device,
            seed=self._seed,
            first_game=self._place.first_game(self._whole.at_stage(begun.stage)),
            config=world.settings or None,
        )

    def _make_players(self, heir_of: LeagueOpponents | None) -> None:
        config, env = self._here, self.env
        self.rewards = make_rewards(env.spec, config)
        self.opponents = self._make_opponents(config, heir_of)
        self.trace = RolloutTrace(env.spec, self.rewards, behaviour_of(env.spec.id), self.opponents)
        self.learner = self._make_learner(config, self._place.seed(config.seed))
        if self.opponents is not None:
            self.opponents.attach(self.learner.rows)

    def _make_learner(self, config: TrainConfig, seed: int) -> Learner:
        if config.algorithm != "ppo":
            return OffPolicyLearner(
                self.env,
                self.policy,
                config.algorithm,
                config.off_policy,
                layers=config.policy,
                reward=self.trace,
                seed=seed,
            )
        return PpoLearner(
            self.env,
            self.policy,
            config.ppo,
            seed=seed,
            reward=self.trace,
            learner=self.opponents.learner if self.opponents else None,
            opponents=self.opponents,
        )

    @property
    def ppo(self) -> PpoLearner:
        """The learner, where what is done with it is PPO's alone."""
        if not isinstance(self.learner, PpoLearner):
            raise UnsupportedError(f"{type(self.learner).__name__} is not PPO; use algorithm ppo")
        return self.learner

    def _make_opponents(self, config: TrainConfig, heir_of: LeagueOpponents | None) -> LeagueOpponents | None:
        stages = config.stages()
        if not stages:
            return None
        weights = {name: 0.0 for stage in stages for name in stage.opponents} | stages[self.begun.stage].opponents
        return LeagueOpponents(self.env, self.policy, weights, config.league, self._seed, heir_of=heir_of)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the world in which the agent is evaluated at present."""
        return self._config.judged_settings(self.begun.stage)

    @property
    def env_steps(self) -> int:
        """Steps of learner seats that all processes did; each has as many as the others."""
        return self.learner.env_steps * self._place.count

    def state(self) -> RunState:
        """Returns a copy of the whole state."""
        flat, counters = self.learner.state()
        tensors: dict[str, Mapping[str, Tensor]] = {name: part_of(flat, name) for name in self.learner.groups}
        tensors["random"] = {"learner": flat["random"]}
        tensors["trace"] = self.trace.state()
        if self.env.spec.snapshots:
            tensors["games"] = self.env.snapshot()
        if self.opponents is not None:
            tensors["opponents"] = self.opponents.state()
        return RunState(tensors, counters)

    def load_state(self, state: RunState) -> None:
        """Goes back, or on, to a state; a world that cannot be restored starts its games anew, and says so.

        Raises:
            StateError: A part is missing or does not fit.
            SnapshotError: The games' part does not fit.
        """
        expected = {*self.learner.groups, "random", "trace"} | ({"games"} if self.env.spec.snapshots else set())
        expected |= {"opponents"} if self.opponents is not None else set()
        if set(state.tensors) != expected:
            got = ", ".join(sorted(state.tensors))
            raise StateError(f"the run's state has {got}; expected {', '.join(sorted(expected))}; use the same config")
        if self.opponents is not None:
            self.opponents.load_state(state.tensors["opponents"])
        self.trace.load_state(state.tensors["trace"])
        tensors = {"random": state.tensors["random"]["learner"]}
        for name in self.learner.groups:
            tensors |= with_prefix(name, state.tensors[name])
        if self.env.spec.snapshots:
            self.learner.load_state(tensors, state.learner, self.env.restore(state.tensors["games"]))
        else:
            self._load_with_new_games(tensors, state)

    def _load_with_new_games(self, tensors: dict[str, Tensor], state: RunState) -> None:
        logger.warning(
            "[WARN] %s cannot restore its games: all %d start anew, the learner goes on from env step %d",
            self.env.spec.id, self.env.num_games, state.learner["env_steps"] * self._place.count,
        )  # fmt: skip
        observations = self.env.reset()
        tensors["collector.starts"] = torch.ones_like(tensors["collector.starts"])
        tensors["collector.running"] = torch.zeros_like(tensors["collector.running"])
        self.learner.load_state(tensors, state.learner, observations)
        self.trace.restart()
        if self.opponents is not None:
            self.opponents.restart()

    def close(self) -> None:
        """Closes the games."""
        self.env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_rewards(spec: EnvSpec, config: TrainConfig) -> RewardManager:
    """Makes the rewards of all stages of a run; see `TrainConfig.rewards` for what is taken when none are named.

    Raises:
        UnknownNameError: A term or a set of weights does not exist.
    """
    sets = reward_sets(spec.id)
    stages = config.stages()
    configs = tuple(stage.rewards or config.rewards for stage in stages) or (config.rewards,)
    usual = (
        RewardConfig(base="dense")
        if "dense" in sets
        else RewardConfig(
            weights={name: WeightPath(points=((0, weight),)) for name, weight in default_weights(spec).items()}
        )
    )
    shared = ("team_spirit", "zero_sum", "glide_env_steps")  # stand beside whatever is rewarded
    named = (
        each
        if each.base is not None or each.weights
        else usual.model_copy(update={name: getattr(each, name) for name in shared})
        for each in configs
    )
    return RewardManager(spec.name, spec.events, tuple(named), sets, spec.teams)
