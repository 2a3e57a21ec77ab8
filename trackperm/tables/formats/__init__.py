"""Readers of file formats, one module a format."""
