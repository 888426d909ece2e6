"""Rocket's simulator as Warp functions and kernels; one thread is one game."""
