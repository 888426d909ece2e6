"""City as people are shown it: the screen with the agent's pointer, what was read of it, and what was decided."""
