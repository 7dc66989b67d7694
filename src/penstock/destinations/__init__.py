"""Destinations: buckets of organizations, into which copies of their outputs go before the outputs are announced."""
