"""JSON Schemas of pages.txt: what pages of documentation say about requests that no package describes."""

import re
from functools import cache
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
TYPES: dict[str, Schema] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "anything": {},
}
LIMITS = {"text": "maxLength", "texts": "maxItems"}
PAGE = re.compile(r"(?P<provider>\S+) (?P<path>\S+): (?P<source>.+)")


@cache
def pages() -> dict[str, dict[str, tuple[str, Schema]]]:
    """By provider and path: where the page was read, and the schema of the body."""
    found: dict[str, dict[str, tuple[str, Schema]]] = {}
    for block in re.split(r"\n\s*\n", Path(__file__).with_name("pages.txt").read_text()):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        fields = [line for line in lines if line.startswith(" ")]
        for heading in (PAGE.fullmatch(line) for line in lines if line not in fields):
            assert heading, block
            found.setdefault(heading["provider"], {})[heading["path"]] = heading["source"], _body(fields)
    return found


def _body(lines: list[str]) -> Schema:
    body = _object()
    for line in lines:
        names, _, kind = re.sub(", ", ",", line.strip()).partition(" ")
        for name in names.split(","):
            _place(body, name.removesuffix("!").split("."), _field(kind), is_required=name.endswith("!"))
    return body


def _object() -> Schema:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _place(parent: Schema, path: list[str], schema: Schema, *, is_required: bool) -> None:
    """Put a field into the objects that it is nested in. An object with a required field is required, too."""
    name = path[0].removesuffix("[]")
    if is_required and name not in parent["required"]:
        parent["required"].append(name)
    if len(path) == 1:
        parent["properties"][name] = schema
        return
    inner = parent["properties"].setdefault(
        name, {"type": "array", "items": _object()} if path[0].endswith("[]") else _object()
    )
    _place(inner.get("items", inner), path[1:], schema, is_required=is_required)


def _field(text: str) -> Schema:
    kind, _, limits = text.partition(" ")
    if kind in ("of", "in"):
        return {"enum": limits.split() if kind == "of" else [int(number) for number in limits.split()]}
    schema = dict(TYPES[kind])
    if found := re.fullmatch(r"up to (\d+)", limits):
        schema[LIMITS[kind]] = int(found[1])
    elif found := re.fullmatch(r"from (\d+)", limits):
        schema["minimum"] = int(found[1])
    elif found := re.fullmatch(r"(\d+) to (\d+)", limits):
        schema |= {"minimum": int(found[1]), "maximum": int(found[2])}
    else:
        assert not limits, text
    return schema
