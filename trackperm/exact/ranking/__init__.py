"""Rank ranges and letter displays of many systems."""
