"""Chat with OpenAI's client for Python, against the real server."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import openai
import pytest
from openai.types.chat import (
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
    ChatCompletionToolParam,
)
from pydantic import BaseModel

from tests.fake_providers.scripted import ScriptedProvider
from tests.gateway import sqlite_only
from tests.stories.processes import Installation, Serving

ECHO = "atelier/echo"
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}


class Plan(BaseModel):
    """The structured output that a model is asked for."""

    city: str
    days: int


@pytest.fixture
def client(served: Serving) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=30) as client:
        yield client


def messages(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def test_every_kind_of_response(shared_client: openai.OpenAI) -> None:
    whole = shared_client.chat.completions.create(
        model=ECHO, messages=messages("one two"), logprobs=True, top_logprobs=2
    )
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("one two", "stop")
    assert whole.choices[0].logprobs is not None
    assert [len(token.top_logprobs) for token in whole.choices[0].logprobs.content or ()] == [2, 2]
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

    cut = shared_client.chat.completions.create(model=ECHO, messages=messages("one two three"), max_tokens=2)
    assert (cut.choices[0].message.content, cut.choices[0].finish_reason) == ("one two", "length")

    form = shared_client.chat.completions.create(
        model=ECHO, messages=messages("pear"), response_format={"type": "json_object"}, seed=7, stop=["!"]
    )
    assert json.loads(form.choices[0].message.content or "") == {"echo": "pear"}
    parsed = shared_client.chat.completions.parse(model=ECHO, messages=messages("a plan"), response_format=Plan)
    assert parsed.choices[0].message.parsed == Plan(city="echo", days=1)

    vision = shared_client.chat.completions.create(
        model=ECHO,
        messages=[{"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        ]}],
    )  # fmt: skip
    assert vision.choices[0].message.content == "look [image]"


def test_a_tool_is_called_and_its_result_used(shared_client: openai.OpenAI) -> None:
    conversation = messages("weather in Lima")
    asked = shared_client.chat.completions.create(model=ECHO, messages=conversation, tools=[WEATHER])
    assert asked.choices[0].finish_reason == "tool_calls"
    assert asked.choices[0].message.tool_calls is not None
    (call,) = asked.choices[0].message.tool_calls
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "echo", "days": 1})
    conversation += [
        {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    answered = shared_client.chat.completions.create(model=ECHO, messages=conversation, tools=[WEATHER])
    assert answered.choices[0].message.content == "sunny"

    with shared_client.chat.completions.stream(model=ECHO, messages=messages("weather?"), tools=[WEATHER]) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed is not None
    assert streamed[0].type == "function"
    assert json.loads(streamed[0].function.arguments) == {"city": "echo", "days": 1}


def test_a_stream_with_and_without_usage(shared_client: openai.OpenAI) -> None:
    chunks = list(
        shared_client.chat.completions.create(
            model=ECHO, messages=messages("one two three"), stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two three"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert (chunks[-1].choices, chunks[-1].usage is not None) == ([], True)
    without_usage = list(shared_client.chat.completions.create(model=ECHO, messages=messages("one"), stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in without_usage)


def test_the_cost_of_whole_and_streamed_responses(
    served: Serving, client: openai.OpenAI, lab: ScriptedProvider
) -> None:
    """Each is in the request records at once and costs what the provider bills."""
    raw = client.chat.completions.with_raw_response.create(model="lab/chat", messages=messages("one two three"))
    assert raw.parse().choices[0].message.content
    assert raw.headers["content-type"] == "application/json"
    with client.chat.completions.with_streaming_response.create(
        model="lab/chat", messages=messages("four five"), stream=True
    ) as streamed:
        lines = [line for line in streamed.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    records = [
        served.call("GET", f"/v1/requests/{response.headers['x-request-id']}").json for response in (raw, streamed)
    ]
    assert [record["status"] for record in records] == ["completed", "completed"]
    spent = sum(Decimal(str(record["cost"])) for record in records)
    assert spent == lab.bill_usd
    assert Decimal(str(served.call("GET", "/v1/balance").json["available"]["amount"])) == 10 - spent
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="lab/chat", messages=[{"role": "user", "content": 7}])
    assert refused.value.param == "messages[0].content"


async def chat_until_killed(served: Serving, enough: int) -> Counter[str]:
    """Make calls in twelve parallel loops, kill the server after `enough` responses, and count the outcomes."""
    outcomes: Counter[str] = Counter()

    async def repeat(client: openai.AsyncOpenAI) -> None:
        while served.process.poll() is None:
            try:
                await client.chat.completions.create(model="lab/chat", messages=messages("one two three"))
            except openai.APIConnectionError:
                outcomes["cut off"] += 1
            else:
                outcomes["answered"] += 1
            if outcomes["answered"] >= enough and served.process.poll() is None:
                served.process.kill()

    async with openai.AsyncOpenAI(base_url=served.base_url, api_key=served.key, max_retries=0) as client:
        await asyncio.gather(*(repeat(client) for _ in range(12)))
    return outcomes


@sqlite_only
def test_a_crash_loses_record_and_charge_together(story: Installation, lab: ScriptedProvider) -> None:
    """After the server was killed, every recorded call is charged and every charge is recorded."""
    with story.serving() as served:
        outcomes = asyncio.run(chat_until_killed(served, 60))
        served.process.wait()
    assert outcomes["answered"] >= 60
    with story.serving() as served:
        summary = served.call("GET", "/v1/requests?summary=true&status=completed").json["summary"]
        left = Decimal(str(served.call("GET", "/v1/balance").json["available"]["amount"]))
        assert 0 < summary["count"] <= len(lab.invoice)
        assert 10 - left == Decimal(str(summary["total_cost"]))
        cost_of_one = lab.bill_usd / len(lab.invoice)
        assert Decimal(str(summary["total_cost"])) == cost_of_one * summary["count"]
    assert story.penstock("audit").status == 0
