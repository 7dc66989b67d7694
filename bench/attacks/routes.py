"""Attack one route: each field of its body, and each of its parameters, at its limit."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bench.attacks.bodies import data_uri, form
from bench.attacks.target import EDITS, JSON_BYTES, MIB, VALID, Attack, Begin, Target
from bench.hostile_provider import small_png

WITHOUT_BODY = "every route without a body"


def walk_route(name: str) -> Attack:
    """The attack on a route of the OpenAPI document, or on all routes without a body: everything at its limit."""

    async def run(target: Target, begin: Begin) -> None:
        routes = [
            (method, template, operation)
            for template, operations in target.document["paths"].items()
            for method, operation in operations.items()
            if name == f"{method.upper()} {template}" or (name == WITHOUT_BODY and method != "post")
        ]
        await begin()
        for method, template, operation in routes:
            for path, body, kind in _calls_at_limits(method, template, operation):
                await target.call(method.upper(), path, body, {"content-type": kind} if body else None)

    return run


def _calls_at_limits(method: str, template: str, operation: Mapping[str, Any]) -> Iterable[tuple[str, bytes, str]]:
    path = template.replace("{", "x").replace("}", "x")
    kinds = operation.get("requestBody", {}).get("content", {})
    if schema := kinds.get("application/json", {}).get("schema"):
        valid = {**VALID.get(template, {}), **({"image": data_uri(small_png())} if template == EDITS else {})}
        for field_name, about in schema.get("properties", {}).items():
            for value in _largest_values(about, JSON_BYTES):
                yield path, json.dumps({**valid, field_name: value}, ensure_ascii=False).encode(), "application/json"
    elif method == "post":
        yield path, b"\0" * MIB, "application/octet-stream"
    if "multipart/form-data" in kinds:
        fields = list(kinds["multipart/form-data"]["schema"].get("properties", {}))
        yield path, *form([(field_name, b"a" * (256 * 1024)) for field_name in fields])
    if method != "post":
        yield path, b"", ""
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                yield f"{path}?{parameter['name']}={_largest_parameter(parameter['schema'])}", b"", ""
            elif parameter["in"] == "path":
                yield (
                    template.replace(f"{{{parameter['name']}}}", "x" * 7000).replace("{", "").replace("}", ""),
                    b"",
                    "",
                )


def _largest_parameter(schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "boolean":
        return "true"
    return schema.get("maximum", "x" * 7000)


def _largest_values(schema: Mapping[str, Any], size: int) -> Iterable[Any]:
    """Values at the limit that the schema states or, without one, at the limit of the whole body."""
    for choice in schema.get("anyOf", [schema]):
        kinds = choice.get("type", "object")
        kind = next((each for each in ([kinds] if isinstance(kinds, str) else kinds) if each != "null"), "null")
        if kind == "string":
            longest = choice.get("maxLength", size)
            yield "a" * longest
            if longest == size:
                yield "\U0001f600" + "a" * (longest - 4)  # one such letter, and each letter takes four bytes in memory
        elif kind == "array":
            yield [{"type": "text", "text": ""}] * 60_000
            yield ["a" * (size // 4)] * 3
        elif kind == "object":
            yield {f"name {number}": number for number in range(200_000)}
            yield {"url": "data:image/png;base64," + "A" * (size - 100)}
        elif kind in ("integer", "number"):
            yield choice.get("maximum", 2**63 - 1)
