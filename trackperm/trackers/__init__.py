"""Adapters of experiment trackers, found by entry point."""
