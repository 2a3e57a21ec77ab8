"""Tails of several counts: their lattice, regions of it, and sums over regions."""
