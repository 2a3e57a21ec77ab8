"""Tails of several counts at once: their lattice, regions in it, and sums over them."""
