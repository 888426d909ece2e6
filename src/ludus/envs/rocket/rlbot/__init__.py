"""The thin layer between Rocket and RLBot v5: packets to states, decisions to controls; needs no package of RLBot's."""
