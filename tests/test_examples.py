"""The examples of the API: what a real gateway gives today, valid by the schemas, for every operation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from docs import examples
from penstock.api.openapi.document import build_document
from penstock.api.routes import ROUTES

DOCUMENT = build_document(ROUTES)
# Made for people and for providers: their requests have no parts of their own, or their responses are no JSON.
WITHOUT_EXAMPLE = {"page", "page_part", "llms_full_txt", "receive_callback", "download_file"}
# The built-in models take no video.
WITHOUT_EXAMPLE |= {"edit_video", "extend_video", "remix_video"}
# Batches wait while examples are made, so there is no pair.
WITHOUT_EXAMPLE |= {"vote_page", "add_vote", "download_shown"}
# They need an issuer with which people sign in.
WITHOUT_EXAMPLE |= {
    "move_session",
    "sign_out",
    "change_user",
    "invite",
    "list_own_keys",
    "make_own_key",
    "revoke_own_key",
}
RUN_AGAIN = "run `python -m docs.examples` and look at what has changed"


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            yield operation["operationId"], operation


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Each body of a call and of a response that is JSON: where it is, its schema, its example or None."""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        if kind == "application/json":
            yield "body", content["schema"], content.get("example")
    for status, response in operation["responses"].items():
        if content := response.get("content", {}).get("application/json"):
            yield status, content["schema"], content.get("example")


def test_every_operation_has_examples_that_fit_its_schemas() -> None:
    components = {"components": DOCUMENT["components"]}
    problems = []
    for name, operation in operations():
        if name in WITHOUT_EXAMPLE:
            continue
        for place, schema, example in contents(operation):
            if example is None and not (name == "openapi_document" and place == "200") and has_json_body(name, place):
                problems.append(f"{name}, {place}: no example; {RUN_AGAIN}")
            if example is not None:
                validator = jsonschema_rs.Draft202012Validator({**schema, **components}, validate_formats=True)
                problems += [f"{name}, {place}: {error.message}" for error in validator.iter_errors(example)]
    assert problems == []


def has_json_body(name: str, place: str) -> bool:
    """Whether an example is due there: edits and videos are sent as a form in their examples."""
    return not (name == "edit_images" and place == "body") and not (name == "cancel_video" and place == "200")


@pytest.mark.timeout(180)
async def test_the_examples_are_what_a_gateway_gives(tmp_path: Path) -> None:
    made = await examples.make_examples(tmp_path)
    stored = json.loads(examples.FILE.read_text())
    assert made.keys() == stored.keys(), RUN_AGAIN
    assert [name for name in made if made[name] != stored[name]] == [], RUN_AGAIN
    assert examples.as_text(made) == examples.FILE.read_text(), RUN_AGAIN
