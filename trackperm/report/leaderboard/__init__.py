"""Leaderboards as text, tables, charts and pages."""
