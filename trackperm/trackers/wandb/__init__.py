"""Adapter of Weights & Biases."""
