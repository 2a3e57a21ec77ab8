"""Jobs of the pages: records, access checks, and the worker processes that run them."""
