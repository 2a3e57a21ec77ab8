"""Pairs of examples in a spec: their term, its expressions, and their values."""
