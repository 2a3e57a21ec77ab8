"""Checks of a pairing: refusals, differences and warnings."""
