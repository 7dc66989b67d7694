"""Describe the settings in force, for `penstock settings` and `GET /v1/settings`."""

from pathlib import Path
from typing import Any

from penstock.settings import Settings, as_configured, rows

# May contain a password or a key.
_SECRETS = frozenset({"secret", "database", "media_options", "providers", "alert_url"})


def in_force(settings: Settings) -> list[dict[str, Any]]:
    """Each setting with its value, unless that may be secret, and where the value comes from."""
    settings, origins = as_configured(settings)
    found = []
    for name, variable, default, meaning in rows():
        value = getattr(settings, name)
        is_secret = name in _SECRETS
        found.append(
            {
                "name": name,
                "variable": variable or None,
                "value": None if is_secret else _shown(value),
                "is_secret": is_secret,
                "is_set": bool(value) if is_secret else name in origins,
                "origin": origins.get(name, "default"),
                "default": default,
                "meaning": meaning,
            }
        )
    return found


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
