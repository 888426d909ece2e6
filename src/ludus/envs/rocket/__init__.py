"""Rocket: car soccer in teams of up to three."""
