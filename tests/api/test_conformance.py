"""Schemathesis against a served gateway: every response matches the OpenAPI document."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests  # comes with schemathesis
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.schemas import BaseSchema

from penstock.api.openapi.document import build_document, plain_path
from penstock.api.route import Route
from penstock.api.routes import ROUTES

ROOT = Path(__file__).parents[2]
# `make test` tries what follows from the schema alone, such as each limit, each type and each field that is left out,
# and the same each time: a change must fail for itself only. `PENSTOCK_CASES=200` adds random cases, for a release.
CASES = int(os.environ.get("PENSTOCK_CASES", "0"))
MODES = list(HypothesisTestMode) if CASES else [HypothesisTestMode.COVERAGE]
# Rules that a schema has no words for: one field about another, what an address leads to, what a model can do.
BEYOND_SCHEMA = {
    "ending_before", "size", "aspect_ratio", "resolution", "image", "mask", "input_reference", "webhook_url", "name",
    "media_retention", "duration", "seconds", "thinking", "thinking_level", "top_logprobs", "stream_options", "prompt",
    "metadata", "bucket", "created_before", "limit", "summary", "starting_after", "url", "input",
    "tool_choice", "group_by", "declared_labels", "label.customer", "labels", "alert_percents", "month", "credential",
    "provider", "models", "file", "requests", "endpoint", "defaults", "custom_id", "model",
    "video", "previous_job_id", "callback_url", "trace", "provider.options",
    "file_url", "input_audio", "timestamp_granularities", "include", "stream", "keywords",
    "languages", "down", "slow", "dearer", "path", "region", "access_key_id", "secret_access_key",
    "deliver_to", "deliver_to.path", "deliver_required", "alias", "voter", "prompts", "recent", "recent.limit",
    "recent.model",
}  # fmt: skip
# What is configured on this gateway; what a text in a form must be; and to JSON Schema, 2.0 is an integer.
BEYOND_WORDS = (
    "NUL character", "out of range", "was sent twice", "his recording", "not a recording", "an integer",
    "The setting `alert_url` is empty", "which this gateway does not know", "written as JSON",
    "`model` is required", "has no table `oidc`", "Only the session of a person",
    "another name than its model", "what an earlier response gave",
)  # fmt: skip
PART_OF_A_MESSAGE = re.compile(r"messages\[\d+\]\.content\[\d+\]\.(?!(type|text)$).+")
LONG = 2000
GENERATIONS = {row.path for row in ROUTES if row.generation}


class Client(NamedTuple):
    url: str
    key: str
    session: requests.Session


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


def without_patterns_of_long_texts(node: Any) -> Any:
    """Leave out patterns beside great lengths: Schemathesis makes one expression of both and needs seconds for each."""
    if isinstance(node, dict):
        left_out = {"pattern"} if node.get("maxLength", 0) > LONG else set()
        return {name: without_patterns_of_long_texts(value) for name, value in node.items() if name not in left_out}
    return [without_patterns_of_long_texts(value) for value in node] if isinstance(node, list) else node


@cache
def schema() -> BaseSchema:
    document = build_document(ROUTES)
    document["paths"] = without_patterns_of_long_texts(without_examples(document["paths"]))
    return schemathesis.openapi.from_dict(without_security(document))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("gateway")
    command = [sys.executable, "-m", "tests.api.process", str(folder), "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port, key = process.stdout.readline().split()
        with requests.Session() as session:
            session.headers.clear()  # a case has its own
            session.trust_env = False  # or each request looks for proxies
            yield Client(f"http://127.0.0.1:{port}", key, session)
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


@settings(max_examples=max(CASES, 1), derandomize=not CASES, deadline=None, suppress_health_check=list(HealthCheck))
def check(case: Case[Any], client: Client) -> None:
    if case.operation.path in GENERATIONS:
        case.query = {**(case.query or {}), "dryRun": case.query.get("dryRun", True) if case.query else True}
    headers = {"Authorization": f"Bearer {client.key}"}
    response = case.call(base_url=client.url, session=client.session, headers=headers)
    excluded = [positive_data_acceptance] if response.status_code == 400 and is_beyond(response.json()) else []
    form = case.body if case.media_type == "multipart/form-data" and isinstance(case.body, dict) else {}
    # An empty value counts as left out, for which a schema has no word; in a form, null is sent as one.
    if "" in (case.query or {}).values() or None in form.values():
        excluded.append(negative_data_rejection)
    case.validate_response(response, headers=headers, excluded_checks=excluded)
    assert response.headers["x-request-id"][0].startswith("req_")


@pytest.mark.slow
@pytest.mark.sweep(1)  # with random cases for each
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_response_matches_the_openapi_document(route: Route, client: Client) -> None:
    """The cases are made here: `schema().parametrize()` makes all of them while tests are collected, in each worker."""
    operation = schema()[plain_path(route)][route.method]
    config = HypothesisTestConfig(project=schema().config, modes=MODES)
    create_test(operation=operation, test_func=check, config=config)(client=client)
