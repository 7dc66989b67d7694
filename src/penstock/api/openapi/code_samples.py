"""Write the calls of the examples as curl commands."""

import json
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from penstock.api.route import Route

_BREAK = " \\\n  "
_WIDTH = 60  # a shorter JSON body stays on one line


def curl(route: Route, example: Mapping[str, Any]) -> str:
    """Return a command that makes the call of an example, with the gateway and the key in variables."""
    words = [f'curl "$PENSTOCK_URL{_path(route, example)}"']
    if route.method not in ("GET", "POST") or (
        route.method == "POST" and "json" not in example and "form" not in example
    ):
        words[0] = f"curl -X {route.method}" + words[0].removeprefix("curl")
    if route.needs_key:
        words.append('-H "Authorization: Bearer $PENSTOCK_KEY"')
    words += [f'-H "{name}: {value}"' for name, value in example.get("headers", {}).items()]
    if "json" in example:
        words.append('-H "Content-Type: application/json"')
        words.append(f"-d {shlex.quote(_json(example['json']))}")
    words += [f"-F {shlex.quote(f'{name}={value}')}" for name, value in example.get("form", {}).items()]
    if route.gives == "file":
        words.append("-o file")
    return _BREAK.join(words)


def _path(route: Route, example: Mapping[str, Any]) -> str:
    path = route.path.replace(":path}", "}")
    for name, value in example.get("path", {}).items():
        path = path.replace(f"{{{name}}}", quote(value))
    query = "&".join(f"{name}={quote(value, safe='/:')}" for name, value in example.get("query", {}).items())
    return f"{path}?{query}" if query else path


def _json(value: Any) -> str:
    short = json.dumps(value, ensure_ascii=False)
    return short if len(short) < _WIDTH else json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
