"""Matches, ratings and video: what is measured of players."""
