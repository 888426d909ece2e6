"""A strategy encoder small enough for tests."""

from ludus.nn.strategy import StrategyConfig

TINY_STRATEGY = StrategyConfig(layers=1, heads=2, width=32, feedforward=64, window=9)
