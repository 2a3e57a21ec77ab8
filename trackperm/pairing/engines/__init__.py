"""Data frame engines that pair runs: polars in memory, DuckDB out of memory, Spark on a cluster."""
