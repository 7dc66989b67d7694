"""The HTTP edge: the only code that knows the web framework."""
