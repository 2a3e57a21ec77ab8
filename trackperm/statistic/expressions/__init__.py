"""Expressions of a spec: parsed, typed and evaluated."""
