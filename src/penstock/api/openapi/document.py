"""Build the OpenAPI document from the same rows that route and check calls."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from penstock import __version__
from penstock.accounts.key_records import SCOPES
from penstock.api.openapi.code_samples import curl
from penstock.api.openapi.operations import OPERATIONS, TAGS
from penstock.api.openapi.request_schemas import body
from penstock.api.openapi.response_schemas import SCHEMAS
from penstock.api.openapi.schema_parts import Schema, ref
from penstock.api.route import Query, Route
from penstock.errors import InvalidRequest, Problem, problem_kinds
from penstock.fields import Table

_CONVERTOR = re.compile(r":\w+}")
_IN_PATH = re.compile(r"{(\w+)}")
_REASONS = {
    400: "The call is invalid; the message says what is wrong.",
    401: "The key is missing or invalid.",
    402: "The balance does not cover the call.",
    403: "Not permitted.",
    404: "Not found.",
    408: "The request took too long to arrive.",
    409: "The current state does not allow it.",
    413: "The body is too large.",
    415: "The type of the body is not accepted.",
    416: "The range begins after the end of the file.",
    429: "Too many calls.",
    431: "The headers are too large.",
    500: "The gateway failed.",
    502: "The providers failed.",
    503: "The gateway cannot serve the call now.",
    504: "A provider took too long.",
}
_NOT_CHANGED = "Not changed since the response with this entity tag."
_CURSORS = {"starting_after", "ending_before", "after"}
_PATH_PARAMETERS = {
    "model": "Id of a model, with or without the prefix of a provider.",
    "provider": "Id of a provider, such as `openai`.",
    "name": "Name of a declared label, such as `customer`.",
    "value": "Value of the label, or `*` for each value.",
    "alias": "A name that calls ask for.",
    "file": "Name of a file, as a page or a pair gives it.",
    "page": "Name of a page, such as `images`.",
    "token": "What the gateway gave the provider for this job.",
}
_TEXT_KINDS = {"csv": "text/csv", "jsonl": "application/jsonl", "text": "text/plain"}
_GENERATION = (402, 403, 404, 409, 429, 502, 504)


def build_document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(plain_path(route), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock",
            "version": __version__,
            "description": "One API in front of every image, video and chat provider. Every error has the same "
            "envelope; programs should look at its `code`. `/docs` has guides and what each code means.",
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(SCHEMAS),
            "headers": {"RequestId": {"schema": {"type": "string"}, "description": "Id of the request."}},
        },
    }


def plain_path(route: Route) -> str:
    """Return a path as OpenAPI writes it: `/models/{model}` for `/models/{model:path}`."""
    return _CONVERTOR.sub("}", route.path)


def _operation(route: Route) -> dict[str, Any]:
    name = route.endpoint.__name__
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": route.summary,
        **_description(name),
        "parameters": list(_parameters(route)),
        "responses": {str(status): response for status, response in _responses(route)},
        "security": [{"key": []}] if route.needs_key else [],
        "x-codeSamples": [{"lang": "curl", "source": curl(route, example)} for example in _requests(route)],
    }
    if route.fields is not None:
        operation["requestBody"] = {"required": True, "content": dict(_bodies(route, route.fields))}
    return operation


def _description(name: str) -> dict[str, Any]:
    """Return the group and the description of an operation, if it has any; a test finds those that have none."""
    operation = OPERATIONS.get(name)
    return {} if operation is None else {"description": operation.about, "tags": [operation.tag]}


@cache
def _examples() -> Mapping[str, Any]:
    """Return the examples by operation, as docs/examples.py has made them with a real gateway."""
    examples: Mapping[str, Any] = msgspec.json.decode(files(__package__).joinpath("examples.json").read_bytes())
    return examples


def _example(route: Route) -> Mapping[str, Any]:
    example: Mapping[str, Any] = _examples().get(route.endpoint.__name__, {})
    return example


def _requests(route: Route) -> list[Mapping[str, Any]]:
    return _example(route).get("requests") or [{}]


# ------------------------------------------------------------------------------------------------------------ requests


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    first = _requests(route)[0]
    for name in _IN_PATH.findall(plain_path(route)):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS.get(name, "Id."),
            "schema": {"type": "string", "minLength": 1},
            **_with_example(first.get("path", {}).get(name)),
        }
    for row in route.query:
        yield {
            "name": row.name + "customer" if row.type == "labels" else row.name,
            "in": "query",
            "required": row.required,
            "description": row.about,
            "schema": _query_schema(row),
        }
    for header in route.headers:
        schema: Schema = {"type": "string"}
        if header.one_of:
            schema["enum"] = list(header.one_of)
        if header.default is not None:
            schema["default"] = header.default
        yield {"name": header.name, "in": "header", "description": header.about, "schema": schema}


def _with_example(value: Any) -> dict[str, Any]:
    return {} if value is None else {"example": value}


def _query_schema(row: Query) -> Schema:
    if row.type == "time":
        return {"type": "string", "format": "date-time"}
    schema: Schema = {"type": "string" if row.type == "labels" else row.type}
    limits = {"enum": list(row.one_of) or None, "minimum": row.low, "maximum": row.high, "default": row.default}
    return schema | {name: value for name, value in limits.items() if value is not None}


def _bodies(route: Route, fields: Table) -> Iterator[tuple[str, Any]]:
    """Yield a schema for each content type. Bodies of generations may have further fields, for the provider."""
    first = _requests(route)[0]
    if "json" in route.takes:
        schema = body(fields, is_form=False, is_open=route.generation)
        yield "application/json", {"schema": schema, **_with_example(first.get("json"))}
    if "form" in route.takes:
        schema = body(fields, is_form=True, is_open=route.generation)
        yield "multipart/form-data", {"schema": schema, **_with_example(first.get("form"))}


# ----------------------------------------------------------------------------------------------------------- responses


def _responses(route: Route) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from _successes(route)
    for status in sorted(_failures(route)):
        content = {"application/json": {"schema": ref("Error"), "example": _error_examples()[status]}}
        yield status, _response(_REASONS[status], content)


@cache
def _error_examples() -> Mapping[int, Any]:
    """Return an error for each status, with the first code that has it."""
    kinds: dict[int, type[Problem]] = {}
    for kind in problem_kinds():
        kinds.setdefault(kind.status, kind)
    return {
        status: {"error": {"message": message, "type": kind.type, "code": kind.code}}
        for status, message in _REASONS.items()
        for kind in [kinds.get(status, InvalidRequest)]
    }


def _file_responses(route: Route) -> Iterator[tuple[int, dict[str, Any]]]:
    for status in (200, 206):
        yield status, _response(route.summary, {"*/*": {"schema": {"type": "string", "format": "binary"}}})
    if any(row.name == "redirect" for row in route.query):
        yield 307, _response("The file is at the URL in the header `Location`.", None)


def _successes(route: Route) -> Iterator[tuple[int, dict[str, Any]]]:
    if route.status == 204:
        yield 204, _response(route.summary, None)
        return
    if route.gives == "file":
        yield from _file_responses(route)
        return
    if route.gives == "redirect":
        yield 302, _response(route.summary, None)
        return
    if route.gives == "page":
        yield 200, _response(route.summary, {"*/*": {"schema": {"type": "string"}}})
        yield 304, _response(_NOT_CHANGED, None)
        return
    if route.gives in _TEXT_KINDS:
        yield 200, _response(route.summary, {_TEXT_KINDS[route.gives]: {"schema": {"type": "string"}}})
        return
    schemas: dict[int, list[str]] = {route.status: [route.gives]}
    for status, name in route.also:
        schemas.setdefault(status, []).append(name)
    for status, names in schemas.items():
        refs = [ref(name) for name in names]
        example = _example(route).get("responses", {}).get(str(status))
        schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
        content = {"application/json": {"schema": schema, **_with_example(example)}}
        content |= {kind: {"schema": {"type": "string"}} for kind in _text_types(route)}
        content |= {"audio/*": {"schema": {"type": "string", "format": "binary"}}} if route.gives_sound else {}
        yield status, _response(route.summary, content)
    if route.is_tagged:
        yield 304, _response(_NOT_CHANGED, None)


def _text_types(route: Route) -> Iterator[str]:
    """Yield the content types that a caller may ask for instead of JSON."""
    if route.gives_text:
        yield from ("text/plain", "text/vtt")
    if route.fields is not None and not {"stream", "stream_format"}.isdisjoint(route.fields):
        yield "text/event-stream"
    if any(row.name == "format" and "csv" in row.one_of for row in route.query):
        yield "text/csv"
    if any(row.name == "format" and "jsonl" in row.one_of for row in route.query):
        yield "application/jsonl"


def _response(text: str, content: dict[str, Any] | None) -> dict[str, Any]:
    response: dict[str, Any] = {
        "description": text,
        "headers": {name: {"$ref": "#/components/headers/RequestId"} for name in _ID_HEADERS},
    }
    return response if content is None else {**response, "content": content}


_ID_HEADERS = ("x-request-id", "X-Service-Request-Id")


_FOR_SOME = ("/v1/audit", "/v1/guards", "/v1/own-keys")  # whose endpoints ask more of a caller than a scope


def _failures(route: Route) -> set[int]:
    found = {400, 408, 413, 415, 431, 500, 503}
    if route.needs_key:
        found.add(401)
    if route.access in (*SCOPES, "signed") or route.path in _FOR_SOME:
        found.add(403)
    if "{" in route.path or _CURSORS & {row.name for row in route.query}:
        found.add(404)
    if route.gives == "file":
        found.add(416)
    # Metrics and the page for anybody can be switched off; an issuer need not be there, nor a link be good.
    is_optional = route.gives in ("text", "redirect") or route.path == "/auth/backchannel-logout"
    if is_optional or route.is_public_verify or route.is_vote:
        found.add(404)
    if route.gives == "Purged" or route.method == "PATCH" or route.path.endswith(("/redeliver", "/check")):
        found.add(409)
    if route.path in ("/v1/destinations", "/v1/own-keys") and route.method == "POST":  # there are too many
        found.add(409)
    if "/accounts" in route.path and route.method != "GET":  # a credential that is there already, or open jobs
        found.add(409)
    if route.is_public_verify or route.is_vote:
        found.add(429)
    return found | set(_GENERATION if route.generation else ())
