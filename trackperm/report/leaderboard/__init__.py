"""Rendering of leaderboards: text, tables, charts and pages."""
