"""Compiler of specs: entries are parsed and checked one by one, and become a statistic."""
