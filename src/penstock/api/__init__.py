"""The HTTP edge: the only code, beside the pages, that knows the web framework."""
