"""Pairing of runs that do not fit in memory, and of many runs at once."""
