"""Find the route for a method and a path; for an unknown path or method, a route that refuses the call."""

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn
from urllib.parse import unquote

from penstock.api.openai_endpoints import explain_method, explain_missing, is_known_and_not_served
from penstock.api.route import Access, Route
from penstock.errors import MethodNotAllowed, NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Response

Methods = Mapping[str, Route]

_ANY = "*"
_DOCS = "/docs"
_NO_VALUES: Mapping[str, str] = {}
_PARAMETER = re.compile(r"{(\w+)(:path)?}")


async def _unknown(gateway: Gateway, call: Call) -> Response:
    path = call.path.get("path", "")
    if path == _DOCS + "/":  # as people type it
        return Response(status=308, headers={"location": _DOCS})
    raise NotFound(explain_missing(path, call.base_url))


UNKNOWN = Route(_ANY, "unknown", _unknown, "Unknown path", access="open", takes="unread")
_UNKNOWN: Methods = {_ANY: UNKNOWN}


class Router:
    """Routes by path. Paths are compared as they were sent: nothing is decoded, joined or shortened before."""

    def __init__(self, routes: Iterable[Route]) -> None:
        by_path: dict[str, list[Route]] = {}
        for route in routes:
            by_path.setdefault(route.path, []).append(route)
        self._exact: dict[bytes, Methods] = {}
        self._patterns: list[tuple[re.Pattern[str], Methods]] = []
        for path, rows in by_path.items():
            if "{" in path:
                self._patterns.append((_pattern(path), _methods(rows)))
            else:
                self._exact[path.encode()] = _methods(rows)

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """Return a route and the values of the parameters in its path."""
        methods = self._exact.get(raw_path)
        values = _NO_VALUES
        if methods is None:
            methods, values = self._search(raw_path.decode("latin-1"))
        return methods.get(method) or methods[_ANY], values

    def _search(self, path: str) -> tuple[Methods, Mapping[str, str]]:
        if not is_known_and_not_served(path):
            for pattern, methods in self._patterns:
                match = pattern.fullmatch(path)
                if match:
                    return _decode_values(match.groupdict(), methods)
        return _UNKNOWN, {"path": path}


def _pattern(path: str) -> re.Pattern[str]:
    """Return the expression for a path: `{id}` matches up to the next slash, `{model:path}` matches slashes too."""
    expression = ""
    end = 0
    for match in _PARAMETER.finditer(path):
        name, takes_slashes = match.groups()
        expression += re.escape(path[end : match.start()]) + f"(?P<{name}>{'.+' if takes_slashes else '[^/]+'})"
        end = match.end()
    return re.compile(expression + re.escape(path[end:]))


def _decode_values(found: Mapping[str, str], methods: Methods) -> tuple[Methods, Mapping[str, str]]:
    """Decode the values of a path one by one, so that an escaped slash stays within its value."""
    try:
        values = {name: unquote(value, errors="strict") for name, value in found.items()}
    except UnicodeDecodeError:
        return _UNKNOWN, _NO_VALUES
    if any("\0" in value for value in values.values()):
        return _UNKNOWN, _NO_VALUES
    return methods, values


def _methods(rows: list[Route]) -> Methods:
    """Return the routes of one path by method, with HEAD, OPTIONS and a refusal for every other method.

    Where a route of this path needs a key, these need one too.
    """
    table = {row.method: row for row in rows}
    if "GET" in table:
        table.setdefault("HEAD", table["GET"])
    allowed = ", ".join([*table, "OPTIONS"])
    access: Access = "key" if any(row.needs_key for row in rows) else "open"

    async def options(gateway: Gateway, call: Call) -> Response:
        return Response(status=204, headers={"allow": allowed})

    async def refuse(gateway: Gateway, call: Call) -> NoReturn:
        remark = explain_method(call.method, rows[0].path)
        raise MethodNotAllowed(f"This path accepts the methods {allowed}.{remark}", headers={"allow": allowed})

    table["OPTIONS"] = Route("OPTIONS", rows[0].path, options, "Allowed methods", access=access, status=204)
    table[_ANY] = Route(_ANY, rows[0].path, refuse, "Wrong method", access=access, takes="unread")
    return table
