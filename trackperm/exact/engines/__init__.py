"""Numerical engines: each computes the p-value, or bounds of it."""
