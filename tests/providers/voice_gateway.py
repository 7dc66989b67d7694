"""A gateway whose only provider lists the voices of an account, on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.api.endpoints.voices import list_voices, play_voice
from penstock.schema import Caller, Response
from tests.fake_providers.server import serving
from tests.fake_providers.voice_lists import VoiceVendors
from tests.gateway import Installation, RunningGateway
from tests.providers.recordings import known_providers

PRICE = {"unit": "character", "usd": "0.00003"}
PRICES: dict[str, Any] = {"cartesia/sonic-3": {"price": PRICE}, "deepgram/aura-2": {"price": PRICE}}


@asynccontextmanager
async def vendor_gateway(
    installation: Installation,
    slug: str,
    *,
    has_key: bool = True,
    kind: type[VoiceVendors] = VoiceVendors,
    **settings: Any,
) -> AsyncIterator[tuple[RunningGateway, VoiceVendors]]:
    """Without a key, the provider has only the accounts that the test adds."""
    provider = known_providers()[slug]
    assert provider.key_env is not None
    async with serving(kind()) as vendors:
        installation.environ |= {provider.key_env: "secret"} if has_key else {}
        providers = {slug: {"base_url": vendors.url}}
        async with installation.open(providers=providers, models=PRICES, **settings) as running:
            yield running, vendors


async def voices(running: RunningGateway, caller: Caller | None = None, **query: str) -> dict[str, dict[str, Any]]:
    """What the list shows, by id."""
    found = (await list_voices(running.gateway, running.call(query=query, caller=caller or running.caller))).json
    return {voice["id"]: voice for voice in found["data"]}


async def play(running: RunningGateway, url: str, caller: Caller | None = None) -> Response:
    """The sound at the URL that a list has."""
    *_, previews, provider, voice_id = urlsplit(url).path.split("/")
    assert previews == "previews"
    call = running.call(provider=provider, id=unquote(voice_id), caller=caller or running.caller)
    return await play_voice(running.gateway, call)
