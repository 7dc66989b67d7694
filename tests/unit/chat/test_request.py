"""Every rule for a chat call, kept and broken; what is set aside for it; what the provider is told."""

from typing import Any

import jsonschema_rs  # comes with schemathesis
import pytest

from penstock.api import request_schemas
from penstock.chat import request
from penstock.chat.request import ChatRequest
from penstock.errors import InvalidRequest
from penstock.fields import CHAT
from penstock.providers import deepseek, mistral
from penstock.providers.chat_models import MAX_TOKENS, chat_operation
from penstock.providers.openai_compatible import CHAT as PLAIN
from penstock.providers.spec import Model, Param, fixed, refused
from penstock.schema import Call, Caller

HELLO = {"role": "user", "content": "hello"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "look"}}
SCHEMA = request_schemas.body(CHAT, is_form=False, is_open=True)


def said(**body: Any) -> ChatRequest:
    everything = {"model": "lab/talk", "messages": [HELLO], **body}
    return request.talk(Call(id="req_1", caller=Caller("org", "key"), endpoint="", at_ms=0, started=0, json=everything))


def refusal(**body: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        said(**body)
    return caught.value


def model(*rows: Param) -> Model:
    return Model(id="lab/talk", upstream="their-talk", op=chat_operation(*rows), prices=())


def is_described(**body: Any) -> bool:
    """Whether the published description lets this body through."""
    return jsonschema_rs.is_valid(SCHEMA, {"model": "lab/talk", "messages": [HELLO], **body})


# ------------------------------------------------------------------------------------------------------------ messages

TEXT = {"type": "text", "text": "what is this?"}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": "be brief"},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": ""},
        {"role": "user", "content": "hello", "name": "ann"},
        {"role": "user", "content": "hello", "name": None, "tool_calls": None, "tool_call_id": None},
        {"role": "user", "content": [TEXT]},
        {"role": "user", "content": [TEXT, PICTURE]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        {"role": "assistant", "content": "hello"},
        {"role": "assistant", "content": [TEXT]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "let me see", "tool_calls": [CALL]},
        {"role": "assistant", "content": "hello", "tool_calls": []},
        {"role": "tool", "content": "42", "tool_call_id": "call_1"},
    ],
)
def test_messages_of_every_kind_are_taken(message: dict[str, Any]) -> None:
    assert said(messages=[message]).body["messages"] == [message]
    assert is_described(messages=[message])


@pytest.mark.parametrize(
    ("message", "field", "words"),
    [
        ("hello", "", "must be an object"),
        (None, "", "must be an object"),
        ({}, ".role", "`system`, `user`, `assistant`, `tool`"),
        ({"content": "x"}, ".role", "must be one of"),
        ({"role": "narrator", "content": "x"}, ".role", "must be one of"),
        ({"role": ["user"], "content": "x"}, ".role", "must be one of"),
        ({"role": "user"}, ".content", "a string, an array of parts, or null beside tool calls"),
        ({"role": "user", "content": None}, ".content", "must be"),
        ({"role": "user", "content": 5}, ".content", "must be"),
        ({"role": "user", "content": {"type": "text", "text": "x"}}, ".content", "must be"),
        ({"role": "assistant", "content": None}, ".content", "must be"),
        ({"role": "assistant", "content": None, "tool_calls": []}, ".content", "must be"),
        ({"role": "tool", "content": None, "tool_calls": [CALL]}, ".content", "must be"),
        ({"role": "assistant", "tool_calls": "x"}, ".tool_calls", "an array of objects, in assistant messages only"),
        ({"role": "assistant", "tool_calls": ["x"]}, ".tool_calls", "an array of objects"),
        ({"role": "assistant", "content": "x", "tool_calls": {}}, ".tool_calls", "an array of objects"),
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, ".tool_calls", "in assistant messages only"),
        ({"role": "user", "content": "x", "tool_call_id": "call_1"}, ".tool_call_id", "in tool messages only"),
        ({"role": "tool", "content": "x", "tool_call_id": 1}, ".tool_call_id", "must be a string"),
        ({"role": "user", "content": "x", "name": 1}, ".name", "must be a string"),
        ({"role": "user", "content": ["x"]}, ".content[0].type", "must be `text` or `image_url`"),
        ({"role": "user", "content": [TEXT, {"type": "audio"}]}, ".content[1].type", "must be `text` or `image_url`"),
        ({"role": "user", "content": [{"type": "text"}]}, ".content[0].text", "must be a string"),
        ({"role": "user", "content": [{"type": "image_url"}]}, ".content[0].image_url.url", "an HTTPS address"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]},
            ".content[0].image_url.url",
            "an HTTPS address or a base64 data URI",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]},
            ".content[0].image_url.url",
            "an HTTPS address",
        ),
    ],
)
def test_messages_that_break_a_rule_are_named(message: Any, field: str, words: str) -> None:
    problem = refusal(messages=[HELLO, message])
    assert problem.param == f"messages[1]{field}"
    assert f"`messages[1]{field}`" in problem.message
    assert words in problem.message
    assert not is_described(messages=[HELLO, message])


