"""Learning algorithms over policies and batched environments."""
