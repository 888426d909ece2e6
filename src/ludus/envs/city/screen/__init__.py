"""Screens: virtual ones of our own, what is seen on them, input that never leaves the game, and clearing up."""
