"""PPO for plain MLP policies on the CPU as two compiled functions: the rollout's forward pass and a whole epoch.

With networks this small, calling an operation costs more than doing it. Warp brings a compiler with it, so nothing
else has to be installed; the functions are compiled once on a machine and take a few seconds for it.
"""
