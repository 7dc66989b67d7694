"""What chat calls are compared by: parameters, the shape of the conversation, images, and for `exact` its words."""

import json
from typing import Any

from penstock.recordings.chat_fingerprints import chat_fingerprint
from penstock.recordings.recordings import SHOWN_REQUEST_BYTES
from penstock.schema import Fingerprint

PNG = "data:image/png;base64,iVBORw0KGgo="


def fingerprint(*messages: Any, match: str = "standard", **more: Any) -> Fingerprint:
    body = {"model": "alias", "messages": list(messages), **more}
    return chat_fingerprint("chat", "m", body, json.dumps(body).encode(), match)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_the_wording_and_names_of_people_do_not_matter_by_default() -> None:
    base = fingerprint(user("a pear"), temperature=0.5)
    for alike in (
        fingerprint(user("a fox"), temperature=0.5),
        fingerprint(user("a pear"), temperature=0.5, stream=False),
        fingerprint(user("a pear"), temperature=0.5, user="u", session_id="s", safety_identifier="x", top_p=None),
    ):
        assert alike.standard == base.standard
    for other in (
        fingerprint(user("a pear"), temperature=0.6),
        fingerprint(user("a pear"), user("a pear"), temperature=0.5),
        fingerprint(user([{"type": "text", "text": "a pear"}]), temperature=0.5),
        fingerprint({"role": "system", "content": "a pear"}, temperature=0.5),
        fingerprint(user("a pear"), temperature=0.5, stream=True),
    ):
        assert other.standard != base.standard
        assert other.exact != base.exact


def test_exact_compares_the_words_too() -> None:
    assert fingerprint(user("a pear")).exact == fingerprint(user("a pear"), user="u").exact
    assert fingerprint(user("a pear")).exact != fingerprint(user("a fox")).exact
    assert fingerprint(user("x"), match="exact").digest == fingerprint(user("x")).exact
    assert fingerprint(user("x"), match="strict").digest != fingerprint(user("x"), user="u", match="strict").digest


def test_images_are_compared_and_shown_by_their_digests() -> None:
    one = fingerprint(user([image(PNG)]))
    assert one.standard != fingerprint(user([image("https://images.test/x.png")])).standard
    assert "base64" not in json.dumps(one.values)
    assert "sha256:" in json.dumps(one.values)


def test_ids_of_calls_differ_each_time() -> None:
    def call(name: str) -> dict[str, Any]:
        made = {"id": name, "type": "function", "function": {"name": "f", "arguments": name}}
        return {"role": "assistant", "content": None, "tool_calls": [made]}

    assert fingerprint(call("a")).standard == fingerprint(call("b")).standard
    assert fingerprint(call("a")).exact != fingerprint(call("b")).exact


def test_items_of_the_responses_api() -> None:
    def read(given: Any, **more: Any) -> Fingerprint:
        return chat_fingerprint("response", "m", {"input": given, **more}, b"", "standard")

    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    other = {"type": "message", "id": "msg_2", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]}
    assert read([user("x"), said]).standard == read([user("y"), other]).standard
    assert read("x").standard == read("y").standard
    assert read("x").standard != read([user("x")]).standard
    assert read("x", instructions="be brief").standard == read("x", instructions="be kind").standard
    assert read("x", instructions="be brief").exact != read("x", instructions="be kind").exact


def test_a_very_long_conversation_is_shown_by_its_digest() -> None:
    shown = fingerprint(user("x" * SHOWN_REQUEST_BYTES), temperature=0.5).values
    assert shown["messages"].startswith("sha256:")
    assert shown["temperature"] == 0.5
