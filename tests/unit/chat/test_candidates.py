"""Preferences among providers on chat calls, and those of a provider that routes itself."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from penstock.chat.candidates import route_chat
from penstock.chat.endpoint import complete_chat
from penstock.chat.provider_body import provider_body
from penstock.chat.request import read_chat_request
from penstock.errors import InvalidRequest
from penstock.models.routing import Route
from penstock.providers.openrouter import MAX_PRICE, PROVIDER
from penstock.schema import Response
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
ASK = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}
DEAR_LAB = {"lab/lab/chat": {"price": {"unit": "token", "input_usd": "0.00002", "output_usd": "0.00006"}}}


async def chat(running: RunningGateway, query: dict[str, str] | None = None, **body: Any) -> Response:
    return await complete_chat(running.gateway, running.call({**ASK, **body}, endpoint="/chat", query=query))


async def test_each_preference_chooses_the_provider(open_gateway: OpenGateway) -> None:
    cases: list[tuple[dict[str, Any] | None, str]] = [
        (None, "lab"),
        ({"order": ["annex"]}, "annex"),
        ({"sort": "price"}, "annex"),
        ({"sort": "latency", "ignore": ["lab"]}, "annex"),
        ({"max_price": {"prompt": 1.5}}, "annex"),
        ({"max_price": {"completion": 3}}, "annex"),
        ({"max_price": {"prompt": 20, "completion": 60}}, "lab"),
    ]
    async with open_gateway(annex=True, models=DEAR_LAB) as running:
        labs = {"lab": running.lab, "annex": running.annex}
        for provider, slug in cases:
            before = len(labs[slug].chats.received)
            response = await chat(running, provider=provider)
            assert response.headers["x-service-executed-model"] == f"{slug}/chat-1"
            assert len(labs[slug].chats.received) == before + 1, provider
            assert not labs[slug].chats.received[-1].fields.get("provider")
        with pytest.raises(InvalidRequest, match="`prompt`, `completion`"):
            await chat(running, provider={"max_price": {"image": 1}})
        shown = (await chat(running, {"dryRun": "true"}, provider={"sort": "price", "ignore": ["lab"]})).json
        assert [(each["provider"], each["reason"]) for each in shown["candidates"]] == [("annex", "sorted by price")]
        assert [(each["provider"], each["reason"]) for each in shown["left_out"]] == [("lab", "in `provider.ignore`")]


async def test_a_provider_that_routes_itself_gets_the_preferences(open_gateway: OpenGateway) -> None:
    """OpenRouter's own names of providers, and its own further preferences, are passed on unchanged."""
    preferences = {"order": ["deepinfra/turbo"], "data_collection": "deny"}
    async with open_gateway() as running:
        call = running.call({**ASK, "provider": {**preferences, "max_price": {"prompt": 3, "completion": 99}}})
        request = read_chat_request(call, Settings())
        body = provider_body(request, PROVIDER.models[0], None)
        limits = {**MAX_PRICE, "prompt": 3}
        assert body["provider"] == {**preferences, "max_price": limits}, "a limit above ours is lowered to it"
        plain = provider_body(read_chat_request(running.call(ASK), Settings()), PROVIDER.models[0], None)
        assert plain["provider"] == {"max_price": MAX_PRICE}


async def test_openrouter_is_routed_with_its_own_words(open_gateway: OpenGateway) -> None:
    """It knows preferences that the gateway has not, and providers that it has not."""
    async with open_gateway() as running:
        openrouter = Candidate(PROVIDER, PROVIDER.models[0])
        running.gateway.routing = Mock(wraps=running.gateway.routing, route=lambda *_: Route((openrouter,)))
        call = running.call({**ASK, "provider": {"zdr": True, "only": ["deepinfra"]}})
        routed = await route_chat(running.gateway, call, read_chat_request(call, running.gateway.settings))
        assert routed.chat.body["provider"] == {"zdr": True, "only": ["deepinfra"]}


async def test_a_header_names_who_served_a_call(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await chat(running, stream=True)
        assert response.headers["x-service-executed-model"] == "lab/chat-1"
        assert response.headers["cache-control"] == "no-cache"
        assert response.chunks is not None
        _ = [chunk async for chunk in response.chunks]
    for name, shown in (("a/b", "openrouter/a/b"), ("a/b\r\nx: y", "openrouter"), ("a/\u4e2d", "openrouter")):
        candidate = Candidate(PROVIDER, replace(PROVIDER.models[0], upstream=name))
        assert candidate.executed_model_header == {"x-service-executed-model": shown}
