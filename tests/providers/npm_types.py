"""Make npm_types.json, the requests of Fireworks and Stability AI as JSON Schemas, from packages for Node:

    npm pack @ai-sdk/fireworks@3.0.62 stability-ai@0.7.0
    for package in *.tgz; do mkdir "${package%.tgz}" && tar xzf "$package" -C "${package%.tgz}"; done
    .venv/bin/python -m tests.providers.npm_types .

Only names, types and limits are kept, without any text. Stability's models are newer than the package, so names of
models are not kept.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.providers import discover
from tests.providers.fal_types import TypeReader

Schema = dict[str, Any]


def main(folder: Path) -> None:
    document: dict[str, dict[str, Any]] = {
        "fireworks": {
            "source": "@ai-sdk/fireworks 3.0.62",
            "licence": "Apache-2.0, Copyright 2023 Vercel, Inc.",
            "schemas": {"image": fireworks(folder / "ai-sdk-fireworks-3.0.62/package/src")},
        },
        "stability": {
            "source": "stability-ai 0.7.0 (npm)",
            "licence": "MIT, Jack Beoris",
            "schemas": dict(stability(folder / "stability-ai-0.7.0/package/dist/v2beta/stable-image")),
        },
    }
    text = json.dumps(document, indent=1)
    for described in document.values():  # one line for each schema
        for schema in described["schemas"].values():
            text = text.replace(json.dumps(schema, indent=1).replace("\n", "\n   "), json.dumps(schema))
    Path(__file__).with_name("npm_types.json").write_text(text + "\n")


# ----------------------------------------------------------------------------------------------------------- Stability


def stability(folder: Path) -> Iterator[tuple[str, Schema]]:
    """The schema of each path: the types of the arguments of the function that calls it."""
    texts = {name: (folder / f"{name}.d.ts").read_text() for name in ("generate", "edit", "upscale")}
    texts["util"] = (folder.parent.parent / "util.d.ts").read_text()
    definitions: dict[str, str] = {}
    for text in texts.values():
        plain = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL).replace("'", '"')
        definitions |= re.findall(r"export type (\w+) = (.*?);\s*\n(?=export )", plain, re.DOTALL)
    wanted = {
        model.op.send.partition(" ")[2].replace("{model}", model.upstream)
        for provider in discover()
        if provider.slug == "stability"
        for model in provider.models
    }
    shared = {name: TypeReader(definitions[name]).read_type() for name in ("AspectRatio", "OutputFormat")}
    for name, text in texts.items():
        for kind in re.findall(r"export type (\w+)Request =", text):
            path = f"/v2beta/stable-image/{name}/{_path_name(kind)}"
            if path in wanted:
                yield path, _form(TypeReader(definitions[f"{kind}Request"]).read_type(), shared)


def _path_name(kind: str) -> str:
    words = re.findall(r"[A-Z][a-z]+|[A-Z]+\d*", kind.removesuffix("Upscale"))
    return "-".join(words).lower()


def _form(arguments: Schema, shared: Mapping[str, Schema]) -> Schema:
    """The fields of a form: the arguments of a function and, beside them, what is in its argument `options`."""
    fields = dict(arguments["properties"])
    options = fields.pop("options", {})
    required = [name for name in arguments["required"] if name != "options"]
    parts = [{"properties": fields, "required": required}, options]
    return {"type": "object", "allOf": [_open(part, shared) for part in parts], "unevaluatedProperties": False}


def _open(node: Any, shared: Mapping[str, Schema]) -> Any:
    """A schema with the names on the wire, whose objects may have more fields, because the whole form is closed."""
    if isinstance(node, list):
        return [_open(part, shared) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return shared[node["$ref"].rpartition("/")[2]]
    schema = {
        name: _open(part, shared) for name, part in node.items() if name not in ("additionalProperties", "required")
    }
    if "properties" in schema:
        schema["properties"] = {
            _wire_name(name): part if name != "model" else {} for name, part in schema["properties"].items()
        }
        schema["required"] = [_wire_name(name) for name in node.get("required", ())]
    return schema


def _wire_name(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name)


# ----------------------------------------------------------------------------------------------------------- Fireworks

ZOD: Mapping[str, Schema] = {"string": {"type": "string"}, "number": {"type": "number"}, "boolean": {"type": "boolean"}}


def fireworks(folder: Path) -> Schema:
    """The fields of an image request: those that the client sets itself, and the options of its callers."""
    (body,) = re.findall(r"const body = \{(.*?)\n    \};", (folder / "fireworks-image-model.ts").read_text(), re.DOTALL)
    names = re.findall(r"(?<![.\w])([a-z_]+)(?=[,:] )|^\s+([a-z_]+),$", body, re.MULTILINE)
    properties: dict[str, Schema] = {first or second: {} for first, second in names}
    options = (folder / "fireworks-image-model-options.ts").read_text()
    for name, kind, choices, checks in re.findall(r"(\w+): z\.(\w+)\((.*?)\)(.*?)\.optional\(\)", options):
        schema: Schema = dict(ZOD[kind]) if kind in ZOD else {"enum": re.findall(r"'(\w+)'", choices)}
        if ".int()" in checks:
            schema["type"] = "integer"
        for limit, word in (("minimum", "min"), ("maximum", "max")):
            if found := re.search(rf"\.{word}\((\d+)\)", checks):
                schema[limit] = int(found[1])
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": ["prompt"], "additionalProperties": False}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
