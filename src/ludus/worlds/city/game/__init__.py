"""The embedded city builder: its rules, and the simulation of many cities at once."""
