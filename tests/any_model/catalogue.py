"""What fal's own catalogue said about its endpoints that make images or videos, kept in a short form.

.venv/bin/python -m tests.any_model.catalogue PRICES DOCUMENT...    # writes catalogue.json anew

The file has facts only: types, limits, choices and defaults of fields, without fal's descriptions, and the prices. Of
several documents about an endpoint the last counts. `usable.py` says what the arguments are.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.providers.fal import live as fal

KEPT = Path(__file__).parent / "catalogue.json"
SOURCE = (
    "answers of GET https://api.fal.ai/v1/models?expand=openapi-3.0 of 2026-01-28 and 2026-06-11, as TanStack/ai kept "
    "them (MIT), and of GET /v1/models/pricing of 2026-03-28, 2026-05-17 and 2026-07-28, as nodetool-ai/nodetool kept "
    "them; facts only, the newest of each endpoint"
)
KEYWORDS = frozenset(
    """type const default minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems
    maxItems format required""".split()
)
# What is read in descriptions.
WORDS = re.compile(
    r"(?:multiples? of|divisible by) \d+|(?:width|height|sides?|dimensions?)\b[^.]*\bbetween \d{2,5} and \d{2,5}"
    r"|black\b[^.;,]{0,40}\b(?:inpaint|edit|replac|chang|remov|fill|generat)",
    re.IGNORECASE,
)
CHOICES_MAX = 30
DEFAULT_LENGTH_MAX = 60
DEPTH_MAX = 6


def entries() -> Iterator[dict[str, Any]]:
    """The endpoints as fal's catalogue lists them, with their prices under `price`."""
    kept = json.loads(KEPT.read_text())
    parts = kept["parts"]
    for name, (category, price, inputs, required, outputs) in kept["endpoints"].items():
        entry = {"endpoint_id": name, "metadata": {"category": category, "display_name": name}}
        if price is not None:
            entry["price"] = {"endpoint_id": name, "unit_price": price[0], "unit": price[1], "currency": "USD"}
        if inputs is not None:
            entry["openapi"] = openapi(
                name,
                {"type": "object", "properties": {key: parts[at] for key, at in inputs.items()}, "required": required},
                {"type": "object", "properties": {key: parts[at] for key, at in outputs.items()}},
            )
        yield entry


def openapi(endpoint: str, inputs: Any, outputs: Any, schemas: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The document that fal publishes about an endpoint."""

    def content(name: str) -> dict[str, Any]:
        return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}

    return {
        "openapi": "3.0.4",
        "info": {"title": f"Queue OpenAPI for {endpoint}", "x-fal-metadata": {"endpointId": endpoint}},
        "components": {"schemas": {**(schemas or {}), "TheInput": inputs, "TheOutput": outputs}},
        "paths": {
            f"/{endpoint}/requests/{{request_id}}/status": {"get": {"responses": {"200": content("QueueStatus")}}},
            f"/{endpoint}": {"post": {"requestBody": content("TheInput")}},
            f"/{endpoint}/requests/{{request_id}}": {"get": {"responses": {"200": content("TheOutput")}}},
        },
    }


def shortened(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema without what the tables are not made of. References become what they refer to."""
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return {}
    if "$ref" in schema:
        own = {name: value for name, value in schema.items() if name != "$ref"}
        target = definitions.get(schema["$ref"].rpartition("/")[2], {})
        return {**shortened(target, definitions, depth + 1), **shortened(own, definitions, depth)}
    short = {name: value for name, value in schema.items() if name in KEYWORDS}
    if len(json.dumps(short.get("default"))) > DEFAULT_LENGTH_MAX:
        del short["default"]
    if "enum" in schema:
        chosen = schema["enum"][:CHOICES_MAX]
        default = short.get("default")
        short["enum"] = chosen if default is None or default in chosen else [*chosen, default]
    if properties := schema.get("properties"):
        order = dict.fromkeys([*(schema.get("x-fal-order-properties") or ()), *properties])
        known = [name for name in order if name in properties]
        short["properties"] = {name: shortened(properties[name], definitions, depth + 1) for name in known}
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            short[name] = [shortened(part, definitions, depth + 1) for part in schema[name]]
    if "items" in schema:
        short["items"] = shortened(schema["items"], definitions, depth + 1)
    if words := WORDS.search(str(schema.get("description") or "")):
        short["description"] = words[0]
    return short


def kept_entry(entry: Mapping[str, Any], price: Mapping[str, Any] | None, parts: dict[str, int]) -> list[Any]:
    """One endpoint for the file; `parts` numbers the schemas that endpoints share."""

    def number(schema: Any) -> int:
        return parts.setdefault(json.dumps(schema, separators=(",", ":")), len(parts))

    listed_price = price and [price["unit_price"], price["unit"]]
    found = entry.get("openapi") or {}
    if "paths" not in found:
        return [entry["metadata"]["category"], listed_price, None, [], None]
    definitions = found["components"]["schemas"]
    inputs = shortened(fal._input(found), definitions)
    outputs = shortened(fal._output(found), definitions, DEPTH_MAX - 4).get("properties") or {}
    return [
        entry["metadata"]["category"],
        listed_price,
        {name: number(schema) for name, schema in (inputs.get("properties") or {}).items()},
        inputs.get("required") or [],
        {name: number(schema) for name, schema in outputs.items()},
    ]


def main() -> None:
    from tests.any_model.usable import has_no_table, read_documents, read_prices

    prices = read_prices(sys.argv[1])
    newest = {entry["endpoint_id"]: entry for entry in read_documents(sys.argv[2:]) if has_no_table(entry)}
    parts: dict[str, int] = {}
    rows = {name: kept_entry(entry, prices.get(name), parts) for name, entry in sorted(newest.items())}
    lines = [
        f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False, separators=(',', ':'))}"
        for name, row in rows.items()
    ]
    joined = ",\n".join
    KEPT.write_text(
        f'{{"source": {json.dumps(SOURCE)},\n"parts": [\n{joined(parts)}\n],\n"endpoints": {{\n{joined(lines)}\n}}}}\n'
    )


if __name__ == "__main__":
    main()
