"""Count how many models of fal's own catalogue can be called at once, from documents that fal publishes.

.venv/bin/python -m tests.any_model.usable PRICES DOCUMENT...

A DOCUMENT is an answer of `GET https://api.fal.ai/v1/models?expand=openapi-3.0`, PRICES one of `GET …/models/pricing`,
or the prices by endpoint, as programs keep them. For each endpoint that makes images or videos and has no table, the
gateway's table is made, one call with nothing but what the table requires is translated, and its body is compared with
the endpoint's own OpenAPI document. Without arguments, the documents kept in this folder are counted.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

from penstock.errors import Problem
from penstock.providers import discover
from penstock.providers.fal import live as fal
from penstock.providers.live import Underivable
from penstock.providers.spec import Model, Param
from penstock.schema import Input, Request
from penstock.upstream import checks, translate
from penstock.upstream.replies import MALFORMED
from penstock.values import INPUT_VIDEOS, InputFile
from tests.any_model import catalogue

CATEGORIES = ("text-to-image", "image-to-image", "text-to-video", "image-to-video", "video-to-video", "audio-to-video")
FILE_BYTES = 30_000
IMAGE = InputFile(b"x" * FILE_BYTES, "image/png", 1024, 1024, url="https://gateway.test/m/1")
VIDEO = InputFile(b"x" * FILE_BYTES, "video/mp4", 1280, 720, seconds=5.0, frames=120, url="https://gateway.test/m/2")
USABLE = "usable"


@cache
def _with_table() -> frozenset[str]:
    return frozenset(model.upstream for provider in discover() if provider.slug == "fal" for model in provider.models)


def has_no_table(entry: Mapping[str, Any]) -> bool:
    """Whether an endpoint makes images or videos, by its category, and is in no table."""
    return entry["metadata"].get("category") in CATEGORIES and entry["endpoint_id"] not in _with_table()


def outcomes(listed: Iterable[Mapping[str, Any]], prices: Mapping[str, Any]) -> dict[str, str]:
    """Each endpoint that makes images or videos and has no table: `usable`, or the reason why it is not."""
    return {
        entry["endpoint_id"]: outcome(entry["endpoint_id"], entry, prices.get(entry["endpoint_id"]))
        for entry in listed
        if has_no_table(entry)
    }


def outcome(name: str, entry: Mapping[str, Any], price: Mapping[str, Any] | None) -> str:
    """What comes of the smallest call of an endpoint."""
    if "paths" not in (entry.get("openapi") or {}):
        return "no OpenAPI document"
    if price is None:
        return "no price in the list"
    try:
        models = fal.models(name, fal.read(name, {"model": {"models": [entry]}, "price": {"prices": [price]}}))
    except Underivable as problem:
        return f"refused: {problem}"
    except MALFORMED as problem:
        return f"unreadable: {problem!r}"[:100]
    if not all(model.prices for model in models):
        return f"no price for the unit `{price['unit']}`"
    return _first_breach(models[0], entry["openapi"]) or USABLE


def _first_breach(model: Model, openapi: Mapping[str, Any]) -> str | None:
    """What is wrong with the smallest call of a model; None if nothing is."""
    try:
        body = smallest_body(model)
    except Problem as problem:
        return f"not called: {problem.message}"
    posts = [path["post"] for path in openapi["paths"].values() if "requestBody" in path.get("post", {})]
    defined = openapi["components"]["schemas"]
    missing = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(defined))) - defined.keys()
    described = {"components": {"schemas": {**defined, **{name: {} for name in missing}}}}
    schema = {**posts[0]["requestBody"]["content"]["application/json"]["schema"], **described}
    errors = list(jsonschema_rs.iter_errors(schema, json.loads(msgspec.json.encode(body))))
    return f"wrong at fal: {errors[0].instance_path} {str(errors[0].message)[-160:]}" if errors else None


def smallest_body(model: Model) -> dict[str, Any]:
    """The body of a call with a prompt and what the table requires."""
    op = model.op
    values: dict[str, Any] = {"prompt": "a fox in the snow"} if op.task != "upscale" else {}
    if (row := op.param("negative_prompt")) is not None and row.required:
        values["negative_prompt"] = "fog"
    extras = {row.name: _example(row) for row in op.params if row.required and row.schema is not None}
    files: dict[str, list[InputFile]] = {}
    inputs: list[Input] = []
    for name, role in (("images", "image"), ("mask", "mask"), ("input_reference", "reference")):
        row = op.param(name)
        if row is not None and row.required:
            files[name] = [IMAGE] * max(1, row.min_items)
            inputs += [Input(role, "", IMAGE.content_type, 1024, 1024, FILE_BYTES)] * len(files[name])
    for role in INPUT_VIDEOS:
        row = op.param(role)
        if row is not None and row.required:
            files[role] = [VIDEO]
            inputs.append(Input(role, "", VIDEO.content_type, 1280, 720, FILE_BYTES, 5.0, 120))
    request = translate.with_defaults(
        Request(task=op.task, model=model.id, values=values, extras=extras, inputs=tuple(inputs)), model
    )
    checks.check(model, request)
    checks.check_inputs(model, {name: len(each) for name, each in files.items()})
    return translate.provider_body(model, translate.table_values(request, 1, files), request.extras)


def _example(row: Param) -> Any:
    """A value for a required field that only this model has, as a caller finds it in the model's schema."""
    assert row.schema is not None, "see the caller"
    schema = (row.schema.get("anyOf") or [row.schema])[0]
    if "default" in row.schema:
        return row.schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        item = _example(Param(name=row.name, handling="passthrough", schema=schema.get("items") or {"type": "string"}))
        return [item] * int(schema.get("minItems", 1))
    if kind == "object":
        properties = schema.get("properties") or {}
        return {
            name: _example(Param(name=name, handling="passthrough", schema=properties[name]))
            for name in schema.get("required", ())
            if name in properties
        }
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return schema.get("multipleOf") or max(low, min(1, schema.get("maximum", 1)))
    if kind == "boolean":
        return False
    return "https://gateway.test/m/3.mp3" if "url" in row.name else "words"


