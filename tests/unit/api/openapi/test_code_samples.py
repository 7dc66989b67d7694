"""Calls as curl commands that a shell reads as they are meant."""

import shlex
from collections.abc import Mapping

from penstock.api.openapi.code_samples import curl
from penstock.api.route import Route
from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def endpoint(gateway: Gateway, call: Call) -> Response:
    return Response()


def words(route: Route, example: Mapping[str, object]) -> list[str]:
    return shlex.split(curl(route, example).replace("\\\n", " "))


def test_a_body_is_one_word_whatever_it_contains() -> None:
    example: dict[str, object] = {"json": {"prompt": 'it\'s a "fox"'}, "query": {"dryRun": "true"}}
    example["headers"] = {"Prefer": "respond-async"}
    assert words(Route("POST", "/images", endpoint, "Make"), example) == [
        "curl", "$PENSTOCK_URL/images?dryRun=true", "-H", "Authorization: Bearer $PENSTOCK_KEY",
        "-H", "Prefer: respond-async", "-H", "Content-Type: application/json", "-d", '{"prompt": "it\'s a \\"fox\\""}',
    ]  # fmt: skip


def test_a_form_has_one_option_for_each_field() -> None:
    example = {"form": {"prompt": "make it night", "image": "@image.png"}}
    assert words(Route("POST", "/edits", endpoint, "Edit"), example)[-4:] == [
        "-F", "prompt=make it night", "-F", "image=@image.png",
    ]  # fmt: skip


def test_other_methods_are_named_and_paths_filled() -> None:
    delete = Route("DELETE", "/models/{model:path}", endpoint, "Delete", access="open")
    assert words(delete, {"path": {"model": "a/b"}}) == ["curl", "-X", "DELETE", "$PENSTOCK_URL/models/a/b"]
    redeliver = Route("POST", "/messages/redeliver", endpoint, "Again", access="open")
    assert words(redeliver, {}) == ["curl", "-X", "POST", "$PENSTOCK_URL/messages/redeliver"]
