"""Chats for batches of providers, and a gateway whose only provider has some."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.fake_providers.openai_batches import OpenAIBatches
from tests.fake_providers.scripted import KEY_ENV
from tests.fake_providers.server import serving
from tests.gateway import OpenGateway, RunningGateway

MODEL = "openai/gpt-4o-mini"


def chat_body(prompt: str, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": prompt}], "max_tokens": 20, **more}


def chat_row(prompt: str, **more: Any) -> dict[str, Any]:
    return {"url": "/v1/chat/completions", "body": chat_body(prompt, **more)}


def chat_rows(count: int) -> list[dict[str, Any]]:
    return [chat_row(f"name plum {number}") for number in range(1, count + 1)]


@asynccontextmanager
async def opened(open_gateway: OpenGateway, provider: OpenAIBatches, **settings: Any) -> AsyncIterator[RunningGateway]:
    async with serving(provider):
        providers = {"openai": {"base_url": f"{provider.url}/v1", "key_env": KEY_ENV}}
        async with open_gateway(providers=providers, **settings) as running:
            yield running
