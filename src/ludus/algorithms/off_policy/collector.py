"""The collector of off-policy learning: plays all games for a few steps, and explores as the algorithm asks."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.off_policy.config import OffPolicyConfig
from ludus.algorithms.off_policy.rollout import OffPolicyRollout
from ludus.algorithms.ppo.advantages import forward_scan
from ludus.algorithms.ppo.rewarding import RolloutReward
from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import StateError, UnsupportedError
from ludus.core.stopwatch import Stopwatch
from ludus.envs.base import BatchedEnv, Observations, StepResult
from ludus.networks.squashed import SquashedHead
from ludus.policies.memory import part_of, with_prefix
from ludus.policies.policy import Policy

COLLECT_METRICS = ("episodes", "episode_return", "episode_length", "reward", "entropy")


class OffPolicyCollector:
    """Holds the running games.

    Attributes:
        rows: Which seats of which games are learned from: all.
        rollout: What `collect` fills.
        stopwatch: Where its time goes.
    """

    def __init__(self, env: BatchedEnv, policy: Policy, config: OffPolicyConfig, reward: RolloutReward) -> None:
        """Starts all games.

        Args:
            env: The games.
            policy: Who plays, with a squashed head, on the device of the games.
            config: Settings of off-policy learning.
            reward: Gives the rewards of a rollout.

        Raises:
            UnsupportedError: The policy's actions are not squashed.
        """
        if not isinstance(policy.head, SquashedHead):
            raise UnsupportedError("off-policy learning needs squashed actions; set policy.squash by `playing_policy`")
        self.env, self.policy, self._head = env, policy, policy.head
        self._noise, self._gamma = config.exploration_noise, config.gamma
        self.rows = Rows(env)
        self.stopwatch = Stopwatch(policy.device)
        self._observations = env.reset()
        self.rollout = OffPolicyRollout(policy, config.train_freq, self._seen(self._observations))
        self._reward = reward
        reward.begin(config.train_freq, self.rows)
        shape = (env.num_games, env.spec.seats, *policy.head.action_shape)
        self._actions = torch.zeros(shape, device=env.device)
        self._starts = torch.ones(self.rows.count, dtype=torch.bool, device=policy.device)
        # Sums over the running episodes: reward, steps, and the discounted reward that return normalisation needs.
        self._running = torch.zeros((3, self.rows.count), device=policy.device)

    def collect(self, generator: torch.Generator, *, at_random: bool) -> None:
        """Fills the rollout.

        Args:
            generator: Draws actions and exploration.
            at_random: Whether actions are drawn evenly from their bounds instead of by the policy.
        """
        rollout = self.rollout
        self.stopwatch.start()
        first_starts = self._starts
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
        self._starts = rollout.ends[-1].clone()
        self._finish(torch.cat((first_starts.unsqueeze(0), rollout.ends[:-1])), at_random=at_random)
        self.stopwatch.lap("other")

    def _act(self, t: int, noise: Tensor, explore: Tensor, *, at_random: bool) -> None:
        """Chooses the actions of a step.

        Args:
            t: The step.
            noise: `(rows, *head.noise_shape)`, of the policy's own spread.
            explore: `(rows, actions)`, even numbers from 0 to 1 where actions are random, else standard normal ones.
            at_random: Whether they are.
        """
        rollout, head = self.rollout, self._head
        if at_random:
            unit = 2.0 * explore - 1.0
        else:
            seen = {name: tensor[t] for name, tensor in rollout.observations.items()}
            step = self.policy.step(seen, {}, self._starts, noise)
            rollout.log_probs[t].copy_(step.log_probs)
            unit = head.to_unit(step.actions)
            if not head.has_spread:
                unit = unit + self._noise * explore
            unit = unit.clamp(-1.0, 1.0)
        rollout.actions[t].copy_(unit)
        self.rows.put(self.policy.clip_actions(head.to_bounds(unit)), self._actions)

    def _keep(self, t: int, result: StepResult) -> None:
        """Keeps what came of a step; what followed the last step of an episode is its final observation."""
        rollout = self.rollout
        self._reward.record(t, result)
        ended = self.rows.take_games(result.ended)
        rollout.ends[t].copy_(ended)
        rollout.terminated[t].copy_(self.rows.take_games(result.terminated))
        for name, tensor in self._seen(result.observations).items():
            rollout.following[name][t].copy_(tensor)
        if not (ended.device.type == "cpu" and not bool(ended.any())):
            for name, tensor in self._seen(result.final_observations).items():
                following = rollout.following[name][t]
                mask = ended.view(-1, *(1,) * (tensor.dim() - 1))
                following.copy_(torch.where(mask, tensor.to(following.dtype), following))
        self._starts, self._observations = rollout.ends[t], result.observations

    def _seen(self, observations: Observations) -> Observations:
        return {name: self.rows.take(tensor) for name, tensor in observations.items()}

    def _finish(self, starts: Tensor, *, at_random: bool) -> None:
        """Sums up episodes."""
        rollout, ends = self.rollout, self.rollout.ends.float()
        keep = (~starts).float()  # y[t] = x[t] + keep[t] * y[t - 1] sums over running episodes
        totals = forward_scan(rollout.rewards, keep, self._running[0])
        lengths = forward_scan(torch.ones_like(keep), keep, self._running[1])
        self._discounted = forward_scan(rollout.rewards, self._gamma * keep, self._running[2])
        self._running.copy_(torch.stack((totals[-1], lengths[-1], self._discounted[-1])))
        sums = torch.stack((ends.sum(), (ends * totals).sum(), (ends * lengths).sum()))
        has_entropy = self._head.has_spread and not at_random
        entropy = -rollout.log_probs.mean() if has_entropy else torch.full_like(sums[0], torch.nan)
        self._metrics = torch.cat((sums[:1], sums[1:] / sums[0], torch.stack((rollout.rewards.mean(), entropy))))

    def observe(self) -> None:
        """Lets the last rollout join the running statistics, by which observations and rewards are normalised."""
        self.policy.observe(self.rollout.observations)
        if self.policy.returns is not None:
            self.policy.returns.update(self._discounted.unsqueeze(-1))

    def device_metrics(self) -> Tensor:
        """Returns `COLLECT_METRICS` of the last rollout on the device; NaN where there is nothing to average."""
        return self._metrics

    def state(self) -> dict[str, Tensor]:
        """Returns copies of the last rollout, which has still to join the replay buffer, and of running sums."""
        fixed = {"starts": self._starts.clone(), "running": self._running.clone()}
        return fixed | with_prefix("rollout", self.rollout.state())

    def load_state(self, state: Mapping[str, Tensor], observations: Observations) -> None:
        """Takes what `state` gave, and the observations that restoring the games' snapshot gave.

        Raises:
            StateError: It is of other games.
        """
        rows = self.rows.count
        if "starts" not in state or "running" not in state or tuple(state["running"].shape) != (3, rows):
            raise StateError(f"the collector's state is not that of {rows} rows; use the same world and games")
        self.rollout.load_state(part_of(state, "rollout"))
        self._starts = state["starts"].to(self.policy.device, copy=True)
        self._running.copy_(state["running"])
        self._observations = observations
