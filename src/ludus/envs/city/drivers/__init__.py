"""Drivers: how a game is started, seen, touched, reset and ended."""
