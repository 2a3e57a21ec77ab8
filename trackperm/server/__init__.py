"""Comparisons and leaderboards inside MLflow's own server: pages, jobs, and the processes that run them."""
