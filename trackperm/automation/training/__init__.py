"""Callbacks and hooks for training scripts, which log predictions and compare the run."""
