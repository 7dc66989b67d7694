"""A gateway in front of a fake Replicate with its catalogue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.fake_providers.replicate_catalogue import ReplicateWithCatalogue
from tests.fake_providers.scripted import KEY_ENV
from tests.fake_providers.server import serving
from tests.gateway import OpenGateway, RunningGateway


@asynccontextmanager
async def with_replicate(
    open_gateway: OpenGateway, replicate: ReplicateWithCatalogue, **settings: Any
) -> AsyncIterator[RunningGateway]:
    async with serving(replicate):
        changed = {"base_url": f"{replicate.url}/v1", "key_env": KEY_ENV}
        async with open_gateway(providers={"replicate": changed}, **settings) as running:
            yield running
