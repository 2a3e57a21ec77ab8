"""Distributions of sums of coins: characteristic functions, exponential tilts and windows."""
