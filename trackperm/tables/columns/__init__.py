"""Columns of per-example tables: their usual names, their types, and values written as text."""
