"""Drawings of a comparison, as SVG, PNG or characters: its effect, null distribution and verdict."""
