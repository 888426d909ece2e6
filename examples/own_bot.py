"""Write bots in Python, train against them, and measure the result."""

# %% A function over all its games at once, fast enough for training; delay and noise are applied to what it returns.
import os

import ludus
from ludus.worlds.brawl import skills


@ludus.register_bot("brawl", "counter", delay=4, noise=0.05)
def counter(observation, state):
    dx, _ = skills.offset(observation)
    strike = skills.in_range(observation) & (skills.can_punish(observation) | (observation.uniform() < 0.3))
    attack = skills.hold(observation, light=True, right=dx > 0, left=dx < 0)
    return skills.choose(strike, attack, skills.travel_to(observation, skills.position(observation)[0] + dx)), state


# %% A class that plays one game: simpler, and slower.
@ludus.register_bot("brawl", "hopper")
class Hopper:
    def reset(self):
        self.steps = 0

    def act(self, observation):
        self.steps += 1
        return skills.hold(observation, jump=self.steps % 20 == 0, light=bool(observation.opponent.x < 0))


# %% Their names work wherever those of the world's own bots do.
settings = [f"total_env_steps={os.environ.get('LUDUS_EXAMPLE_STEPS', '2_000_000')}", "opponents={counter: 2, self: 1}"]
run = ludus.train("brawl", overrides=[*settings, "world.num_envs=64", "ppo.batch_size=1024", "evaluation.matches=2"])
print(ludus.evaluate(run.folder, ["counter", "hopper"], matches=4).rows)
