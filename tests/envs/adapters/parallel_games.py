"""Parallel games in PettingZoo's API that show what they were given; workers import this file by its name."""

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

Dicts = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]


class Pick:
    """Two players pick a number in each round: the higher one gets the difference; a player sees its last pick."""

    metadata: ClassVar[dict[str, Any]] = {"render_fps": 5, "render_modes": ["rgb_array"]}

    def __init__(self, rounds: int = 3, cuts: bool = False, render_mode: str | None = None, fault: str = "") -> None:
        self.possible_agents = ["player_0", "player_1"]
        self.rounds, self.cuts, self.render_mode, self.fault = rounds, cuts, render_mode, fault
        self.agents: list[str] = []
        self.closed = False

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(-100.0, 1000.0, (3,), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(4)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        self.agents, self.step_count, self.seed = [*self.possible_agents], 0, (seed or 0) % 1000
        self.last = dict.fromkeys(self.agents, -1)
        return self.seen(), {agent: {} for agent in self.agents}

    def seen(self) -> dict[str, Any]:
        return {agent: np.array([self.step_count, self.seed, self.last[agent]], np.float32) for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Dicts:
        assert set(actions) == set(self.agents)
        if self.fault == "raises":
            raise RuntimeError("broken")
        self.step_count += 1
        self.last = {agent: int(actions[agent]) for agent in self.agents}
        first, second = self.agents
        lead = float(self.last[first] - self.last[second])
        rewards: dict[str, Any] = {first: lead, second: -lead}
        seen, is_over = self.seen(), self.step_count == self.rounds
        if self.fault == "nan":
            seen[second][0] = np.nan
        elif self.fault == "shape":
            seen[first] = np.zeros(2, np.float32)
        elif self.fault == "reward":
            rewards[second] = float("inf")
        elif self.fault == "missing":
            del seen[second]
        over = dict.fromkeys(self.agents, is_over)
        never = dict.fromkeys(self.agents, False)
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        if is_over:
            self.agents = []
        return seen, rewards, never if self.cuts else over, over if self.cuts else never, infos

    def render(self) -> Any:
        return np.full((4, 6, 3), self.step_count, np.uint8)

    def close(self) -> None:
        self.closed = True


class Hunt:
    """Two wolves and a sheep, with spaces of their own; the sheep leaves early, the wolves are cut off.

    What an agent sees: the step, and its last action as the game got it.
    """

    metadata: ClassVar[dict[str, Any]] = {}

    def __init__(self, leaves: int = 2, length: int = 4, masks: str = "") -> None:
        self.possible_agents = ["wolf_0", "wolf_1", "sheep_0"]
        self.agents: list[str] = []
        self.leaves, self.length, self.masks = leaves, length, masks

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        seen = spaces.Box(1.0, 99.0, (2,) if agent.startswith("wolf") else (3,), np.float64)
        mask = spaces.Box(0, 1, (2 if agent.startswith("wolf") else 4,), np.int8)
        return spaces.Dict({"observation": seen, "action_mask": mask}) if self.masks == "observation" else seen

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(2, start=5) if agent.startswith("wolf") else spaces.Discrete(4)

    def seen(self) -> tuple[dict[str, Any], dict[str, Any]]:
        rows: dict[str, Any] = {
            agent: np.array([self.count, self.last[agent], 9.0][: 2 if agent.startswith("wolf") else 3])
            for agent in self.agents
        }
        # Wolves may do anything; the sheep may not do what it did last, and nothing in step 1, as if in others' turn.
        masks = {agent: np.ones(2 if agent.startswith("wolf") else 4, np.int8) for agent in self.agents}
        if "sheep_0" in masks and self.last["sheep_0"] < 4:
            masks["sheep_0"][int(self.last["sheep_0"])] = 0
            masks["sheep_0"] *= self.count != 2
        if self.masks == "observation":
            rows = {agent: {"observation": rows[agent], "action_mask": masks[agent]} for agent in self.agents}
        infos = {agent: {"action_mask": masks[agent]} if self.masks == "info" else {} for agent in self.agents}
        return rows, infos

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        self.agents, self.count = [*self.possible_agents], 1
        self.last: dict[str, float] = dict.fromkeys(self.agents, 50.0)
        return self.seen()

    def step(self, actions: dict[str, Any]) -> Dicts:
        assert list(actions) == self.agents
        for agent, action in actions.items():
            assert self.action_space(agent).contains(action), f"{agent}: {action!r}"
        self.count += 1
        self.last |= {agent: float(action) for agent, action in actions.items()}
        seen, infos = self.seen()
        # Rewards of agents that have left do not count.
        rewards = {agent: 1.0 if agent.startswith("wolf") else 3.0 for agent in self.possible_agents}
        left = {agent: agent == "sheep_0" and self.count == 1 + self.leaves for agent in self.agents}
        cut = dict.fromkeys(self.agents, self.count == 1 + self.length)
        self.agents = [agent for agent in self.agents if not left[agent] and not cut[agent]]
        return seen, rewards, left, cut, infos


class Arms:
    """Two agents with Box actions of different sizes and bounds; they see what the game got."""

    def __init__(self) -> None:
        self.possible_agents, self.agents = ["arm_0", "leg_0"], []  # type: ignore[var-annotated]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(-9.0, 9.0, (2,), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(-1.0, 1.0, (2,)) if agent == "arm_0" else spaces.Box(0.0, 4.0, (1,))

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        self.agents = [*self.possible_agents]
        return {agent: np.zeros(2, np.float32) for agent in self.agents}, {}

    def step(self, actions: dict[str, Any]) -> Dicts:
        assert all(self.action_space(agent).contains(action) for agent, action in actions.items())
        seen = {agent: np.resize(np.append(action, [0.0]), 2).astype(np.float32) for agent, action in actions.items()}
        nobody: dict[str, Any] = dict.fromkeys(self.agents, 0)
        return seen, nobody, nobody, nobody, {}

    def close(self) -> None:
        pass


def parallel_env(**kwargs: Any) -> Pick:
    """Makes a game as PettingZoo's modules do."""
    return Pick(**kwargs)
