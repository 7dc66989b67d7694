"""The checks of the messages of a chat call."""

from typing import Any

import msgspec
import pytest

from penstock.chat.messages import ChatImage
from penstock.chat.provider_body import provider_body
from tests.unit.chat.small_request import CALL, HELLO, IMAGE, TEXT, chat_request, error_for, is_described, model
from tests.unit.net.forbidden_urls import FORBIDDEN

VALID_MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": ""},
    {"role": "user", "content": "hello", "name": "ann"},
    {"role": "user", "content": "hello", "name": None, "tool_calls": None, "tool_call_id": None},
    {"role": "user", "content": [TEXT]},
    {"role": "user", "content": [TEXT, IMAGE]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
    {"role": "assistant", "content": "hello"},
    {"role": "assistant", "content": [TEXT]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "assistant", "content": "let me see", "tool_calls": [CALL]},
    {"role": "assistant", "content": "hello", "tool_calls": []},
    {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
    {"role": "tool", "content": "42", "tool_call_id": "call_1"},
]


def test_valid_messages_are_accepted() -> None:
    for message in VALID_MESSAGES:
        assert chat_request(messages=[message]).body["messages"] == [message], message
    assert [message for message in VALID_MESSAGES if not is_described(messages=[message])] == []


@pytest.mark.parametrize(
    ("response", "sent"),
    [
        ({"content": None, "refusal": "I cannot"}, "I cannot"),
        ({"content": None, "refusal": None}, ""),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": None, "tool_calls": []}, ""),
        ({"content": [TEXT, {"type": "refusal", "refusal": "no"}]}, [TEXT, {"type": "text", "text": "no"}]),
    ],
)
def test_a_response_without_text_can_be_sent_back(response: dict[str, Any], sent: Any) -> None:
    """The gateway answers with such messages. Providers that know no refusals get theirs as the text."""
    messages = [HELLO, {"role": "assistant", **response}, HELLO]
    request = chat_request(messages=messages)
    assert request.body["messages"][1] == {
        **{name: value for name, value in messages[1].items() if name != "refusal"},
        "content": sent,
    }
    assert messages[1] == {"role": "assistant", **response}, "the caller's own is not changed"
    assert is_described(messages=messages)


INVALID_MESSAGES: list[tuple[Any, str, str]] = [
    ("hello", "", "must be an object"),
    (None, "", "must be an object"),
    ({}, ".role", "`system`, `user`, `assistant`, `tool`"),
    ({"content": "x"}, ".role", "must be one of"),
    ({"role": "narrator", "content": "x"}, ".role", "must be one of"),
    ({"role": ["user"], "content": "x"}, ".role", "must be one of"),
    ({"role": "user"}, ".content", "a string or an array of parts, or null in assistant messages"),
    ({"role": "user", "content": None}, ".content", "must be"),
    ({"role": "user", "content": 5}, ".content", "must be"),
    ({"role": "user", "content": {"type": "text", "text": "x"}}, ".content", "must be"),
    ({"role": "assistant", "content": 5}, ".content", "must be"),
    ({"role": "assistant", "content": [{"type": "refusal"}]}, ".content[0].refusal", "must be a string"),
    ({"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}, ".content[0].type", "must be `text`"),
    ({"role": "tool", "content": None, "tool_calls": [CALL]}, ".content", "must be"),
    ({"role": "assistant", "tool_calls": "x"}, ".tool_calls", "an array of objects, in assistant messages only"),
    ({"role": "assistant", "tool_calls": ["x"]}, ".tool_calls", "an array of objects"),
    ({"role": "assistant", "content": "x", "tool_calls": {}}, ".tool_calls", "an array of objects"),
    ({"role": "user", "content": "x", "tool_calls": [CALL]}, ".tool_calls", "in assistant messages only"),
    ({"role": "user", "content": "x", "tool_call_id": "call_1"}, ".tool_call_id", "in tool messages only"),
    ({"role": "tool", "content": "x", "tool_call_id": 1}, ".tool_call_id", "must be a string"),
    ({"role": "user", "content": "x", "name": 1}, ".name", "must be a string"),
    ({"role": "user", "content": ["x"]}, ".content[0].type", "must be `text`, `image_url` or"),
    ({"role": "user", "content": [TEXT, {"type": "audio"}]}, ".content[1].type", "must be `text`, `image_url` or"),
    ({"role": "user", "content": [{"type": "text"}]}, ".content[0].text", "must be a string"),
    ({"role": "user", "content": [{"type": "image_url"}]}, ".content[0].image_url.url", "an HTTPS URL"),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]},
        ".content[0].image_url.url",
        "must be an https:// URL with a public domain name",
    ),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]},
        ".content[0].image_url.url",
        "an HTTPS URL",
    ),
]