def test_a_conversation_has_a_message() -> None:
    assert refusal(messages=[]).message == "`messages` must have at least one message."
    assert not is_described(messages=[])


# ---------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    "field",
    [
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": {}},
        {"temperature": 0},
        {"temperature": 2},
        {"max_tokens": 1},
        {"max_completion_tokens": 1},
        {"top_p": 0.5},
        {"frequency_penalty": -2, "presence_penalty": 2.0},
        {"stop": "end"},
        {"stop": ["a", "b", "c", "d"]},
        {"tools": [TOOL]},
        {"tools": [{**TOOL, "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}]},
        {"tools": [{**TOOL, "function": {"name": "look", "description": None, "parameters": None}}]},
        {"tools": [TOOL], "tool_choice": "none"},
        {"tools": [TOOL], "tool_choice": "auto"},
        {"tools": [TOOL], "tool_choice": "required"},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"response_format": {"type": "json_object"}},
        {"seed": -7},
        {"user": "u1", "session_id": "s1"},
        {"logprobs": True, "top_logprobs": 0},
        {"logprobs": True, "top_logprobs": 20},
        {"n": 2},
        dict.fromkeys(set(CHAT) - {"model", "messages"}),
        {"reasoning_effort": "low"},
    ],
)
def test_what_the_table_allows_is_taken(field: dict[str, Any]) -> None:
    assert said(**field).body.items() >= field.items()
    assert is_described(**field)


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"model": None}, "model", "is required"),
        ({"model": 5}, "model", "must be a string"),
        ({"model": " "}, "model", "must not be empty"),
        ({"messages": None}, "messages", "is required"),
        ({"messages": "hello"}, "messages", "must be an array"),
        ({"stream": "yes"}, "stream", "must be a boolean"),
        ({"temperature": -0.1}, "temperature", "from 0 to 2"),
        ({"temperature": 2.1}, "temperature", "from 0 to 2"),
        ({"temperature": "1"}, "temperature", "must be a number"),
        ({"temperature": True}, "temperature", "must be a number"),
        ({"max_tokens": 0}, "max_tokens", "at least 1"),
        ({"max_tokens": 1.5}, "max_tokens", "must be an integer"),
        ({"max_completion_tokens": 0}, "max_completion_tokens", "at least 1"),
        ({"max_completion_tokens": -5}, "max_completion_tokens", "at least 1"),
        ({"max_completion_tokens": "9"}, "max_completion_tokens", "must be an integer"),
        ({"n": 0}, "n", "from 1 to 128"),
        ({"n": "3"}, "n", "must be an integer"),
        ({"top_p": 1.1}, "top_p", "from 0 to 1"),
        ({"frequency_penalty": 2.1}, "frequency_penalty", "from -2 to 2"),
        ({"presence_penalty": -2.1}, "presence_penalty", "from -2 to 2"),
        ({"stop": []}, "stop", "1 to 4 strings"),
        ({"stop": ["a"] * 5}, "stop", "1 to 4 strings"),
        ({"stop": ["a", 1]}, "stop", "1 to 4 strings"),
        ({"stop": 1}, "stop", "must be a string or an array"),
        ({"tools": TOOL}, "tools", "must be an array"),
        ({"tools": [TOOL, "look"]}, "tools[1]", "`type` `function`"),
        ({"tools": [{**TOOL, "type": "retrieval"}]}, "tools[0]", "`type` `function`"),
        ({"tools": [{"type": "function"}]}, "tools[0]", "a `function`"),
        ({"tools": [{**TOOL, "function": {}}]}, "tools[0].function.name", "is required"),
        ({"tools": [{**TOOL, "function": {"name": ""}}]}, "tools[0].function.name", "is required"),
        (
            {"tools": [{**TOOL, "function": {"name": "look", "description": 1}}]},
            "tools[0].function.description",
            "must be a string",
        ),
        (
            {"tools": [{**TOOL, "function": {"name": "look", "parameters": []}}]},
            "tools[0].function.parameters",
            "a JSON Schema object",
        ),
        ({"tool_choice": "maybe"}, "tool_choice", "`none`, `auto`, `required`"),
        ({"tool_choice": {"type": "function"}}, "tool_choice", "a function's `name`"),
        ({"tool_choice": {"type": "tool", "function": {"name": "look"}}}, "tool_choice", "`type` `function`"),
        ({"response_format": "json"}, "response_format", "must be an object"),
        ({"response_format": {}}, "response_format", "`json_object`"),
        ({"seed": 1.5}, "seed", "must be an integer"),
        ({"user": 1}, "user", "must be a string"),
        ({"logprobs": 1}, "logprobs", "must be a boolean"),
        ({"top_logprobs": 3}, "top_logprobs", "needs `logprobs` to be true"),
        ({"top_logprobs": 3, "logprobs": False}, "top_logprobs", "needs `logprobs` to be true"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", "from 0 to 20"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "needs `stream` to be true"),
        ({"stream": True, "stream_options": True}, "stream_options", "must be an object"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", "a boolean"),
    ],
)
def test_what_the_table_forbids_is_named(body: dict[str, Any], param: str, words: str) -> None:
    problem = refusal(**body)
    assert problem.param == param
    assert f"`{param}`" in problem.message
    assert words in problem.message


