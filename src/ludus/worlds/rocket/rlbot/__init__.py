"""The adapter between Rocket and RLBot v5: packets to states, decisions to controls. Does not import `rlbot`."""
