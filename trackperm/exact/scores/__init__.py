"""Conversion of real scores to integer multiples of one unit."""
