"""The law of a sum of coins by its characteristic function, tilted and in windows."""
