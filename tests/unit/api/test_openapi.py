"""The document says what the rows say, and is an OpenAPI document."""

import re
from typing import Any

import jsonschema_rs
import pytest

from penstock.api import openapi
from penstock.api.route import Query, Route
from penstock.api.routes import ROUTES
from penstock.fields import EDIT, IMAGE, VIDEO, Field
from penstock.gateway import Gateway
from penstock.schema import Call, Response

DOCUMENT: dict[str, Any] = openapi.document(ROUTES)


async def made_up(gateway: Gateway, call: Call) -> Response:
    return Response()


def operation(method: str, path: str) -> Any:
    return DOCUMENT["paths"][path][method]


def body(path: str, kind: str = "application/json") -> Any:
    return operation("post", path)["requestBody"]["content"][kind]["schema"]


def test_the_document_and_the_router_list_the_same() -> None:
    written = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert written == {(row.method, re.sub(r":\w+}", "}", row.path)) for row in ROUTES}


def test_operations_have_names_of_their_own() -> None:
    names = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))


def test_every_reference_leads_somewhere() -> None:
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
        for one in methods.values():
            for parameter in one["parameters"]:
                check(parameter["schema"])
            for content in one.get("requestBody", {}).get("content", {}).values():
                check(content["schema"])


def test_every_failure_has_the_envelope_and_every_answer_an_id() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for one in methods.values():
            for status, response in one["responses"].items():
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
def test_operations_list_how_they_may_end(method: str, path: str, statuses: set[int]) -> None:
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
def test_a_body_has_the_fields_of_its_table_and_room_for_more(path: str, kind: str, table: Any) -> None:
    schema = body(path, kind)
    assert set(schema["properties"]) == set(table)
    assert set(schema["required"]) == {row.name for row in table.values() if row.required}
    assert schema["additionalProperties"] is True


def test_images_are_made_from_json_alone() -> None:
    content = operation("post", "/compat/v1/images/generations")["requestBody"]["content"]
    assert list(content) == ["application/json"]


def test_a_key_has_no_room_for_more() -> None:
    assert body("/v1/keys")["additionalProperties"] is False


def test_query_parameters_carry_theirs() -> None:
    found = {one["name"]: one for one in operation("get", "/v1/requests")["parameters"]}
    assert found["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    assert found["created_after"]["schema"] == {"type": "string", "format": "date-time"}
    assert "rejected" in found["status"]["schema"]["enum"]
    assert not any(one["required"] for one in found.values())
    assert all(one["required"] for one in operation("get", "/m/{media_id}")["parameters"])


def test_path_parameters_and_headers_are_named() -> None:
    [model, *_] = operation("get", "/compat/v1/models/{model}")["parameters"]
    assert (model["name"], model["in"], model["required"]) == ("model", "path", True)
    replay = {one["name"]: one for one in operation("post", "/compat/v1/videos")["parameters"] if one["in"] == "header"}
    assert "replay-or-mock" in replay["X-Service-Replay"]["schema"]["enum"]
    assert replay["X-Service-Replay-Match"]["schema"]["default"] == "standard"


def test_one_more_row_is_one_more_operation() -> None:
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
    [operation] = openapi.document([row])["paths"]["/made/{up}"].values()
    assert operation["operationId"] == "made_up"
    accepted = operation["responses"]["202"]["content"]
    assert set(accepted) == {"application/json", "text/event-stream"}
    assert [one["$ref"].rpartition("/")[2] for one in accepted["application/json"]["schema"]["anyOf"]] == [
        "Health",
        "Balance",
    ]
    assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("Estimate")
