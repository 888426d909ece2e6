"""Play single matches between agents, bots and functions of your own, with statistics and a video."""

# %% Any two players: names of bots, paths of agents, agents, functions and classes.
import ludus
from ludus.worlds.brawl import skills


def boxer(observation, state):
    """Walk at the opponent and strike when it is near."""
    dx, _ = skills.offset(observation)
    attack = skills.hold(observation, light=True, right=dx > 0, left=dx < 0)
    walk = skills.travel_to(observation, skills.position(observation)[0] + dx)
    return skills.choose(skills.in_range(observation), attack, walk), state


result = ludus.play_match(boxer, "based", world="brawl", video="match.mp4", seed=4)
print(f"{result.winner or 'nobody'} wins after {result.seconds:.0f} s; stocks {result.statistics['stocks']}")

# %% The recording of a match plays back exactly, anywhere.
if result.replay is not None:
    result.replay.save("match.replay")

# %% The same function is an opponent for an evaluation, without a name.
wins = sum(ludus.play_match(boxer, "random", world="brawl", seed=seed).winner == "boxer" for seed in range(1, 4))
print(f"{wins} of 3 matches won against the random bot")
