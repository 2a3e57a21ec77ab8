"""Lazy tables: files and queries whose columns are read when they are used."""
