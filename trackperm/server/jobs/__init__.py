"""Jobs of the pages, and the worker processes that run them."""
