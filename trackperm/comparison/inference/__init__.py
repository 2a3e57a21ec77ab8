"""Inference from a test: effect size and interval, evidence of equivalence, and verdict."""
