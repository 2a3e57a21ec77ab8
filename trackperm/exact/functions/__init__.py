"""Statistics as functions of integers that can be evaluated exactly."""
