"""Exact paired-permutation tests for runs logged in MLflow and Weights & Biases."""

__version__ = "0.1.0"
