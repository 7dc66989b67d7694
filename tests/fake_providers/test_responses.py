"""The fake Responses API refuses what OpenAI refuses."""

from typing import Any

from tests.fake_providers import responses


def test_the_fake_refuses_what_openai_refuses() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    bodies: list[dict[str, Any]] = [
        {"model": "m", "input": "x", "max_tokens": 3},
        {"model": "m", "input": "x", "max_output_tokens": 15},
        {"model": "m", "input": [reasoning]},
        {"model": "m", "input": [{**reasoning, "encrypted_content": "of another"}]},
        {"model": "m", "input": [{"role": "nobody", "content": "x"}]},
    ]
    found = [responses.respond(body, "1")[0] for body in bodies]
    assert [response.status for response in found] == [400, 400, 404, 400, 400]
