"""Describe the settings in force, for `penstock settings` and `GET /v1/settings`, and find misspelt variables."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.settings import PREFIX, Settings, as_configured, rows

# May contain a password or a key.
_SECRETS = frozenset({"secret", "database", "media_options", "providers", "alert_url"})

_OTHER_VARIABLES = ("CONFIG", "KEY", "URL")  # of the command line
_ALIKE = 0.75  # how much alike two names must be, from 0 to 1


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


def misspelt_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that are no setting but almost have the name of one, with that name. Any others may be for other
    programs.
    """
    known = {variable for _, variable, _, _ in rows() if variable} | {PREFIX + name for name in _OTHER_VARIABLES}
    found = {}
    for name in sorted({name.removesuffix("_FILE") for name in environ if name.startswith(PREFIX)} - known):
        endings = [other.removeprefix(PREFIX) for other in known]
        if near := difflib.get_close_matches(name.removeprefix(PREFIX), endings, n=1, cutoff=_ALIKE):
            found[name] = PREFIX + near[0]
    return found
