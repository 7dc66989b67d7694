"""Who sees and hears which voices of accounts."""

from typing import Any

import pytest

from penstock.errors import NotFound, UpstreamError
from penstock.schema import Caller
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import route
from tests.fake_providers.voice_lists import VoiceVendors
from tests.gateway import Installation, sqlite_only
from tests.providers.voice_gateway import play, vendor_gateway, voices

pytestmark = sqlite_only


async def test_an_organization_sees_and_hears_the_voices_of_its_own_accounts_only(installation: Installation) -> None:
    settings: dict[str, Any] = {"own_accounts": ("elevenlabs",)}
    async with vendor_gateway(installation, "elevenlabs", has_key=False, **settings) as (running, vendors):
        theirs, others = [await running.create_caller_in_new_org("1") for _ in range(2)]
        for caller, credential in ((theirs, "theirs-canary"), (others, "others-canary")):
            await running.gateway.vendor_accounts.add("elevenlabs", credential, {}, caller.org_id)
        found = {caller.org_id: await voices(running, caller) for caller in (theirs, others)}
        assert "id-theirs-canary" in found[theirs.org_id]
        assert "id-others-canary" not in found[theirs.org_id]
        assert "id-theirs-canary" not in found[others.org_id]
        url = found[theirs.org_id]["id-theirs-canary"]["preview_url"]
        assert (await play(running, url, theirs)).status == 200
        with pytest.raises(NotFound):
            await play(running, url, others)
        assert not [request for request in vendors.received("public_sample") if "others" in request.path]


async def test_an_operator_may_keep_the_voices_of_the_shared_account_unlisted(installation: Installation) -> None:
    async with vendor_gateway(installation, "mistral", account_voices=False) as (running, vendors):
        assert "id-secret" not in await voices(running)
        assert not vendors.received("mistral")


async def test_nobody_is_asked_for_a_caller_without_a_key(installation: Installation) -> None:
    async with vendor_gateway(installation, "mistral") as (running, vendors):
        assert "en_paul_neutral" in await voices(running, Caller(org_id=running.caller.org_id, key_id=""))
        assert not vendors.received("mistral")


class Moved(VoiceVendors):
    """Its samples are pages."""

    @route("GET /public/{name}")
    def public_sample(self, call: Exchange) -> FakeResponse:
        return FakeResponse(file=b"<html>moved</html>", content_type="text/html")


async def test_what_is_no_sound_is_not_passed_on(installation: Installation) -> None:
    async with vendor_gateway(installation, "elevenlabs", kind=Moved) as (running, _):
        url = (await voices(running))["id-secret"]["preview_url"]
        with pytest.raises(UpstreamError, match="no sound"):
            await play(running, url)
        with pytest.raises(NotFound):
            await play(running, url.replace("id-secret", "EXAVITQu4vr4xnSDxMaL"))
