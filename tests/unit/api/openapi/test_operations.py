"""Every operation of the OpenAPI document has a group, a description and a command."""

from penstock.api.openapi.document import build_document
from penstock.api.openapi.operations import OPERATIONS, TAGS
from penstock.api.routes import ROUTES


def test_every_operation_has_a_group_a_description_and_a_command() -> None:
    assert {operation.tag for operation in OPERATIONS.values()} == TAGS.keys()
    for methods in build_document(ROUTES)["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            assert name in OPERATIONS, f"describe `{name}` in src/penstock/api/openapi/operations.py"
            assert operation["tags"] == [OPERATIONS[name].tag]
            assert operation["description"].endswith("."), name
            assert operation["x-codeSamples"][0]["source"].startswith("curl "), name
            assert all(parameter["description"] for parameter in operation["parameters"]), name
