"""Tails of one weighted sum of coins: the engines for linear statistics."""
