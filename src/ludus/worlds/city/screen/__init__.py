"""Virtual screens: capture, input that never leaves the game, and cleanup."""