def read_documents(paths: Iterable[str]) -> list[dict[str, Any]]:
    return [entry for path in paths for entry in json.loads(Path(path).read_text())["models"]]


def read_prices(path: str) -> dict[str, dict[str, Any]]:
    found = json.loads(Path(path).read_text())["prices"]
    rows = {row["endpoint_id"]: row for row in found} if isinstance(found, list) else found
    return {name: {"unit": row.get("billing_unit"), **row, "endpoint_id": name} for name, row in rows.items()}


def kept_outcomes() -> dict[str, str]:
    """The same of the endpoints that are kept in this folder."""
    kept = list(catalogue.entries())
    return outcomes(kept, {entry["endpoint_id"]: entry["price"] for entry in kept if "price" in entry})


def main() -> None:
    given = sys.argv[1:]
    found = outcomes(read_documents(given[1:]), read_prices(given[0])) if given else kept_outcomes()
    counts = Counter(found.values())
    examples = defaultdict[str, list[str]](list)
    for name, reason in found.items():
        examples[reason].append(name)
    for reason, count in counts.most_common():
        shown = "" if reason == USABLE else f"    {', '.join(examples[reason][:4])}"
        sys.stdout.write(f"{count:5d}  {reason}{shown}\n")
    priced = [reason for reason in found.values() if reason not in ("no OpenAPI document", "no price in the list")]
    for total, words in ((len(found), "all"), (len(priced), "those that are described and priced")):
        sys.stdout.write(f"{counts[USABLE]} of {total} usable, {counts[USABLE] / total:.1%} of {words}\n")


if __name__ == "__main__":
    main()
