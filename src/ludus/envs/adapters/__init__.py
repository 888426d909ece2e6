"""Adapters: our worlds for other libraries, and other libraries' environments for our learner.

Each adapter's library is imported by its own module; `registration` registers the worlds with Gymnasium.
"""
