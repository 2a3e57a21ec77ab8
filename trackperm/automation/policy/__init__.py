"""Policies: what is compared with what, and when that fails."""
