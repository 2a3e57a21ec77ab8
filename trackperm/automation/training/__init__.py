"""Callbacks and hooks of training frameworks."""
