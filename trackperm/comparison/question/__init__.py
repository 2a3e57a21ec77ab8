"""Question of a comparison: its statistic, columns and direction, as named or as inferred from the runs."""
