"""Columns of two runs before their rows are joined: their roles, and what identifies the examples."""
