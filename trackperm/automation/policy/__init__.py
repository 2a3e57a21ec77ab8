"""Policies: which runs are compared with what, and what counts as failure."""
