"""A gateway as a whole: built from its settings, started and kept running."""
