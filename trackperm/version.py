"""The version of trackperm, read by the build and logged with every result."""

__version__ = "0.2.0"