def test_an_invalid_message_is_refused_by_the_name_of_its_field() -> None:
    wrong = []
    for message, field, rule in INVALID_MESSAGES:
        problem = error_for(messages=[HELLO, message])
        param = f"messages[1]{field}"
        if problem.param != param or f"`{param}`" not in problem.message or rule not in problem.message:
            wrong.append((message, problem.message))
        if is_described(messages=[HELLO, message]):
            wrong.append((message, "the JSON Schema accepts it"))
    assert wrong == []


def image_part(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}, **fields}


def test_no_forbidden_url_of_an_image_is_accepted() -> None:
    param = "messages[1].content[1].image_url.url"
    expected = (
        f"`{param}` must be an https:// URL with a public domain name, on port 443 or 8443, or a base64 data URI.",
        param,
        400,
    )
    wrong = []
    for url in FORBIDDEN:
        if "#" not in url and not url.startswith("data:"):
            problem = error_for(messages=[HELLO, {"role": "user", "content": [TEXT, image_part(url)]}])
            wrong += [url] * ((problem.message, problem.param, problem.status) != expected)
    assert not wrong, list(map(ascii, wrong))


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://X.Example:443/a.png?b=c", "https://x.example/a.png?b=c"),
        ("https://good.example#@evil.example/", "https://good.example/"),
        ("https://bücher.example/ü.png", "https://xn--bcher-kva.example/%C3%BC.png"),
        ("http://files.internal:9000/a.png", "http://files.internal:9000/a.png"),
        ("data:image/png;base64,AAAA", "data:image/png;base64,AAAA"),
    ],
)
def test_urls_of_images_are_passed_on_in_one_form(url: str, source: str) -> None:
    messages = [HELLO, {"role": "user", "content": [TEXT, image_part(url)], "name": "ann"}]
    before = msgspec.json.encode(messages)
    request = chat_request(messages=messages)
    assert request.images == (ChatImage(1, 1, source),)
    sent = provider_body(request, model(), None)["messages"]
    assert sent == [HELLO, {"role": "user", "content": [TEXT, image_part(source)], "name": "ann"}]
    assert msgspec.json.encode(messages) == before


@pytest.mark.parametrize(
    "uri",
    [
        "data:image/svg+xml;base64,AAAA",
        "data:text/html;base64,AAAA",
        "data:image/png,AAAA",
        "data:image/png;charset=x;base64,AAAA",
        "data:,",
        "data:" + ";a" * 1_000_000,
        "data:image/png;base64," + "A" * 4008,
    ],
)
def test_data_uris_have_a_type_and_a_largest_size(uri: str) -> None:
    problem = error_for(messages=[{"role": "user", "content": [image_part(uri)]}])
    assert problem.param == "messages[0].content[0].image_url.url"
    assert "PNG, JPEG" in problem.message or "at most 3000 bytes" in problem.message


def test_a_data_uri_of_the_largest_size_is_accepted() -> None:
    for kind in ("png", "jpeg", "jpg", "webp", "gif", "avif", "heic", "heif", "PNG"):
        chat_request(messages=[{"role": "user", "content": [image_part(f"data:image/{kind};base64," + "A" * 4000)]}])


@pytest.mark.parametrize("name", ["image_url", "video_url", "audio_url", "input_audio", "image_embeds", "file", "uuid"])
def test_a_part_has_no_files_beside_its_own(name: str) -> None:
    """vLLM fetches such URLs from a part of type `text` that has a `uuid`."""
    problem = error_for(messages=[{"role": "user", "content": [TEXT | {name: {"url": "https://x.example/"}}]}])
    assert problem.param == f"messages[0].content[0].{name}"
    cached = TEXT | {"cache_control": {"type": "ephemeral"}}
    assert chat_request(messages=[{"role": "user", "content": [cached]}]).body["messages"][0]["content"] == [cached]


def test_messages_must_not_be_empty() -> None:
    assert error_for(messages=[]).message == "`messages` must have at least one message."
    assert not is_described(messages=[])
