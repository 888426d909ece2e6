"""The collector of off-policy learning: plays all games for a few steps, and explores as the algorithm asks."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.sac_td3.config import OffPolicyConfig, Td3Config
from ludus.core.errors import UnsupportedError
from ludus.core.state import check_tensors, load_tensors
from ludus.core.stopwatch import Stopwatch
from ludus.envs.base import BatchedEnv, Observations, StepResult
from ludus.nn.distributions import SquashedHead
from ludus.policies.policy import Policy, part_of, with_prefix
from ludus.rollout.episodes import EpisodeStatistics
from ludus.rollout.learner_batch import LearnerBatch
from ludus.rollout.rewards import RolloutReward


class OffPolicyRollout:
    """Steps first, then rows.

    Attributes:
        observations: `(steps, rows, ...)` an entry, as the world gave them.
        following: `(steps, rows, ...)` an entry, what came after each step; where the episode ended, its final one.
        actions: `(steps, rows, actions)`, between -1 and 1.
        log_probs: `(steps, rows)`, of the actions in their bounds.
        rewards: `(steps, rows)`, as the world gave them.
        terminated: `(steps, rows)` bool, steps in which the episode was over by its own rules.
        dones: `(steps, rows)` bool, steps in which it ended for any reason.
    """

    def __init__(self, policy: Policy, steps: int, first: Mapping[str, Tensor]) -> None:
        """Allocate memory for `steps` steps of rows whose observations are like `first`, `(rows, ...)` per entry."""
        device, rows = policy.device, len(next(iter(first.values())))
        self.steps, self.rows = steps, rows
        # Double precision observations are kept as float32.
        dtypes = {name: torch.float32 if tensor.is_floating_point() else tensor.dtype for name, tensor in first.items()}
        self.observations, self.following = (
            {n: torch.zeros((steps, *tensor.shape), dtype=dtypes[n], device=device) for n, tensor in first.items()}
            for _ in range(2)
        )
        self.actions = torch.zeros((steps, rows, *policy.head.action_shape), device=device)
        self.log_probs, self.rewards = torch.zeros((2, steps, rows), device=device)
        self.terminated, self.dones = torch.zeros((2, steps, rows), dtype=torch.bool, device=device)

    def transitions(self) -> dict[str, Tensor]:
        """Return what the replay buffer keeps, `(steps * rows, ...)` each."""
        kept = with_prefix("observations", self.observations) | with_prefix("following", self.following)
        kept |= {"actions": self.actions, "rewards": self.rewards, "terminated": self.terminated}
        return {name: tensor.flatten(0, 1) for name, tensor in kept.items()}

    def state(self) -> dict[str, Tensor]:
        """Return copies of what the replay buffer keeps."""
        return {name: tensor.clone() for name, tensor in self.transitions().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`; raise StateError if it is of other games or another `train_freq`."""
        # The transitions are views of the rollout's own tensors.
        load_tensors(state, self.transitions(), "the last rollout", advice="use the same world, games and train_freq")


COLLECT_METRICS = (*EpisodeStatistics.METRICS, "entropy")


