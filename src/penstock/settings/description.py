"""Describe the settings, and those in force, for the documentation, `penstock settings` and `GET /v1/settings`."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import inspect

from penstock.settings import PREFIX, TABLES, Settings
from penstock.settings.loading import as_configured, setting_fields

# May contain a password or a key.
_SECRETS = frozenset({"secret", "database", "media_options", "providers", "alert_url"})

_OTHER_VARIABLES = (
    "CONFIG",
    "KEY",
    "URL",
    "OIDC_CLIENT_SECRET",
    "PROXY_SIGN_IN_SECRET",
)  # the first three: of the command line
_ALIKE = 0.75  # how much alike two names must be, from 0 to 1


class SettingRow(NamedTuple):
    """A setting as `penstock settings` and the documentation list it."""

    name: str
    variable: str  # of the environment; empty for tables
    default: str
    meaning: str


def rows() -> list[SettingRow]:
    """All settings, in the order of `Settings`."""
    table = []
    for field in setting_fields():
        default = field.default_factory() if callable(field.default_factory) else field.default
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        shown = shown.lower() if isinstance(default, bool) else shown.replace("{}", "")
        variable = "" if field.name in TABLES else PREFIX + field.name.upper()
        assert isinstance(field.type, inspect.Metadata)
        meaning = (field.type.extra_json_schema or {})["description"]
        table.append(SettingRow(field.name, variable, shown, meaning))
    return table


def in_force(settings: Settings) -> list[dict[str, Any]]:
    """Each setting with its value, unless that may be secret, and where the value comes from."""
    settings, origins = as_configured(settings)
    found = []
    for row in rows():
        value = getattr(settings, row.name)
        is_secret = row.name in _SECRETS
        found.append(
            {
                "name": row.name,
                "variable": row.variable or None,
                "value": None if is_secret else _shown(value),
                "is_secret": is_secret,
                "is_set": bool(value) if is_secret else row.name in origins,
                "origin": origins.get(row.name, "default"),
                "default": row.default,
                "meaning": row.meaning,
            }
        )
    return found


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value


def misspelt_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that are no setting but almost have the name of one, with that name. Any others may be for other
    programs.
    """
    known = {row.variable for row in rows() if row.variable} | {PREFIX + name for name in _OTHER_VARIABLES}
    found = {}
    for name in sorted({name.removesuffix("_FILE") for name in environ if name.startswith(PREFIX)} - known):
        endings = [other.removeprefix(PREFIX) for other in known]
        if near := difflib.get_close_matches(name.removeprefix(PREFIX), endings, n=1, cutoff=_ALIKE):
            found[name] = PREFIX + near[0]
    return found
