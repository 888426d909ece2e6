"""Perception: what a picture of the screen says, and how sure that is."""