class OffPolicyCollector:
    """Holds the running games, all of whose seats are `rows`; `collect` fills `rollout`."""

    def __init__(self, env: BatchedEnv, policy: Policy, config: OffPolicyConfig, reward: RolloutReward) -> None:
        """Start all games; raise UnsupportedError if the policy's actions are not squashed."""
        if not isinstance(policy.head, SquashedHead):
            raise UnsupportedError("off-policy learning needs squashed actions; set policy.squash by `playing_policy`")
        self.env, self.policy, self._head = env, policy, policy.head
        self._noise = config.action_noise if isinstance(config, Td3Config) else 0.0
        self._gamma = config.gamma
        self.rows = LearnerBatch(env)
        self.stopwatch = Stopwatch(policy.device)
        self._observations = env.reset()
        self.rollout = OffPolicyRollout(policy, config.train_freq, self._seen(self._observations))
        self._reward = reward
        reward.begin(config.train_freq, self.rows)
        shape = (env.num_envs, env.spec.seats, *policy.head.action_shape)
        self._actions = torch.zeros(shape, device=env.device)
        self._episode_starts = torch.ones(self.rows.count, dtype=torch.bool, device=policy.device)
        self._episodes = EpisodeStatistics(self.rows.count, policy.device)

    def collect(self, generator: torch.Generator, *, at_random: bool) -> None:
        """Fill the rollout; `at_random` draws actions evenly from their bounds instead of by the policy."""
        rollout = self.rollout
        self.stopwatch.start()
        first_starts = self._episode_starts
        noise = self.policy.draw_noise(rollout.steps, rollout.rows, generator)
        other = torch.rand if at_random else torch.randn
        explore = other(rollout.actions.shape, generator=generator, device=self.policy.device)
        for t in range(rollout.steps):
            for name, tensor in self._seen(self._observations).items():
                rollout.observations[name][t].copy_(tensor)
            self._act(t, noise[t], explore[t], at_random=at_random)
            self.stopwatch.lap("inference")
            result = self.env.step(self._actions)
            self.stopwatch.lap("simulation")
            self._keep(t, result)
            self.stopwatch.lap("other")
        rollout.rewards.copy_(self._reward.rewards())
        self._episode_starts = rollout.dones[-1].clone()
        self._finish(torch.cat((first_starts.unsqueeze(0), rollout.dones[:-1])), at_random=at_random)
        self.stopwatch.lap("other")

    def _act(self, t: int, noise: Tensor, explore: Tensor, *, at_random: bool) -> None:
        """Choose the actions of step `t`, with noise `(rows, *head.noise_shape)` of the policy's own spread.

        `explore` `(rows, actions)` has even numbers from 0 to 1 where actions are random, else standard normal ones.
        """
        rollout, head = self.rollout, self._head
        if at_random:
            unit = 2.0 * explore - 1.0
        else:
            seen = {name: tensor[t] for name, tensor in rollout.observations.items()}
            step = self.policy.step(seen, {}, self._episode_starts, noise)
            rollout.log_probs[t].copy_(step.log_probs)
            unit = head.to_unit(step.actions)
            if not head.has_spread:
                unit = unit + self._noise * explore
            unit = unit.clamp(-1.0, 1.0)
        rollout.actions[t].copy_(unit)
        self.rows.put(self.policy.clip_actions(head.to_bounds(unit)), self._actions)

    def _keep(self, t: int, result: StepResult) -> None:
        """Keep what came of a step; what followed the last step of an episode is its final observation."""
        rollout = self.rollout
        self._reward.record(t, result)
        ended = self.rows.take_games(result.ended)
        rollout.dones[t].copy_(ended)
        rollout.terminated[t].copy_(self.rows.take_games(result.terminated))
        for name, tensor in self._seen(result.observations).items():
            rollout.following[name][t].copy_(tensor)
        if not (ended.device.type == "cpu" and not bool(ended.any())):
            for name, tensor in self._seen(result.final_observations).items():
                following = rollout.following[name][t]
                mask = ended.view(-1, *(1,) * (tensor.dim() - 1))
                following.copy_(torch.where(mask, tensor.to(following.dtype), following))
        self._episode_starts, self._observations = rollout.dones[t], result.observations

    def _seen(self, observations: Observations) -> Observations:
        return {name: self.rows.take(tensor) for name, tensor in observations.items()}

    def _finish(self, episode_starts: Tensor, *, at_random: bool) -> None:
        """Add up episodes, and set `COLLECT_METRICS` on the device: NaN where there is nothing to average."""
        rollout = self.rollout
        self._discounted = self._episodes.add(rollout.rewards, episode_starts, rollout.dones, self._gamma)
        has_entropy = self._head.has_spread and not at_random
        entropy = -rollout.log_probs.mean() if has_entropy else torch.full((), torch.nan, device=self.policy.device)
        self.metrics = torch.cat((self._episodes.metrics, entropy.reshape(1)))

    def observe(self) -> None:
        """Add the last rollout to the running statistics that normalise observations and rewards."""
        self.policy.observe(self.rollout.observations)
        if self.policy.returns is not None:
            self.policy.returns.update(self._discounted.unsqueeze(-1))

    def state(self) -> dict[str, Tensor]:
        """Return copies of the last rollout, which has still to join the replay buffer, and of running sums."""
        fixed = {"starts": self._episode_starts.clone(), "running": self._episodes.running.clone()}
        return fixed | with_prefix("rollout", self.rollout.state())

    def load_state(
        self, state: Mapping[str, Tensor], observations: Observations, *, games_restarted: bool = False
    ) -> None:
        """Restore the state returned by `state()` with the games' observations; raise StateError if it does not fit."""
        check_tensors(state, self.state(), "the collector", advice="use the same world, games and train_freq")
        self.rollout.load_state(part_of(state, "rollout"))
        self._episode_starts = state["starts"].to(self.policy.device, copy=True)
        self._episodes.running.copy_(state["running"])
        self._observations = observations
        if games_restarted:
            self._episode_starts.fill_(True)
            self._episodes.running.zero_()
