"""Bring your own game: a PettingZoo parallel environment, trained by self-play."""

# %% Two players on a track want the coin. Agents of one prefix are opponents; `teams` in the settings says otherwise.
import os

import gymnasium as gym
import numpy as np
from pettingzoo import ParallelEnv

import ludus


class CoinRace(ParallelEnv):
    possible_agents = ["player_0", "player_1"]

    def observation_space(self, agent):
        return gym.spaces.Box(-1.0, 1.0, (3,), np.float32)

    def action_space(self, agent):
        return gym.spaces.Discrete(3)  # left, stay, right

    def reset(self, seed=None, options=None):
        self.random, self.agents, self.left = np.random.default_rng(seed), [*self.possible_agents], 20
        self.places, self.coin = dict.fromkeys(self.agents, 4), int(self.random.integers(9))
        return self.look(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.places = {agent: min(max(self.places[agent] + actions[agent] - 1, 0), 8) for agent in self.agents}
        there, self.left = [agent for agent in self.agents if self.places[agent] == self.coin], self.left - 1
        rewards = {agent: (agent in there) - len(there) / 2 for agent in self.agents}
        self.coin = int(self.random.integers(9)) if there else self.coin
        seen, over = self.look(), dict.fromkeys(self.agents, self.left == 0)
        self.agents = self.agents if self.left else []
        return seen, rewards, over, dict.fromkeys(over, False), {agent: {} for agent in over}

    def look(self):
        sight = {agent: (self.coin - place, 4 - place, self.left - 10) for agent, place in self.places.items()}
        return {agent: np.array(seen, np.float32) / (8, 4, 10) for agent, seen in sight.items()}


# %% It becomes the world `coin-race-v1`, like any other: past selves, ratings, evaluation, tournaments, reports.
steps = int(os.environ.get("LUDUS_EXAMPLE_STEPS", "200_000"))
run = ludus.train(env=CoinRace, total_env_steps=steps, monitoring={"console": "plain"})
print(ludus.evaluate(run.folder, "random", matches=50).rows[0]["win_rate"])
