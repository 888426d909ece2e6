"""The collector: plays all games with the policy and fills the rollout buffer."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.ppo.advantages import forward_scan, generalised_advantages
from ludus.algorithms.ppo.buffer import Frame, RolloutBuffer
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.recognition import recognised
from ludus.algorithms.ppo.rewarding import RewardFunction, RolloutReward, StepRewards, reward_event
from ludus.algorithms.ppo.seats import Opponents, Rows
from ludus.algorithms.ppo.stepping import Stepper, make_stepper
from ludus.core.errors import ConfigError, StateError
from ludus.core.stopwatch import Stopwatch
from ludus.envs.base import BatchedEnv, Observations, StepResult, action_dtypes
from ludus.policies.memory import Memory, part_of, with_prefix
from ludus.policies.policy import Policy

COLLECT_METRICS = ("episodes", "episode_return", "episode_length", "reward")


class Collector:
    """Holds the running games: observations, memory, and what the next step needs.

    Attributes:
        rows: Which seats of which games are learned from.
        buffer: The rollout that `collect` fills.
        stopwatch: Where its time goes.
    """

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        config: PpoConfig,
        *,
        reward: RewardFunction | RolloutReward = reward_event,
        learner: Tensor | None = None,
        opponents: Opponents | None = None,
        stepper: Stepper | None = None,
    ) -> None:
        """Starts all games.

        Args:
            env: The games.
            policy: Who plays the learner's seats, on the device of the games.
            config: Settings of PPO.
            reward: Gives `(games, seats)` float32 of a step, or the rewards of a whole rollout.
            learner: `(games, seats)` bool, seats that the learner plays; all if None.
            opponents: Who plays the others; needed unless the learner plays all and recognises nobody.
            stepper: Who steps the policy; as plain calls or CUDA graphs if None.

        Raises:
            ConfigError: The seats do not fit the games, or nobody plays who could be recognised.
        """
        self.env, self.policy, self.config = env, policy, config
        self.rows = Rows(env, learner)
        if opponents is None and not self.rows.plays_all:
            raise ConfigError("some seats are not the learner's: pass opponents, or learner=None to play all seats")
        self.buffer = RolloutBuffer(
            policy, config.steps, self.rows.count, config.chunk_for(has_memory=policy.has_memory)
        )
        self._reward = reward if isinstance(reward, RolloutReward) else StepRewards(reward)
        self._reward.begin(config.steps, self.rows)
        self._opponents = opponents
        self._recognised = recognised(policy, env.spec, opponents)
        self.stopwatch = Stopwatch(policy.device)
        self._stepper = stepper or make_stepper(policy, self.rows.count, cuda_graphs=config.cuda_graphs)
        shape = (env.num_games, env.spec.seats, *policy.head.action_shape)
        self._actions = torch.zeros(shape, dtype=action_dtypes(env.spec.action_space)[0], device=env.device)
        self._observations = env.reset()
        self._starts = torch.ones(self.rows.count, dtype=torch.bool, device=policy.device)
        self._memory: Memory = policy.initial(self.rows.count)
        # Sums over the running episodes: reward, steps, and the discounted reward that return normalisation needs.
        self._running = torch.zeros((3, self.rows.count), device=policy.device)

    def collect(self, generator: torch.Generator) -> None:
        """Fills the buffer with one rollout and computes its advantages."""
        buffer, head = self.buffer, self.policy.head
        self.stopwatch.start()
        buffer.bootstraps.zero_()
        first_starts = self._starts
        held = self.config.hold_noise_steps or buffer.steps
        noise = self.policy.draw_noise(1 if head.hold_noise else buffer.steps, buffer.rows, generator, explore=True)
        for t, frame in enumerate(buffer.frames):
            if head.hold_noise and t > 0 and t % held == 0:
                noise = self.policy.draw_noise(1, buffer.rows, generator)
            buffer.store_memory(t, self._memory)
            self._step(t, frame, noise[0 if head.hold_noise else t])
        buffer.starts[1:].copy_(buffer.ends[:-1])
        buffer.starts[0].copy_(first_starts)
        self._starts = buffer.ends[-1].clone()
        observations = {name: self.rows.take(tensor) for name, tensor in self._observations.items()}
        buffer.rewards.copy_(self._reward.rewards())
        buffer.last_values.copy_(self._stepper.value(observations, self._memory, self._starts))
        self._finish()
        self.stopwatch.lap("other")

    def _step(self, t: int, frame: Frame, noise: Tensor) -> None:
        for name, tensor in self._observations.items():
            frame.observations[name].copy_(self.rows.take(tensor))
        step = self._stepper.step(frame.observations, self._memory, self._starts, noise)
        self._memory = step.memory
        frame.actions.copy_(step.actions)
        frame.log_probs.copy_(step.log_probs)
        frame.values.copy_(step.values)
        self.stopwatch.lap("inference")
        if self._opponents is not None:
            self._opponents.act(self._observations, self._actions)
            self.stopwatch.lap("opponents")
        self.rows.put(self.policy.clip_actions(step.actions), self._actions)
        result = self.env.step(self._actions)
        self.stopwatch.lap("simulation")
        self._reward.record(t, result)
        frame.ends.copy_(self.rows.take_games(result.ended))
        self._bootstrap(frame, result)
        self._starts = frame.ends
        if frame.bots is not None and self._recognised is not None:  # those of this step: the next may be drawn below
            frame.bots.copy_(self.rows.take_games(self._recognised.bots_met()))
        if self._opponents is not None:
            self._opponents.after_step(result)
        self._observations = result.observations
        self.stopwatch.lap("other")

    def _bootstrap(self, frame: Frame, result: StepResult) -> None:
        """Stores the values of final observations where episodes were cut off.

        The memory is the one that the policy had then. On the host only steps with truncations cost anything; on
        a CUDA device asking whether there are any would wait for it, so every step computes the values.
        """
        if not self.env.spec.truncates or (result.truncated.device.type == "cpu" and not result.truncated.any()):
            return
        truncated = self.rows.take_games(result.truncated)
        final = {name: self.rows.take(tensor) for name, tensor in result.final_observations.items()}
        values = self._stepper.value(final, self._memory, torch.zeros_like(truncated))
        frame.bootstraps.copy_(torch.where(truncated, values, 0.0))

    def _finish(self) -> None:
        """Sums up episodes, normalises rewards and computes advantages and returns."""
        buffer, gamma = self.buffer, self.config.gamma
        keep = (~buffer.starts).float()  # y[t] = x[t] + keep[t] * y[t - 1] sums over running episodes
        totals = forward_scan(buffer.rewards, keep, self._running[0])
        lengths = forward_scan(torch.ones_like(keep), keep, self._running[1])
        ends = buffer.ends.float()
        sums = torch.stack((ends.sum(), (ends * totals).sum(), (ends * lengths).sum()))
        self._metrics = torch.cat((sums[:1], sums[1:] / sums[0], buffer.rewards.mean().reshape(1)))
        rewards, discounted = buffer.rewards, totals
        normaliser = self.policy.returns
        if normaliser is not None:
            discounted = forward_scan(buffer.rewards, gamma * keep, self._running[2])
            normaliser.update(discounted.unsqueeze(-1))
            rewards = (rewards * normaliser.scale).clamp(-normaliser.clip, normaliser.clip)
        self._running.copy_(torch.stack((totals[-1], lengths[-1], discounted[-1])))
        rewards = rewards + gamma * buffer.bootstraps
        advantages, returns = generalised_advantages(
            rewards, buffer.values, buffer.last_values, buffer.ends, gamma, self.config.gae_lambda
        )
        buffer.advantages.copy_(advantages)
        buffer.returns.copy_(returns)

    def device_metrics(self) -> Tensor:
        """Returns `COLLECT_METRICS` of the last rollout on the device; means are NaN where no episode ended."""
        return self._metrics

    def state(self) -> dict[str, Tensor]:
        """Returns copies of what the next rollout needs beside the games' own snapshot."""
        fixed = {"starts": self._starts, "running": self._running, "rows": self.rows.index}
        return {name: tensor.clone() for name, tensor in (fixed | with_prefix("memory", self._memory)).items()}

    def load_state(self, state: Mapping[str, Tensor], observations: Observations) -> None:
        """Takes what `state` gave, and the observations that restoring the games' snapshot gave.

        Raises:
            StateError: A name is missing or superfluous, or a shape differs.
        """
        own = self.state()
        wrong = sorted(
            set(state) ^ set(own) or {name for name in own if state[name].shape != own[name].shape},
        )
        if wrong:
            raise StateError(
                f"the collector's state does not fit: {', '.join(wrong[:5])}; "
                "use the same policy config, games and seats"
            )
        device = self.policy.device
        self._starts = state["starts"].to(device, copy=True)
        self._running.copy_(state["running"])
        self.rows.index.copy_(state["rows"])
        self._memory = {name: tensor.to(device, copy=True) for name, tensor in part_of(state, "memory").items()}
        self._observations = observations
