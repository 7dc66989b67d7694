"""Conversations as OpenAI's own client for Python has them, against the real server."""

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
from tests.stories.processes import Ground, Serving

ECHO = "atelier/echo"
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}


class Plan(BaseModel):
    """What a model is asked to fill in."""

    city: str
    days: int


@pytest.fixture
def client(served: Serving) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=30) as client:
        yield client


def asking(words: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": words}]


@sqlite_only
def test_every_shape(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=ECHO, messages=asking("one two"), logprobs=True, top_logprobs=2)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("one two", "stop")
    assert whole.choices[0].logprobs is not None
    assert [len(one.top_logprobs) for one in whole.choices[0].logprobs.content or ()] == [2, 2]
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

    cut = client.chat.completions.create(model=ECHO, messages=asking("one two three"), max_tokens=2)
    assert (cut.choices[0].message.content, cut.choices[0].finish_reason) == ("one two", "length")

    form = client.chat.completions.create(
        model=ECHO, messages=asking("pear"), response_format={"type": "json_object"}, seed=7, stop=["!"]
    )
    assert json.loads(form.choices[0].message.content or "") == {"echo": "pear"}
    parsed = client.chat.completions.parse(model=ECHO, messages=asking("a plan"), response_format=Plan)
    assert parsed.choices[0].message.parsed == Plan(city="echo", days=1)

    seen = client.chat.completions.create(
        model=ECHO,
        messages=[{"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        ]}],
    )  # fmt: skip
    assert seen.choices[0].message.content == "look [image]"


@sqlite_only
def test_tools_take_turns(client: openai.OpenAI) -> None:
    said = asking("weather in Lima")
    asked = client.chat.completions.create(model=ECHO, messages=said, tools=[WEATHER])
    assert asked.choices[0].finish_reason == "tool_calls"
    assert asked.choices[0].message.tool_calls is not None
    (call,) = asked.choices[0].message.tool_calls
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "echo", "days": 1})
    said += [
        {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    answered = client.chat.completions.create(model=ECHO, messages=said, tools=[WEATHER])
    assert answered.choices[0].message.content == "sunny"

    with client.chat.completions.stream(model=ECHO, messages=asking("weather?"), tools=[WEATHER]) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed is not None
    assert streamed[0].type == "function"
    assert json.loads(streamed[0].function.arguments) == {"city": "echo", "days": 1}


@sqlite_only
def test_streams(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model=ECHO, messages=asking("one two three"), stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "one two three"
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "stop"
    assert (chunks[-1].choices, chunks[-1].usage is not None) == ([], True)
    quiet = list(client.chat.completions.create(model=ECHO, messages=asking("one"), stream=True))
    assert all(one.choices and one.usage is None for one in quiet)


def test_raw_answers_and_what_they_cost(served: Serving, client: openai.OpenAI, lab: ScriptedProvider) -> None:
    """Whole and streamed, each can be found in the records at once, and costs what the vendor bills."""
    raw = client.chat.completions.with_raw_response.create(model="lab/talk", messages=asking("one two three"))
    assert raw.parse().choices[0].message.content
    assert raw.headers["content-type"] == "application/json"
    with client.chat.completions.with_streaming_response.create(
        model="lab/talk", messages=asking("four five"), stream=True
    ) as streamed:
        lines = [line for line in streamed.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    records = [served.ask("GET", f"/v1/requests/{answer.headers['x-request-id']}").json for answer in (raw, streamed)]
    assert [one["status"] for one in records] == ["completed", "completed"]
    spent = sum(Decimal(str(one["cost"])) for one in records)
    assert spent == lab.bill_usd
    assert Decimal(str(served.ask("GET", "/v1/balance").json["available"]["amount"])) == 10 - spent
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="lab/talk", messages=[{"role": "user", "content": 7}])  # type: ignore[list-item,misc]
    assert refused.value.param == "messages[0].content"


async def many(served: Serving, enough: int) -> Counter[str]:
    """Conversations one after the other on a dozen lines, until so many were answered and the server is killed."""
    outcomes: Counter[str] = Counter()

    async def line(client: openai.AsyncOpenAI) -> None:
        while served.process.poll() is None:
            try:
                await client.chat.completions.create(model="lab/talk", messages=asking("one two three"))
            except openai.APIConnectionError:
                outcomes["cut off"] += 1
            else:
                outcomes["answered"] += 1
            if outcomes["answered"] >= enough and served.process.poll() is None:
                served.process.kill()

    async with openai.AsyncOpenAI(base_url=served.base_url, api_key=served.key, max_retries=0) as client:
        await asyncio.gather(*(line(client) for _ in range(12)))
    return outcomes


@sqlite_only
def test_killed_among_conversations(story: Ground, lab: ScriptedProvider) -> None:
    """Whatever the crash forgot, it forgot whole: what is recorded is charged, what is charged is recorded."""
    with story.serving() as served:
        outcomes = asyncio.run(many(served, 60))
        served.process.wait()
    assert outcomes["answered"] >= 60
    with story.serving() as served:
        summary = served.ask("GET", "/v1/requests?summary=true&status=completed").json["summary"]
        left = Decimal(str(served.ask("GET", "/v1/balance").json["available"]["amount"]))
        assert 0 < summary["count"] <= len(lab.invoice)
        assert 10 - left == Decimal(str(summary["total_cost"]))
        each = lab.bill_usd / len(lab.invoice)
        assert Decimal(str(summary["total_cost"])) == each * summary["count"]
    assert story.penstock("audit").returncode == 0
