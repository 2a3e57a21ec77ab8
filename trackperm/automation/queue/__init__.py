"""Queue of candidates on SQLite, the worker that compares them, and the watcher that finds them."""
