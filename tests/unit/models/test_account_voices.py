"""Lists of voices are remembered, apart for each credential; a vendor that does not answer is asked again later."""

from typing import Any

import pytest

from tests.fake_providers.server import responds
from tests.gateway import Installation, sqlite_only
from tests.providers.recordings import known_providers
from tests.providers.voice_gateway import vendor_gateway, voices

pytestmark = sqlite_only


async def test_a_vendor_that_does_not_answer_costs_no_other_voice_and_is_asked_again_later(
    installation: Installation,
) -> None:
    async with vendor_gateway(installation, "elevenlabs") as (running, vendors):
        vendors.next("elevenlabs", responds({"detail": "down"}, 500))
        assert "id-secret" not in await voices(running)
        assert "EXAVITQu4vr4xnSDxMaL" in await voices(running)
        assert len(vendors.received("elevenlabs")) == 1
        running.clock.advance(61)
        assert "id-secret" in await voices(running)


@pytest.mark.parametrize(
    "wrong", [{"voice_id": ["x"]}, {"voice_id": ""}, {"voice_id": "x", "name": 5}, {"voice_id": "a\nb"}, {}]
)
async def test_a_malformed_list_is_no_list(installation: Installation, wrong: dict[str, Any]) -> None:
    async with vendor_gateway(installation, "elevenlabs") as (running, vendors):
        vendors.next("elevenlabs", responds({"voices": [wrong], "has_more": False}))
        assert set(await voices(running, model="elevenlabs/eleven_v3")) == set(
            known_providers()["elevenlabs"].models[0].op.speech.voice_names  # type: ignore[union-attr]
        )


async def test_a_rotated_credential_has_the_voices_of_its_own_account(installation: Installation) -> None:
    async with vendor_gateway(installation, "elevenlabs", has_key=False) as (running, _):
        account = await running.gateway.vendor_accounts.add("elevenlabs", "first-canary", {})
        assert "id-first-canary" in await voices(running)
        await running.gateway.vendor_accounts.rotate(account["id"], "second-canary")
        found = await voices(running)
        assert "id-second-canary" in found
        assert "id-first-canary" not in found
