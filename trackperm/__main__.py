"""Command line of trackperm as ``python -m trackperm``."""

from trackperm.cli import main

if __name__ == "__main__":
    main()
