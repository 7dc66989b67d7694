"""Find the row for a method and a path; there is always one, if only to refuse."""

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn
from urllib.parse import unquote

from starlette.routing import compile_path

from penstock.api.route import Access, Route
from penstock.errors import MethodNotAllowed, NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Response

Methods = Mapping[str, Route]

_ANY = "*"
_NOTHING: Mapping[str, str] = {}


async def _unknown(gateway: Gateway, call: Call) -> NoReturn:
    raise NotFound("There is nothing at this path.")


UNKNOWN = Route(_ANY, "unknown", _unknown, "Unknown path", access="open")
_UNKNOWN: Methods = {_ANY: UNKNOWN}


class Router:
    """Rows by path. Paths are compared as they were sent: nothing is decoded, joined or shortened into a match."""

    def __init__(self, routes: Iterable[Route]) -> None:
        by_path: dict[str, list[Route]] = {}
        for route in routes:
            by_path.setdefault(route.path, []).append(route)
        self._exact: dict[bytes, Methods] = {}
        self._patterns: list[tuple[re.Pattern[str], Methods]] = []
        for path, rows in by_path.items():
            if "{" in path:
                self._patterns.append((compile_path(path)[0], _methods(rows)))
            else:
                self._exact[path.encode()] = _methods(rows)

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        methods = self._exact.get(raw_path)
        values = _NOTHING
        if methods is None:
            methods, values = self._search(raw_path.decode("latin-1"))
        return methods.get(method) or methods[_ANY], values

    def _search(self, path: str) -> tuple[Methods, Mapping[str, str]]:
        for pattern, methods in self._patterns:
            match = pattern.fullmatch(path)
            if match:
                return _decoded(match.groupdict(), methods)
        return _UNKNOWN, _NOTHING


def _decoded(found: Mapping[str, str], methods: Methods) -> tuple[Methods, Mapping[str, str]]:
    """Values of a path, decoded one by one, so that an escaped slash stays within its value."""
    try:
        values = {name: unquote(value, errors="strict") for name, value in found.items()}
    except UnicodeDecodeError:
        return _UNKNOWN, _NOTHING
    if any("\0" in value for value in values.values()):
        return _UNKNOWN, _NOTHING
    return methods, values


def _methods(rows: list[Route]) -> Methods:
    """The rows of one path by method, with an answer for every other method that lets nobody in who has no key."""
    table = {row.method: row for row in rows}
    if "GET" in table:
        table.setdefault("HEAD", table["GET"])
    allowed = ", ".join([*table, "OPTIONS"])
    access: Access = "key" if any(row.needs_key for row in rows) else "open"

    async def options(gateway: Gateway, call: Call) -> Response:
        return Response(status=204, headers={"allow": allowed})

    async def refuse(gateway: Gateway, call: Call) -> NoReturn:
        raise MethodNotAllowed(f"This path answers to {allowed}.", headers={"allow": allowed})

    table["OPTIONS"] = Route("OPTIONS", rows[0].path, options, "Allowed methods", access=access, status=204)
    table[_ANY] = Route(_ANY, rows[0].path, refuse, "Wrong method", access=access)
    return table
