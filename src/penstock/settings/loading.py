"""Load the settings: from the defaults, penstock.toml, the environment and the command line."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from penstock.environment import Environment
from penstock.settings import PREFIX, TABLES, Settings
from penstock.typed_config import Misconfigured, convert, convertible_value, read_toml, unwrap


def load(overrides: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings: defaults, then penstock.toml, then PENSTOCK_* variables, then `overrides`.

    An override of None does not count. `config` among the overrides is the path of penstock.toml. Raises Misconfigured.
    """
    environ = Environment(environ)
    given = {name: value for name, value in overrides.items() if value is not None}
    config = given.pop("config", None) or environ.get(PREFIX + "CONFIG")
    data = Path(given.get("data") or environ.get(PREFIX + "DATA") or "data")
    path = Path(config) if config else data / "penstock.toml"
    if config and not path.is_file():
        raise Misconfigured(f"no such file: {path}")
    kinds = {field.name: unwrap(field.type) for field in setting_fields()}
    from_file = read_toml(path, kinds) if path.is_file() else {}
    from_environ = {
        name: environ[PREFIX + name.upper()]
        for name in kinds
        if name not in TABLES and PREFIX + name.upper() in environ
    }
    values = {**from_file, **from_environ, **given}
    settings = convert(
        {name: convertible_value(name, value, kinds[name]) for name, value in values.items()}, Settings, strict=False
    )
    origins = {
        **dict.fromkeys(from_file, "file"),
        **dict.fromkeys(from_environ, "environment"),
        **dict.fromkeys(given, "command line"),
    }
    msgspec.structs.force_setattr(settings, _ORIGINS, origins)
    return settings


def with_values(settings: Settings, **values: int) -> Settings:
    """Settings with other values; `as_configured` returns the former ones."""
    changed = msgspec.structs.replace(settings, **values)
    msgspec.structs.force_setattr(changed, _WHOLE, settings)
    return changed


_WHOLE = "whole"
_ORIGINS = "origins"


def as_configured(settings: Settings) -> tuple[Settings, Mapping[str, str]]:
    """The settings as they were given, before they were shared out; and where each that was given comes from."""
    whole: Settings = getattr(settings, _WHOLE, settings)
    return whole, getattr(whole, _ORIGINS, {})


def setting_fields() -> tuple[inspect.Field, ...]:
    """The fields of `Settings`, with their types, defaults and descriptions."""
    kind = inspect.type_info(Settings)
    assert isinstance(kind, inspect.StructType)
    return kind.fields
