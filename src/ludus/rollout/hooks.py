"""What serves single options of a rollout: hooks that the collector calls around every step."""

from dataclasses import replace

import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, EnvSpec, StepResult
from ludus.policies.auxiliary import OpponentClassifier
from ludus.policies.policy import Policy
from ludus.rollout.buffer import Frame
from ludus.rollout.learner_batch import LearnerBatch, NamedOpponents, Opponents


class StepHook:
    """Does something around every step; a subclass overrides what it needs.

    Attributes:
        can_be_recorded: Whether its work can be part of a CUDA graph.
    """

    can_be_recorded = True

    def before_actions(self, frame: Frame) -> None:
        """See the games before anybody acts."""

    def before_step(self, frame: Frame, actions: Tensor) -> None:
        """See the actions `(games, seats, *action_shape)` that the games are about to get."""

    def after_step(self, frame: Frame) -> None:
        """See who played, before the opponents of new episodes are drawn."""


class Demonstrations(StepHook):
    """Asks a bot in every step what it would do in the seats of the learner."""

    can_be_recorded = False

    def __init__(self, env: BatchedEnv, rows: LearnerBatch, name: str, like: Tensor) -> None:
        """Make the bot `name`; `like` has the form of all actions."""
        self._bot, self._rows = env.bots((name,)), rows
        self._actions = torch.zeros_like(like)
        self._seats = torch.zeros(like.shape[:2], dtype=torch.int32, device=env.device)  # all of them

    def before_actions(self, frame: Frame) -> None:
        """Store the bot's actions."""
        self._bot.act(self._seats, self._actions)
        frame.labels["demonstrations"].copy_(self._rows.take(self._actions))


class OpponentActions(StepHook):
    """Stores what the opponent of every row does in the same step."""

    def __init__(self, rows: LearnerBatch) -> None:
        self._rows = rows

    def before_step(self, frame: Frame, actions: Tensor) -> None:
        """Store the opponents' actions."""
        frame.labels["opponent_actions"].copy_(self._rows.take_opponents(actions))


class OpponentBots(StepHook):
    """Stores which bot every row plays against."""

    def __init__(self, rows: LearnerBatch, opponents: NamedOpponents) -> None:
        self._rows, self._opponents = rows, opponents

    def after_step(self, frame: Frame) -> None:
        """Store the bots of this step."""
        frame.labels["bots"].copy_(self._rows.take_games(self._opponents.bots_met()))


def make_hooks(
    env: BatchedEnv,
    policy: Policy,
    rows: LearnerBatch,
    opponents: Opponents | None,
    labels: dict[str, Tensor],
    demonstrations: Demonstrations | None,
) -> list[StepHook]:
    """Return what fills the buffer's labels; raise ConfigError if there is nobody to classify."""
    hooks: list[StepHook] = [] if demonstrations is None else [demonstrations]
    if "opponent_actions" in labels and rows.has_opponents:
        hooks.append(OpponentActions(rows))
    classifier = policy.auxiliary_losses.get("recognition")
    if isinstance(classifier, OpponentClassifier):
        hooks.append(OpponentBots(rows, classified_opponents(classifier, env.spec, opponents)))
    return hooks


def classified_opponents(classifier: OpponentClassifier, spec: EnvSpec, opponents: Opponents | None) -> NamedOpponents:
    """Return the opponents whose bots a policy learns to classify; raise ConfigError if it cannot."""
    asked = f"policy.strategy.classify is {classifier.weight:g}"
    if not isinstance(opponents, NamedOpponents):
        raise ConfigError(
            f"{asked}, but there are no opponents to classify; set it to 0, or name bots of {spec.id} under "
            f"opponents: {', '.join(spec.bots)}"
        )
    if classifier.classes != len(spec.bots):
        raise ConfigError(
            f"{asked}, and the policy knows {classifier.classes} bots, but {spec.id} has {len(spec.bots)} now: "
            f"{', '.join(spec.bots) or 'none'}; use settings of the world that leave its bots as they are"
        )
    return opponents


class EpisodeStagger:
    """Cuts off the first episodes at times spread over the step limit.

    Games whose episodes are equally long would stay in step, and every rollout would hold the same part of them.

    Attributes:
        cuts: `(games,)`, steps after which the running episode is cut off, 0 for not at all.
        left: Steps after which the last one is.
    """

    def __init__(self, env: BatchedEnv) -> None:
        """Spread the cuts; raise ConfigError if episodes have no step limit."""
        self._env, limit = env, env.spec.step_limit
        if limit is None:
            raise ConfigError(
                f"stagger_episodes is true, but episodes of {env.spec.id} have no step limit; set it to false"
            )
        self.cuts = torch.arange(env.num_envs, device=env.device) * limit // env.num_envs
        self.left = int(self.cuts.max())

    def load(self, cuts: Tensor) -> None:
        """Take the cuts of a state."""
        self.cuts.copy_(cuts)
        self.left = int(self.cuts.max())

    def cut_off(self, result: StepResult) -> StepResult:
        """Restart the games whose first episode is due to be cut off; return the step as if they had been truncated."""
        if self.left == 0:
            return result
        self.left -= 1
        due = (self.cuts == 1) & ~result.ended
        self.cuts.sub_(1).masked_fill_(result.ended, 0).clamp_(min=0)
        if due.device.type == "cpu" and not due.any():  # asking a CUDA device would wait for it
            return result
        final = {
            name: torch.where(due.view(-1, *(1 for _ in tensor.shape[1:])), result.observations[name], tensor)
            for name, tensor in result.final_observations.items()
        }
        return replace(
            result,
            observations=self._env.reset(due),
            truncated=result.truncated | due,
            final_observations=final,
            any_truncated=True,  # or perhaps none on a CUDA device: then values are computed for nothing
        )
