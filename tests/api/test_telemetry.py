"""What calls tell about themselves: access lines, and the header with the gateway's own time."""

import json

import pytest

from tests.api.http_calls import served_api
from tests.fake_providers.server import FakeCall, serve
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only
PROMPT = "a-prompt-that-must-not-be-logged"


async def test_each_call_writes_a_line_without_anything_secret(
    open_gateway: OpenGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served_api(open_gateway) as api:
        capsys.readouterr()
        message = [{"role": "user", "content": PROMPT}]
        await api.image(prompt=PROMPT)
        await api.chat(messages=message)
        await api.chat(messages=message, stream=True)
        await api.chat(messages=message, model="no/such")
        await api.video(prompt=PROMPT)
        await api.call("GET", f"/v1/requests?limit=3&user={PROMPT}")
        await api.call("GET", f"/v1/requests/{PROMPT}")
        await api.served.call("GET", "/healthz")
    text = capsys.readouterr().err
    lines = [line for line in map(json.loads, text.splitlines()) if line["event"] == "call"]
    shown = [
        (line["method"], line["route"], line["status"], line.get("model"), line.get("provider"), line.get("cost_usd"))
        for line in lines
    ]
    chat = "/compat/v1/chat/completions"
    cost = 0.000003
    assert shown == [
        ("POST", "/compat/v1/images/generations", 200, "image-1", "lab", 0.04),
        ("POST", chat, 200, "lab/chat", "lab", cost),
        ("POST", chat, 200, "lab/chat", "lab", cost),
        ("POST", chat, 404, "no/such", None, None),
        ("POST", "/compat/v1/videos", 202, "video-1", None, None),
        ("GET", "/v1/requests", 200, None, None, None),
        ("GET", "/v1/requests/{request_id}", 404, None, None, None),
    ]
    assert {line["org_id"] for line in lines} == {api.running.caller.org_id}
    assert PROMPT not in text
    assert api.running.key not in text


async def test_the_header_has_the_time_without_the_waits_for_providers(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:

        async def slow(call: FakeCall) -> None:
            api.running.clock.advance(7)
            await serve(call)

        for endpoint in (api.running.lab.images, api.running.lab.chats, api.running.lab.videos):
            endpoint.always(slow)
        responses = [await api.image(), await api.chat(), await api.chat(stream=True), await api.video()]
        assert [response.headers["x-service-overhead-ms"] for response in responses] == ["0.00"] * 4
        other = await api.call("GET", "/v1/balance")
        assert "x-service-overhead-ms" not in other.headers
