"""Curricula: phases with their own opponents and rewards, and the rules by which a run goes from one to the next."""
