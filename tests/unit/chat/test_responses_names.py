"""Errors about a call of the Responses API name the caller's own fields."""

from typing import Any

import msgspec
import pytest

from penstock.chat.request import read_chat_request
from penstock.chat.responses_names import use_callers_names
from penstock.chat.responses_request import ResponsesRequest, read_responses_request
from penstock.errors import InvalidRequest
from penstock.schema import Call, Caller
from penstock.settings import Settings
from penstock.values import OrgId
from tests.api.http_calls import served_api
from tests.gateway import OpenGateway, sqlite_only

BAD_IMAGE = {"type": "input_image", "image_url": "http://plain.test/x.png"}
CALL: Any = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


def refusal(**body: Any) -> InvalidRequest:
    """What the chat call that a body becomes is refused with, in the caller's words."""
    call = Call(
        id="req_1",
        caller=Caller(OrgId("org_1"), "key_1"),
        endpoint="/",
        at_ms=0,
        started=0.0,
        json={"model": "m", "input": "hi", **body},
    )
    request = read_responses_request(call)
    with pytest.raises(InvalidRequest) as raised:
        read_chat_request(msgspec.structs.replace(call, json=request.chat), Settings())
    use_callers_names(raised.value, request)
    return raised.value


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": [{"role": "user", "content": [BAD_IMAGE]}]}, "input[0].content[0].image_url"),
        (
            {
                "instructions": "x",
                "input": [{"role": "user", "content": "a"}, {"role": "user", "content": [BAD_IMAGE]}],
            },
            "input[1].content[0].image_url",
        ),
        (
            {"input": [CALL, {"type": "function_call_output", "call_id": "c", "output": [BAD_IMAGE]}]},
            "input[1].output[0].image_url",
        ),
        ({"tools": [{"type": "function", "name": "f", "parameters": 7}]}, "tools[0].parameters"),
        ({"tools": [{"type": "function", "name": ""}]}, "tools[0].name"),
    ],
)
def test_the_field_is_the_callers(body: dict[str, Any], param: str) -> None:
    problem = refusal(**body)
    assert problem.param == param
    assert f"`{param}`" in problem.message
    assert "messages" not in problem.message


@pytest.mark.parametrize(
    ("chat", "original"),
    [
        ("messages", "input"),
        ("max_tokens", "max_output_tokens"),
        ("reasoning_effort", "reasoning.effort"),
        ("verbosity", "text.verbosity"),
        ("response_format", "text.format"),
        ("response_format.json_schema.schema", "text.format.schema"),
        ("model", "model"),
        ("messages[9].content", "messages[9].content"),
    ],
)
def test_names_are_translated_back(chat: str, original: str) -> None:
    problem = InvalidRequest(f"`{chat}` is wrong, and max_tokens is text.", param=chat)
    use_callers_names(problem, ResponsesRequest({"user": "u"}, {}, None))
    assert (problem.param, problem.message) == (original, f"`{original}` is wrong, and max_tokens is text.")


@sqlite_only
async def test_over_http(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, disabled_providers=()) as api:
        body = {"model": "atelier/echo", "input": [{"role": "user", "content": [BAD_IMAGE]}]}
        error = (await api.call("POST", "/compat/v1/responses", body)).json["error"]
        assert error["param"] == "input[0].content[0].image_url"


def test_the_user_is_named_as_the_caller_named_it() -> None:
    for body, name in (({"safety_identifier": "x"}, "safety_identifier"), ({"user": "x"}, "user")):
        problem = InvalidRequest("`user` is too long.", param="user")
        use_callers_names(problem, ResponsesRequest(body, {}, None))
        assert (problem.param, problem.message) == (name, f"`{name}` is too long.")
