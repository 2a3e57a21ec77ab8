"""Tails of one weighted sum of coins: every engine for linear statistics."""
