"""Drivers: how a game is started, captured, controlled, reset and closed."""
