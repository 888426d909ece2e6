"""Pictures and vectors together, as a world on a screen shows them: PPO learns from both, cell by cell."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.envs.base import ActionKinds, BatchedEnv, EnvSpec, Observations, StepResult
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

COLUMNS, ROWS = 4, 2


class ScreenEnv(BatchedEnv):
    """A bright bar stands in one column of the picture, a reading tells the row: building there is worth 1."""

    def __init__(self, num_envs: int) -> None:
        self.spec = EnvSpec(
            name="screen",
            version=1,
            teams=(0,),
            observation_space=spaces.Dict(
                {
                    "picture": spaces.Box(0, 255, (3, 84, 84), np.uint8),
                    "readings": spaces.Box(0.0, 1.0, (ROWS,), np.float32),
                    "mask": spaces.Box(0, 1, (3 + COLUMNS + ROWS,), np.bool_),
                }
            ),
            action_space=spaces.MultiDiscrete([3, COLUMNS, ROWS]),
            rate_hz=1.0,
            step_limit=1,
            events=("reward",),
            actions=ActionKinds("mask", ((False, False), (True, True), (False, False)), exploratory=(2,)),
        )
        self.num_envs, self.device, self.seed, self.first_game = num_envs, torch.device("cpu"), 0, 0
        self._generator = torch.Generator().manual_seed(0)

    def _draw(self) -> Observations:
        games = self.num_envs
        self._column = torch.randint(0, COLUMNS, (games,), generator=self._generator)
        self._row = torch.randint(0, ROWS, (games,), generator=self._generator)
        bars = (torch.arange(84) // 21 == self._column.unsqueeze(1)).to(torch.uint8) * 255
        picture = bars.view(games, 1, 1, 1, 84).expand(-1, 1, 3, 84, -1).clone()
        readings = torch.nn.functional.one_hot(self._row, ROWS).float().unsqueeze(1)
        return {"picture": picture, "readings": readings, "mask": torch.ones(games, 1, 9, dtype=torch.bool)}

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        return self._draw()

    def _advance(self, actions: Tensor) -> StepResult:
        kind, column, row = actions[:, 0].unbind(1)
        reward = ((kind == 1) & (column == self._column) & (row == self._row)).float().unsqueeze(1)
        over, seen = torch.ones(self.num_envs, dtype=torch.bool), self._draw()
        return StepResult(seen, over, ~over, seen, {"reward": reward}, {})


def test_it_learns_from_the_picture_and_the_readings() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    env = ScreenEnv(32)
    policy = Policy(env.spec, PolicyConfig.model_validate({"exploration": {"frequency": 0.2}, "activation": "relu"}))
    assert policy.observations.output_size == 128 + ROWS
    ppo = {"n_steps": 8, "batch_size": 64, "n_epochs": 4, "learning_rate": 2e-3, "ent_coef": 0.01}
    learner = PpoLearner(env, policy, PpoConfig.model_validate(ppo))
    best = 0.0
    for _ in range(14):
        assert learner.iterate()["ratio_error"] < 1e-4
        best = max(best, _score(env, policy))
        if best > 0.9:
            break
    assert best > 0.9  # 1/24 by chance


def _score(env: ScreenEnv, policy: Policy) -> float:
    """What the policy earns a decision without exploration."""
    seen = {name: tensor[:, 0] for name, tensor in env.reset().items()}
    actions = policy.step(seen, {}, torch.ones(env.num_envs, dtype=torch.bool)).actions
    return float(env.step(actions.unsqueeze(1)).events["reward"].mean())
