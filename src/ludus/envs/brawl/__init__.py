"""Brawl: a two-player platform fighter."""
