"""Assumptions of the test: independent examples, and a null hypothesis of exchangeable outputs."""
