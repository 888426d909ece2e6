"""Policies: networks, memory and an action distribution behind one interface."""
