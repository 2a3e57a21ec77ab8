"""Real scores as integers of one unit."""
