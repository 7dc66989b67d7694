"""Each vendor is asked for its list as its client does, all pages are read, and the voices can be heard."""

from typing import Any

import pytest

from tests import sounds
from tests.gateway import Installation, sqlite_only
from tests.providers.sound_clients import not_in_client
from tests.providers.voice_gateway import play, vendor_gateway, voices

pytestmark = sqlite_only
# By vendor: a voice of the account, and what is listed of it.
LISTED: dict[str, tuple[str, dict[str, Any]]] = {
    "elevenlabs": ("id-secret", {"name": "secret", "gender": "female", "languages": ["pt"], "type": "account"}),
    "cartesia": ("secret", {"name": "Secret", "gender": "female", "languages": ["en-US"], "description": "Warm"}),
    "mistral": ("id-secret", {"name": "secret", "gender": "male", "languages": ["fr"], "type": "account"}),
    "minimax": ("secret", {"name": "secret", "languages": [], "type": "account", "preview_url": None}),
    "deepgram": ("thalia", {"gender": "female", "languages": ["en", "en-US"], "type": "preset"}),
}


@pytest.mark.parametrize("slug", list(LISTED))
async def test_the_voices_of_an_account_are_listed_and_can_be_heard(installation: Installation, slug: str) -> None:
    voice_id, expected = LISTED[slug]
    async with vendor_gateway(installation, slug) as (running, vendors):
        found = await voices(running)
        assert found[voice_id] == found[voice_id] | expected
        assert found[voice_id]["models"]
        if url := found[voice_id]["preview_url"]:
            assert vendors.url not in url
            heard = await play(running, url)
            assert heard.media_type in ("audio/wav", "audio/mpeg")
            assert sounds.container_of(bytes(heard.body)) in ("wav", "mp3")  # type: ignore[arg-type]
        requests = [request for endpoint in vendors.endpoints.values() for request in endpoint.received]
        assert not_in_client(slug, "voices", [request for request in requests if "/sample" not in request.path]) == []


@pytest.mark.parametrize("slug", ["elevenlabs", "cartesia", "mistral"])
async def test_all_pages_of_a_list_are_read_and_remembered(installation: Installation, slug: str) -> None:
    async with vendor_gateway(installation, slug) as (running, vendors):
        vendors.more = 250
        found = await voices(running)
        assert len([voice for voice in found.values() if "secret" in voice["id"]]) == 251
        asked = len(vendors.received(slug))
        assert asked == 3
        await voices(running, search="secret-7")
        assert len(vendors.received(slug)) == asked
        running.clock.advance(3601)
        await voices(running)
        assert len(vendors.received(slug)) == 2 * asked
