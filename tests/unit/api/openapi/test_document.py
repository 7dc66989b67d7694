"""The OpenAPI document is valid and agrees with the routes."""

import re
from typing import Any

import jsonschema_rs
import pytest

from penstock.api.openapi.document import build_document
from penstock.api.route import Query, Route
from penstock.api.routes import ROUTES
from penstock.fields import EDIT, IMAGE, VIDEO, Field
from penstock.gateway import Gateway
from penstock.schema import Call, Response

DOCUMENT: dict[str, Any] = build_document(ROUTES)


async def made_up(gateway: Gateway, call: Call) -> Response:
    return Response()


def operation(method: str, path: str) -> Any:
    return DOCUMENT["paths"][path][method]


def body(path: str, kind: str = "application/json") -> Any:
    return operation("post", path)["requestBody"]["content"][kind]["schema"]


def test_the_document_and_the_router_have_the_same_paths() -> None:
    written = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert written == {(row.method, re.sub(r":\w+}", "}", row.path)) for row in ROUTES}


def test_operation_ids_are_unique() -> None:
    names = [described["operationId"] for methods in DOCUMENT["paths"].values() for described in methods.values()]
    assert len(names) == len(set(names))


def test_every_reference_has_a_target() -> None:
    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    for reference in references(DOCUMENT):
        node: Any = DOCUMENT
        for word in reference.removeprefix("#/").split("/"):
            node = node[word]


def test_every_schema_is_a_json_schema() -> None:
    check = jsonschema_rs.meta.validate
    for schema in DOCUMENT["components"]["schemas"].values():
        check(schema)
    for methods in DOCUMENT["paths"].values():
        for described in methods.values():
            for parameter in described["parameters"]:
                check(parameter["schema"])
            for content in described.get("requestBody", {}).get("content", {}).values():
                check(content["schema"])


def test_every_error_has_the_envelope_and_every_response_an_id() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for described in methods.values():
            for status, response in described["responses"].items():
                assert set(response["headers"]) == {"x-request-id", "X-Service-Request-Id"}
                if int(status) >= 400:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Error"}, path


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("post", "/compat/v1/images/generations", {200, 202, 400, 401, 402, 404, 413, 415, 429, 502, 503, 504}),
        ("post", "/compat/v1/videos", {200, 202, 400, 401, 402}),
        ("delete", "/compat/v1/videos/{id}", {204, 401, 404}),
        ("get", "/compat/v1/models/{model}", {200, 401, 404}),
        ("post", "/v1/keys", {200, 400, 401, 403}),
        ("delete", "/v1/requests/{request_id}/payloads", {200, 404, 409}),
        ("get", "/m/{media_id}", {200, 206, 403, 404, 416}),
    ],
)
def test_operations_list_their_statuses(method: str, path: str, statuses: set[int]) -> None:
    assert statuses <= {int(status) for status in operation(method, path)["responses"]}


def test_only_open_operations_need_no_key() -> None:
    assert operation("get", "/v1/balance")["security"] == [{"key": []}]
    assert operation("get", "/healthz")["security"] == []
    assert "401" not in operation("get", "/healthz")["responses"]


@pytest.mark.parametrize(
    ("path", "kind", "table"),
    [
        ("/compat/v1/images/generations", "application/json", IMAGE),
        ("/compat/v1/images/edits", "multipart/form-data", EDIT),
        ("/compat/v1/images/edits", "application/json", EDIT),
        ("/compat/v1/videos", "application/json", VIDEO),
        ("/compat/v1/videos", "multipart/form-data", VIDEO),
    ],
)
def test_bodies_of_generations_allow_further_fields(path: str, kind: str, table: Any) -> None:
    schema = body(path, kind)
    assert set(schema["properties"]) == set(table)
    assert set(schema["required"]) == {row.name for row in table.values() if row.required}
    assert schema["additionalProperties"] is True


def test_image_generations_accept_json_only() -> None:
    content = operation("post", "/compat/v1/images/generations")["requestBody"]["content"]
    assert list(content) == ["application/json"]


def test_the_body_of_a_key_allows_no_further_fields() -> None:
    assert body("/v1/keys")["additionalProperties"] is False


def test_query_parameters_have_their_limits() -> None:
    found = {parameter["name"]: parameter for parameter in operation("get", "/v1/requests")["parameters"]}
    assert found["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    assert found["created_after"]["schema"] == {"type": "string", "format": "date-time"}
    assert "rejected" in found["status"]["schema"]["enum"]
    assert not any(parameter["required"] for parameter in found.values())
    of_files = {parameter["name"]: parameter for parameter in operation("get", "/m/{media_id}")["parameters"]}
    assert [name for name, parameter in of_files.items() if not parameter["required"]] == ["name", "share", "w"]


def test_path_parameters_and_headers_are_listed() -> None:
    [model, *_] = operation("get", "/compat/v1/models/{model}")["parameters"]
    assert (model["name"], model["in"], model["required"]) == ("model", "path", True)
    replay = {
        parameter["name"]: parameter
        for parameter in operation("post", "/compat/v1/videos")["parameters"]
        if parameter["in"] == "header"
    }
    assert "replay-or-mock" in replay["X-Service-Replay"]["schema"]["enum"]
    assert replay["X-Service-Replay-Match"]["schema"]["default"] == "standard"


def test_a_new_route_is_a_new_operation() -> None:
    row = Route(
        "POST",
        "/made/{up}",
        made_up,
        "Made up",
        takes="json",
        fields={"stream": Field(name="stream", types=("boolean",), about="Stream.")},
        query=(Query(name="q", about="Question."),),
        gives="Health",
        status=202,
        also=((202, "Balance"), (200, "Estimate")),
    )
    [operation] = build_document([row])["paths"]["/made/{up}"].values()
    assert operation["operationId"] == "made_up"
    accepted = operation["responses"]["202"]["content"]
    assert set(accepted) == {"application/json", "text/event-stream"}
    assert [
        alternative["$ref"].rpartition("/")[2] for alternative in accepted["application/json"]["schema"]["anyOf"]
    ] == [
        "Health",
        "Balance",
    ]
    assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("Estimate")
