"""Adapters: our worlds for other libraries, and other libraries' environments for our learner.

Each adapter's library is imported by its own module; `import ludus` makes the worlds known to Gymnasium.
"""
