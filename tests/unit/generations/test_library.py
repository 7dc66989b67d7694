"""The library: for how long outputs are kept, and who may open a shared URL."""

import pytest

from penstock.api.endpoints import outputs
from penstock.errors import InvalidRequest, NotFound, PermissionDenied
from penstock.media.files import MediaFiles
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, caller_with, sqlite_only
from tests.unit.generations.library_calls import change, library, share
from tests.unit.media.signed_urls import open_url, read_body


async def test_outputs_are_kept_longer_but_never_shorter(open_gateway: OpenGateway) -> None:
    async with open_gateway(media_retention="2h", media_retention_max="10d") as running:
        made = await running.wait_for_video((await running.video()).json["id"])
        [output] = await library(running)
        longer = await change(running, output["id"], keep="7d")
        assert longer["expires_at"] > output["expires_at"]
        assert (await change(running, output["id"], keep="1h"))["expires_at"] == longer["expires_at"]
        for wrong in ("11d", "soon", "0h", ""):
            with pytest.raises(InvalidRequest, match="at most `10d`") as refused:
                await change(running, output["id"], keep=wrong)
            assert refused.value.param == "keep"
        running.clock.advance(6 * 86_400)
        await running.gateway.media.delete_expired()
        assert (await running.get_video(made["id"]))["output"]["url"]
        running.clock.advance(2 * 86_400)
        assert await library(running) == []
        with pytest.raises(NotFound):
            await change(running, output["id"], keep="1d")


async def test_only_the_key_that_made_an_output_or_an_admin_keeps_and_shares_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image()
        [output] = await library(running)
        other = await running.create_caller(running.caller.org_id)
        assert (await change(running, output["id"], other, favorite=True))["favorite"] is True
        for attempt in (change(running, output["id"], other, keep="7d"), share(running, output["id"], other)):
            with pytest.raises(PermissionDenied, match="admin"):
                await attempt
        admin = caller_with(other, scopes=frozenset({"admin"}))
        assert (await share(running, output["id"], admin))["url"]
        assert await change(running, output["id"], admin, keep="7d")


async def test_a_shared_url_works_until_it_ends_or_is_revoked(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image()
        [output] = await library(running)
        await change(running, output["id"], keep="10d")
        shared = await share(running, output["id"], expires_in="3d")
        assert await read_body(await open_url(running, shared["url"])) == png(64, 64)
        for forged in (shared["url"].replace("share=0", "share=1"), shared["url"].replace("&share=0", "")):
            with pytest.raises(PermissionDenied, match="not signed"):
                await open_url(running, forged)
        running.clock.advance(3 * 86_400 + 1)
        with pytest.raises(PermissionDenied, match="expired"):
            await open_url(running, shared["url"])

        second = await share(running, output["id"])
        call = running.call(output_id=output["id"])
        assert (await outputs.unshare_output(running.gateway, call)).status == 204
        with pytest.raises(PermissionDenied, match="not shared any more"):
            await open_url(running, second["url"])
        third = await share(running, output["id"], expires_in="10d")
        assert third["expires_at"] <= (await library(running))[0]["expires_at"]
        assert (await open_url(running, third["url"])).status == 200
        await running.purge(output["request_id"])
        with pytest.raises(NotFound):
            await open_url(running, third["url"])


@sqlite_only
async def test_a_shared_url_never_leads_to_the_object_store(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There it could not be revoked."""
    async with open_gateway() as running:
        await running.image()
        [output] = await library(running)
        monkeypatch.setattr(MediaFiles, "signed_url", lambda *_: pytest.fail("asked the object store"))
        assert (await share(running, output["id"]))["url"].startswith("http://gateway.test/m/med_")
