"""List settings."""

from penstock import settings
from penstock.commands.terminal import show


def list_settings() -> None:
    """List every setting with its environment variable, its default and its meaning."""
    show("Settings", ["name", "variable", "default", "meaning"], [list(row) for row in settings.rows()])
