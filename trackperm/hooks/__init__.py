"""What happens without being asked: comparisons when a run ends, watchers, receivers and gates."""
