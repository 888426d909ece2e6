"""Core: errors, random streams, atomic files, schedules, running statistics; imports nothing of Ludus."""
