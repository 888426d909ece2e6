"""Adapters: our worlds for other libraries, and other libraries' environments for our learner.

Importing this package makes the worlds known to Gymnasium; each adapter's library is imported by its own module.
"""

from ludus.envs.adapters.registration import register_gymnasium

__all__ = ["register_gymnasium"]

register_gymnasium()
