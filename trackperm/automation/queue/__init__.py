"""Queue of comparisons that survives crashes, and the workers and watchers that use it."""
