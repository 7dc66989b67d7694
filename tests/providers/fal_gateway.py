"""A gateway in front of a fake fal with its catalogue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.fake_providers.fal_catalogue import FalWithCatalogue
from tests.fake_providers.scripted import KEY_ENV
from tests.fake_providers.server import serving
from tests.gateway import OpenGateway, RunningGateway


@asynccontextmanager
async def with_fal(open_gateway: OpenGateway, fal: FalWithCatalogue, **settings: Any) -> AsyncIterator[RunningGateway]:
    async with serving(fal):
        fal.prices.setdefault("fal-ai/hidream-i1-full", (0.05, "megapixels"))
        fal.prices.setdefault("fal-ai/ltx-2.3/text-to-video", (0.04, "seconds"))
        fal.prices.setdefault("fal-ai/esrgan", (0.00111, "compute seconds"))
        changed = {"base_url": fal.url, "catalogue_url": f"{fal.url}/v1", "key_env": KEY_ENV}
        async with open_gateway(providers={"fal": changed}, **settings) as running:
            yield running
