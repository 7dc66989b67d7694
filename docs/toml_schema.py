"""The JSON Schema of penstock.toml, with which editors complete and check the file."""

import json
from pathlib import Path
from typing import Any

import msgspec

from penstock.models.config_tables import ModelChanges, ProviderChanges, ProviderTable
from penstock.providers import discover
from penstock.settings import Settings


def schema() -> str:
    """The schema as JSON text."""
    tables = (Settings, ProviderChanges, ProviderTable, ModelChanges)
    references, components = msgspec.json.schema_components(
        tables, schema_hook=_path_schema, ref_template="#/$defs/{name}"
    )
    _, changed_provider, own_provider, changed_model = references
    settings = components.pop("Settings")
    settings["properties"]["providers"] |= {
        "properties": {provider.slug: changed_provider for provider in discover()},
        "additionalProperties": own_provider,
    }
    settings["properties"]["models"]["additionalProperties"] = changed_model
    for component in components.values():
        _drop_empty_defaults(component["properties"])
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **settings,
        "title": "penstock.toml",
        "description": "Settings of Penstock.",
        "$defs": components,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _drop_empty_defaults(properties: dict[str, dict[str, Any]]) -> None:
    """Text that may be left out has the default "" in the code, but may not be written as empty text."""
    for described in properties.values():
        if described.get("default") == "":
            del described["default"]


def _path_schema(kind: type) -> dict[str, Any]:
    assert kind is Path
    return {"type": "string"}
