"""Rank ranges and compact letter displays of many systems."""
