"""Counts of two runs on their joined rows: by example, unit, class and pair, in integers of a unit."""
