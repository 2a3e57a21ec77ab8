"""Pages inside MLflow's own server: comparisons, leaderboards, and the processes that compute them."""
