"""Play with the agents that come with Ludus: one match, many matches, and decisions in a program of your own."""

# %% Shipped agents go by their names; `ludus agents` lists them.
import ludus

result = ludus.play_match("champion", "rookie", world="brawl", seed=1)
print(f"{result.winner or 'nobody'} wins after {result.seconds:.0f} s; stocks {result.statistics['stocks']}")

# %% How strong is it? Matches from both sides, against an agent and a bot.
for row in ludus.evaluate("champion", ["rookie", "aggressive"], matches=32).rows:
    print(f"against {row['opponent']}: {row['win_rate']:.0%} ({row['win_rate_low']:.0%} to {row['win_rate_high']:.0%})")

# %% `predict` is what users of Stable-Baselines3 know; the state is the agent's memory.
agent = ludus.load_agent("champion")
with ludus.make_env("brawl", num_envs=4, config=agent.settings) as env:
    seen = {name: tensor[:, 0] for name, tensor in env.reset().items()}  # by the first seat of every game
    actions, state = agent.predict(seen, deterministic=True)
print(f"keys pressed in four games: {actions.sum(dim=1).tolist()}")

# %% A person plays against it with: ludus play brawl --against champion
