"""Make fal_types.json, the input types of fal's endpoints as JSON Schemas, from the types in its client for Node:

    npm pack @fal-ai/client@1.10.1 && tar xzf fal-ai-client-1.10.1.tgz
    .venv/bin/python -m tests.providers.fal_types package/src/types/endpoints.d.ts

The client has the MIT licence, which is in fal_types.LICENSE.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from penstock.providers import discover

Schema = dict[str, Any]
SOURCE = "@fal-ai/client 1.10.1 from npm, src/types/endpoints.d.ts, input types of our endpoints; "
SOURCE += "numbers in a choice are quoted there, so both forms are here"
LICENCE = "MIT, Copyright 2024 https://fal.ai"
TOKEN = re.compile(r'\s*([A-Za-z_$][\w$]*|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|[{}\[\]|&;:?<>,()])')
PLAIN: dict[str, Schema] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "unknown": {},
    "true": {"enum": [True]},
    "false": {"enum": [False]},
}
FILES = ("Blob", "File")  # the client uploads them and sends a URL


class TypeReader:
    """Reads one type expression of TypeScript, as far as the client uses them."""

    def __init__(self, text: str) -> None:
        self._tokens = TOKEN.findall(text)

    def read_type(self) -> Schema:
        options = [self._read_option()]
        while self._tokens[:1] == ["|"]:
            self._take()
            options.append(self._read_option())
        choices = [value for option in options if option for value in option.get("enum", ())]
        if choices and all(isinstance(value, str) and value.isdecimal() for value in choices):
            choices += [int(value) for value in choices]
        found: list[Schema] = [{"enum": choices}] if choices else []
        for option in options:
            if option is not None and "enum" not in option and option not in found:
                found.append(option)
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _take(self) -> str:
        return str(self._tokens.pop(0))

    def _read_option(self) -> Schema | None:
        parts = [self._read_part()]
        while self._tokens[:1] == ["&"]:
            self._take()
            parts.append(self._read_part())
        return parts[0] if len(parts) == 1 else {"allOf": parts}

    def _read_part(self) -> Schema | None:
        option = self._read_plain()
        while self._tokens[:1] == ["["]:
            del self._tokens[:2]
            option = {"type": "array", "items": option}
        return option

    def _read_plain(self) -> Schema | None:
        token = self._take()
        if token in "{[":  # a list of named arguments is read like an object
            return self._read_object()
        if token == "(":
            inner = self.read_type()
            self._take()
            return inner
        if token in ("Array", "Record"):
            return self._read_generic(token)
        if token[0] == '"' or token.lstrip("-")[0].isdecimal():
            return {"enum": [json.loads(token)]}
        if token in FILES:
            return None
        return dict(PLAIN.get(token, {"$ref": f"#/types/{token}"}))

    def _read_generic(self, name: str) -> Schema:
        self._take()
        inner = self.read_type()
        if name == "Record":
            self._take()
            inner = self.read_type()
        self._take()
        return (
            {"type": "array", "items": inner} if name == "Array" else {"type": "object", "additionalProperties": inner}
        )

    def _read_object(self) -> Schema:
        properties: dict[str, Schema] = {}
        required: list[str] = []
        while self._tokens[0] not in "}]":
            name = self._take().strip('"')
            is_optional = self._tokens[0] == "?"
            del self._tokens[: 2 if is_optional else 1]
            properties[name] = self.read_type()
            required += [] if is_optional else [name]
            if self._tokens[0] in ";,":
                self._take()
        self._take()
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read_types(text: str, wanted: set[str]) -> Schema:
    """The endpoints among those wanted, and the types that they use."""
    text = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)
    definitions = dict(re.findall(r"export type (\w+) = (.*?);\n(?=export )", text, re.DOTALL))
    known = dict(re.findall(r'"([^"]+)": \{\s*input: (\w+);', text))
    endpoints = {name: known[name] for name in sorted(wanted & known.keys())}
    types: dict[str, Schema] = {}
    waiting = list(endpoints.values())
    while waiting:
        name = waiting.pop()
        if name not in types:
            types[name] = TypeReader(definitions[name]).read_type()
            waiting += re.findall(r"#/types/(\w+)", json.dumps(types[name]))
    return {"endpoints": endpoints, "types": dict(sorted(types.items()))}


def main(path: Path) -> None:
    wanted = {model.upstream for provider in discover() if provider.slug == "fal" for model in provider.models}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    document = {"source": SOURCE, "licence": LICENCE, "sha256": digest, **read_types(path.read_text(), wanted)}
    parts = [f" {json.dumps(name)}: {_lines(value)}" for name, value in document.items()]
    Path(__file__).with_name("fal_types.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _lines(value: Any) -> str:
    """One line for each endpoint and each type."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(item)}" for name, item in value.items()) + "\n }"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
