"""Schemathesis against a served gateway: every response matches the OpenAPI document."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import negative_data_rejection, positive_data_acceptance

from penstock.api import openapi
from penstock.api.routes import ROUTES

ROOT = Path(__file__).parents[2]
# `PENSTOCK_CASES=200` before a release tries new cases each time. A pull request has less time, and tries the same ones
# each time: it must fail for its own changes only.
CASES = int(os.environ.get("PENSTOCK_CASES", "10"))
REPEATS = "PENSTOCK_CASES" not in os.environ
# Rules that a schema has no words for: one field about another, what an address leads to, what a model can do.
BEYOND_SCHEMA = {
    "ending_before", "size", "aspect_ratio", "resolution", "image", "mask", "input_reference", "webhook_url", "name",
    "media_retention", "duration", "seconds", "thinking", "thinking_level", "top_logprobs", "stream_options", "prompt",
    "metadata", "bucket", "created_before", "limit", "summary", "starting_after", "url", "input",
}  # fmt: skip
# What is configured on this gateway; what a text in a form must be; and to JSON Schema, 2.0 is an integer.
BEYOND_WORDS = (
    "NUL character", "out of range", "was sent twice", "his recording", "not a recording", "an integer",
    "The setting `alert_url` is empty", "which this gateway does not know", "written as JSON",
)  # fmt: skip
PART_OF_A_MESSAGE = re.compile(r"messages\[\d+\]\.content\[\d+\]\.(?!(type|text)$).+")
GENERATIONS = {row.path for row in ROUTES if row.generation}


class Address(NamedTuple):
    url: str
    key: str


def without_security(document: dict[str, Any]) -> dict[str, Any]:
    """Send a valid key with every call; authentication has its own tests."""
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["security"] = []
    return document


def without_examples(node: Any) -> Any:
    """Leave out examples: they are tested on their own, and their ids are of another gateway."""
    if isinstance(node, dict):
        return {name: without_examples(value) for name, value in node.items() if name != "example"}
    return [without_examples(value) for value in node] if isinstance(node, list) else node


DOCUMENT = openapi.document(ROUTES)
DOCUMENT["paths"] = without_examples(DOCUMENT["paths"])
SCHEMA = schemathesis.openapi.from_dict(without_security(DOCUMENT))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("gateway")
    command = [sys.executable, "-m", "tests.api.process", str(folder), "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port, key = process.stdout.readline().split()
        yield Address(f"http://127.0.0.1:{port}", key)
        process.terminate()
        process.stdout.read()
        assert process.wait(30) == 0


def is_beyond(body: Any) -> bool:
    message, param = body["error"]["message"], body["error"].get("param", "")
    # Replay's headers depend on each other.
    is_replay = param.lower().startswith("x-service-replay")
    # Of messages, the document describes everything but which URLs are reached and which names of fields mean a file;
    # the items of `input` it does not describe.
    is_inside_a_conversation = bool(PART_OF_A_MESSAGE.fullmatch(param)) or param.startswith("input[")
    is_about_providers = param.startswith("provider.")  # whose names the gateway knows, and which the model decides
    is_listed = param in BEYOND_SCHEMA or any(words in message for words in BEYOND_WORDS)
    return is_replay or is_inside_a_conversation or is_about_providers or is_listed


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=CASES, derandomize=REPEATS, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_response_matches_the_openapi_document(case: Case[Any], address: Address) -> None:
    if case.operation.path in GENERATIONS:
        case.query = {**(case.query or {}), "dryRun": case.query.get("dryRun", True) if case.query else True}
    headers = {"Authorization": f"Bearer {address.key}"}
    response = case.call(base_url=address.url, headers=headers)
    excluded = [positive_data_acceptance] if response.status_code == 400 and is_beyond(response.json()) else []
    if "" in (case.query or {}).values():  # an empty value counts as left out, for which a schema has no word
        excluded.append(negative_data_rejection)
    case.validate_response(response, headers=headers, excluded_checks=excluded)
    assert response.headers["x-request-id"][0].startswith("req_")
