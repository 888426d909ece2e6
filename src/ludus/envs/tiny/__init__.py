"""Tiny worlds with known best play: what a learner must be able to solve, in plain torch."""