def test_a_body_is_an_object() -> None:
    with pytest.raises(InvalidRequest, match="must be a JSON object"):
        request.talk(Call(id="req_1", caller=Caller("org", "key"), endpoint="", at_ms=0, started=0, json=[HELLO]))


# ------------------------------------------------------------------------------------------------------------ ceilings


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, 4096),
        ({"max_tokens": 10}, 10),
        ({"max_completion_tokens": 20}, 20),
        ({"max_tokens": 1, "max_completion_tokens": 900}, 900),
        ({"n": 3}, 3 * 4096),
        ({"n": 3, "max_tokens": 10}, 30),
    ],
)
def test_money_is_set_aside_for_all_that_may_be_written(body: dict[str, Any], tokens: int) -> None:
    assert said(**body).output_tokens(4096) == tokens


LONG = "wörter " * 1000


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": LONG}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": LONG}]}]},
        {"messages": [HELLO, {"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": LONG}}]}]},
        {"tools": [{"type": "function", "function": {"name": "look", "description": LONG}}]},
    ],
)
def test_everything_that_is_read_counts_by_its_bytes(body: dict[str, Any]) -> None:
    more = said(**body).input_ceiling - said().input_ceiling
    assert more >= len(LONG.encode()) // 2 - len("hello")


def test_pictures_count_and_make_it_vision() -> None:
    plain, seen = said(), said(messages=[{"role": "user", "content": [TEXT, PICTURE, PICTURE]}])
    assert (plain.has_images, seen.has_images) == (False, True)
    assert seen.input_ceiling - plain.input_ceiling >= 6000


# ------------------------------------------------------------------------------------------------- what a model is told


def test_a_body_is_handed_on_under_the_models_own_name() -> None:
    told = request.told(said(temperature=0.5, session_id="s1", top_k=3), model())
    assert told == {"model": "their-talk", "messages": [HELLO], "temperature": 0.5, "top_k": 3}


@pytest.mark.parametrize("wants", [True, False])
def test_streams_always_report_what_they_used(wants: bool) -> None:
    spoken = said(stream=True, stream_options={"include_usage": wants, "other": 1})
    assert spoken.wants_usage is wants
    assert request.told(spoken, model())["stream_options"] == {"include_usage": True, "other": 1}


def test_a_models_own_words() -> None:
    rows = (MAX_TOKENS, fixed("safe", True), *(Param(name="user", handling="renamed", to=("who.id",)),))
    told = request.told(said(max_completion_tokens=7, user="u1", who={"kind": "person"}), model(*rows))
    assert (told["max_tokens"], told["safe"], told["who"]) == (7, True, {"kind": "person", "id": "u1"})
    assert {"max_completion_tokens", "user"}.isdisjoint(told)


def test_what_a_model_cannot_do_is_said_before_it_is_asked() -> None:
    without = model(*refused("logprobs", "temperature"))
    with pytest.raises(InvalidRequest, match="`logprobs` is not supported by lab/talk"):
        request.check(said(logprobs=True), without)
    request.check(said(logprobs=False, temperature=1), without)  # the defaults ask for nothing
    with pytest.raises(InvalidRequest, match="cannot be passed through"):
        request.check(said(base_url="https://elsewhere.example"), without)


@pytest.mark.parametrize("provider", [deepseek.PROVIDER, mistral.PROVIDER], ids=lambda one: one.slug)
def test_developers_are_the_system_elsewhere(provider: Any) -> None:
    spoken = said(messages=[{"role": "developer", "content": "be brief"}, HELLO])
    told = request.told(spoken, provider.models[0])
    assert [message["role"] for message in told["messages"]] == ["system", "user"]
    assert (
        request.told(spoken, Model(id="x", upstream="x", op=PLAIN, prices=()))["messages"] is (spoken.body["messages"])
    )
