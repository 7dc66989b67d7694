"""The schemas about the library accept the example responses, and nothing besides."""

import json
from importlib.resources import files
from typing import Any

import jsonschema_rs

from penstock.api.openapi.account_schemas import ACCOUNT_SCHEMAS
from penstock.api.openapi.library_schemas import LIBRARY_SCHEMAS


def is_valid(name: str, value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(LIBRARY_SCHEMAS[name]).is_valid(value)


def test_an_output_and_its_shared_url_have_their_shapes() -> None:
    examples = json.loads((files("penstock.api.openapi") / "examples.json").read_text())
    output = examples["retrieve_output"]["responses"]["200"]
    assert is_valid("Output", output)
    assert not is_valid("Output", {**output, "more": 1})
    assert is_valid("OutputShare", examples["share_output"]["responses"]["200"])
    assert LIBRARY_SCHEMAS.items() <= ACCOUNT_SCHEMAS.items()
