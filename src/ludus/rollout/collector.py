"""The collector: plays all games with the policy and fills the rollout buffer."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.state import check_tensors, clone_tensors
from ludus.core.stopwatch import Marks, Stopwatch
from ludus.envs.base import BatchedEnv, Observations, StepResult, action_dtypes
from ludus.policies.policy import Policy, RecurrentState, memory_ranges, part_of, with_prefix
from ludus.rollout.advantages import compute_gae
from ludus.rollout.buffer import Frame, RolloutBuffer
from ludus.rollout.cuda_graphs import record
from ludus.rollout.episodes import EpisodeStatistics
from ludus.rollout.hooks import Demonstrations, EpisodeStagger, make_hooks
from ludus.rollout.inference import InferenceBackend, make_inference
from ludus.rollout.learner_batch import LearnerBatch, Opponents, RecordableOpponents
from ludus.rollout.rewards import RewardFunction, RolloutReward, StepRewards, reward_event


class RolloutConfig(Protocol):
    """The settings of an on-policy algorithm that decide how a rollout is collected; `PpoConfig` has them."""

    n_steps: int  # of every row in a rollout
    gamma: float  # discount per step
    gae_lambda: float  # decay of the advantage estimate per step
    sde_sample_freq: int | None  # steps over which state-dependent exploration keeps its noise; None for a rollout
    cuda_graphs: bool  # whether the inference step becomes a CUDA graph on a CUDA device

    def sequence_length_for(self, *, has_memory: bool) -> int:
        """Return the steps of a training sequence."""


class Collector:
    """Holds the running games: observations, memory, and what the next step needs; `collect` fills `buffer`.

    Attributes:
        explained_variance: `()`, share of the returns' variance in the last rollout that the critic had foreseen.
    """

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        config: RolloutConfig,
        *,
        reward: RewardFunction | RolloutReward = reward_event,
        learner: Tensor | None = None,
        opponents: Opponents | None = None,
        inference: InferenceBackend | None = None,
        stagger_episodes: bool = False,
        demonstrator: str | None = None,
    ) -> None:
        """Start all games.

        Args:
            env: The games.
            policy: Who plays the learner's seats, on the device of the games.
            config: Settings of the algorithm.
            reward: Gives `(games, seats)` float32 of a step, or the rewards of a whole rollout.
            learner: `(games, seats)` bool, seats that the learner plays; all if None.
            opponents: Who plays the others; needed unless the learner plays all and classifies no opponents.
            inference: Who steps the policy; as plain calls or CUDA graphs if None.
            stagger_episodes: Whether to cut off the first episodes at times spread over the step limit.
            demonstrator: Name of the bot that is asked in every step what it would do; None for none.

        Raises:
            ConfigError: The seats do not fit the games, there is no opponent to classify, or episodes cannot be
                staggered.
        """
        self.env, self.policy, self.config = env, policy, config
        self.rows = LearnerBatch(env, learner)
        if opponents is None and not self.rows.plays_all:
            raise ConfigError("some seats are not the learner's: pass opponents, or learner=None to play all seats")
        length = config.sequence_length_for(has_memory=policy.has_memory)
        self.buffer = RolloutBuffer(
            policy,
            config.n_steps,
            self.rows.count,
            length,
            has_demonstrations=demonstrator is not None,
        )
        self._reward = reward if isinstance(reward, RolloutReward) else StepRewards(reward)
        self._reward.begin(config.n_steps, self.rows)
        self._opponents = opponents
        self.stopwatch = Stopwatch(policy.device)
        self._inference = inference or make_inference(policy, self.rows.count, cuda_graphs=config.cuda_graphs)
        shape = (env.num_envs, env.spec.seats, *policy.head.action_shape)
        self._actions = torch.zeros(shape, dtype=action_dtypes(env.spec.action_space)[0], device=env.device)
        shown = None if demonstrator is None else Demonstrations(env, self.rows, demonstrator, self._actions)
        self._hooks = make_hooks(env, policy, self.rows, opponents, self.buffer.labels, shown)
        self._observations = env.reset()
        self._episode_starts = torch.ones(self.rows.count, dtype=torch.bool, device=policy.device)
        self._memory_starts = self._episode_starts
        self._memory: RecurrentState = policy.initial(self.rows.count)
        self._episodes = EpisodeStatistics(self.rows.count, policy.device)
        # On a CUDA device a whole rollout becomes a graph, once one like it was played.
        self._graph: torch.cuda.CUDAGraph | None = None
        self._marks: Marks = []
        self._played_with: _RecordingKey | None = None
        self._noise = torch.empty(0, device=policy.device)
        # So does what follows the last step.
        self._end_graph: torch.cuda.CUDAGraph | None = None
        self._ended_with: object | None = None
        self.explained_variance = torch.zeros((), device=policy.device)
        self._stagger = EpisodeStagger(env) if stagger_episodes else None

    def collect(self, generator: torch.Generator) -> None:
        """Fill the buffer with one rollout and compute its advantages."""
        buffer, head = self.buffer, self.policy.head
        self.stopwatch.start()
        noise = self.policy.draw_noise(1 if head.hold_noise else buffer.steps, buffer.rows, generator, explore=True)
        key = self._recording_key()
        if self._was_played_with(key):
            self._replay(noise)
        else:
            self._graph, self._played_with = None, key
            self._play(noise, generator)
        self._end()
        self.stopwatch.lap("other")

    def _was_played_with(self, key: "_RecordingKey | None") -> bool:
        return key is not None and self._played_with is not None and key.equals(self._played_with)

    def _play(self, noise: Tensor, generator: torch.Generator | None) -> None:
        """Play all steps; noise that is held is drawn again from the generator."""
        buffer, hold = self.buffer, self.policy.head.hold_noise
        held = self.config.sde_sample_freq or buffer.steps
        buffer.bootstraps.zero_()
        buffer.episode_starts[0].copy_(self._episode_starts)
        for t, frame in enumerate(buffer.frames):
            if hold and t > 0 and t % held == 0 and generator is not None:
                noise = self.policy.draw_noise(1, buffer.rows, generator)
            buffer.store_memory(t, self._memory)
            self._step(t, frame, noise[0 if hold else t])
        buffer.episode_starts[1:].copy_(buffer.dones[:-1])
        # In place: a recording of the rollout reads these tensors.
        self._episode_starts.copy_(buffer.dones[-1])
        self._memory_starts = self._episode_starts

    def _replay(self, noise: Tensor) -> None:
        """Play all steps as one CUDA graph, which is recorded the first time."""
        if self._graph is None:
            self._noise = noise.clone()
            generators = self._opponents.generators() if isinstance(self._opponents, RecordableOpponents) else ()
            self._graph = record(lambda: self._play(self._noise, None), generators)
            self._marks = self.stopwatch.take_recorded()
            self._end_graph = None  # it reads the observations after the last step, which lie elsewhere now
        else:
            self._noise.copy_(noise)
        self._graph.replay()
        self.stopwatch.replayed(self._marks)

    def _recording_key(self) -> "_RecordingKey | None":
        """Return what a recording of a rollout would depend on; None where there can be none."""
        allowed = self.config.cuda_graphs and self.policy.device.type == "cuda" and self.policy.allows_cuda_graphs
        if not allowed or self.policy.head.hold_noise or not self._reward.can_be_recorded:
            return None
        if (self._stagger is not None and self._stagger.left > 0) or not all(h.can_be_recorded for h in self._hooks):
            return None
        games = self.env.recording_key()
        opponents: object | None = () if self._opponents is None else None
        if isinstance(self._opponents, RecordableOpponents):
            opponents = self._opponents.recording_key()
        return None if games is None or opponents is None else _RecordingKey(games, opponents)

    def _step(self, t: int, frame: Frame, noise: Tensor) -> None:
        for name, tensor in self._observations.items():
            frame.observations[name].copy_(self.rows.take(tensor))
        for hook in self._hooks:
            hook.before_actions(frame)
        step = self._inference.step(frame.inputs, self._memory, self._memory_starts, noise)
        self._memory = step.memory
        frame.actions.copy_(step.actions)
        frame.log_probs.copy_(step.log_probs)
        frame.values.copy_(step.values)
        self.stopwatch.lap("inference")
        if self._opponents is not None:
            self._opponents.act(self._observations, self._actions)
            self.stopwatch.lap("opponents")
        self.rows.put(self.policy.clip_actions(step.actions), self._actions)
        for hook in self._hooks:
            hook.before_step(frame, self._actions)
        result = self.env.step(self._actions)
        result = result if self._stagger is None else self._stagger.cut_off(result)
        self.stopwatch.lap("simulation")
        self._reward.record(t, result)
        frame.dones.copy_(self.rows.take_games(result.ended))
        self._bootstrap(frame, result)
        self._memory_starts = frame.dones
        for hook in self._hooks:
            hook.after_step(frame)
        if self._opponents is not None:
            self._opponents.after_step(result)
        self._observations = result.observations
        self.stopwatch.lap("other")

    def _bootstrap(self, frame: Frame, result: StepResult) -> None:
        """Store the values of final observations where episodes were cut off.

        The memory is the one that the policy had then. Where the host knows of truncations, only steps with some cost
        anything; asking a CUDA device would wait for it, so there every step computes the values.
        """
        known = result.any_truncated
        if known is None and result.truncated.device.type == "cpu":
            known = bool(result.truncated.any())
        if not known and (known is False or not self.env.spec.truncates):
            return
        truncated = self.rows.take_games(result.truncated)
        final = {name: self.rows.take(tensor) for name, tensor in result.final_observations.items()}
        values = self._inference.value(final, self._memory, torch.zeros_like(truncated))
        frame.bootstraps.copy_(torch.where(truncated, values, 0.0))

    def _end(self) -> None:
        """Finish the rollout, by a CUDA graph where it was finished alike before."""
        key = self._reward.recording_key if self._graph is not None and self.policy.returns is None else None
        if key is None or key != self._ended_with:
            self._end_graph, self._ended_with = None, key
            self._finish()
            return
        if self._end_graph is None:
            self._end_graph = record(self._finish)
        self._end_graph.replay()

    def _finish(self) -> None:
        """Weigh all steps, add up episodes, normalise rewards and compute advantages and returns."""
        buffer, gamma, normaliser = self.buffer, self.config.gamma, self.policy.returns
        observations = {name: self.rows.take(tensor) for name, tensor in self._observations.items()}
        buffer.rewards.copy_(self._reward.rewards())
        buffer.last_values.copy_(self._inference.value(observations, self._memory, self._memory_starts))
        discounted = self._episodes.add(
            buffer.rewards, buffer.episode_starts, buffer.dones, None if normaliser is None else gamma
        )
        rewards = buffer.rewards
        if normaliser is not None:
            normaliser.update(discounted.unsqueeze(-1))
            rewards = (rewards * normaliser.scale).clamp(-normaliser.clip, normaliser.clip)
        rewards = rewards + gamma * buffer.bootstraps
        advantages, returns = compute_gae(
            rewards, buffer.values, buffer.last_values, buffer.dones, gamma, self.config.gae_lambda
        )
        buffer.advantages.copy_(advantages)
        buffer.returns.copy_(returns)
        self.explained_variance = 1.0 - (returns - buffer.values).var() / returns.var()

    def device_metrics(self) -> Tensor:
        """Return `EpisodeStatistics.METRICS` of the last rollout on the device; NaN where no episode ended."""
        return self._episodes.metrics

    def state(self) -> dict[str, Tensor]:
        """Return copies of what the next rollout needs beside the games' own snapshot."""
        fixed = {"starts": self._episode_starts, "running": self._episodes.running, "rows": self.rows.index}
        fixed |= {} if self._stagger is None else {"cuts": self._stagger.cuts}
        return clone_tensors(fixed | with_prefix("memory", self._memory))

    def load_state(
        self, state: Mapping[str, Tensor], observations: Observations, *, games_restarted: bool = False
    ) -> None:
        """Restore the state returned by `state()` with the games' observations; raise StateError if it does not fit."""
        own = self.state()
        ranges = memory_ranges(own) | {"rows": (0, self.env.num_envs * self.env.spec.seats - 1)}
        if self._stagger is not None:
            ranges["cuts"] = (0, self.env.spec.step_limit or 0)
        check_tensors(state, own, "the collector", ranges=ranges, advice="use the same policy config, games and seats")
        device = self.policy.device
        self._episode_starts = self._memory_starts = state["starts"].to(device, copy=True)
        self._episodes.running.copy_(state["running"])
        self.rows.index.copy_(state["rows"])
        if self._stagger is not None:
            self._stagger.load(state["cuts"])
        self._memory = {name: tensor.to(device, copy=True) for name, tensor in part_of(state, "memory").items()}
        self._observations = observations
        self._graph = self._played_with = self._end_graph = self._ended_with = None
        if games_restarted:
            self._episode_starts.fill_(True)
            self._episodes.running.zero_()


class _RecordingKey(NamedTuple):
    """What a recording of a rollout depends on beside the values of tensors."""

    games: object
    opponents: object

    def equals(self, other: "_RecordingKey") -> bool:
        """Whether the games are the very same, and the opponents equal."""
        return self.games is other.games and self.opponents == other.opponents
