"""What `deliver_to` may be, and that nobody delivers into a bucket of another organization."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.generations import endpoints
from penstock.schema import Delivery
from tests.fake_bucket import fake_bucket
from tests.gateway import OpenGateway, sqlite_only

LOOPBACK: dict[str, Any] = {"egress_allow_cidrs": ("127.0.0.0/8",)}
PATH = "{request_id}/{position}"


@sqlite_only
async def test_bad_values_are_named_also_in_a_dry_run(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        stranger = await running.create_caller_in_new_org()
        for wanted, param in (
            ("dst_1", "deliver_to"),
            ("", "deliver_to"),
            (["dst_1"], "deliver_to"),
            ({}, "deliver_to"),
            ({"bucket": 7}, "deliver_to"),
            ({"bucket": destination, "folder": "x"}, "deliver_to"),
            ({"bucket": destination, "path": "../{request_id}/{position}"}, "deliver_to.path"),
            ({"bucket": destination, "path": "{position}"}, "deliver_to.path"),
        ):
            for query in ({}, {"dryRun": "true"}):
                with pytest.raises(InvalidRequest) as refused:
                    await running.video(deliver_to=wanted, query=query)
                assert refused.value.param == param
        with pytest.raises(InvalidRequest, match="of your organization"):
            await running.image(deliver_to=destination, caller=stranger)
        for nowhere in (None, "none"):
            with pytest.raises(InvalidRequest) as refused:
                await running.image(deliver_to=nowhere, deliver_required=True)
            assert refused.value.param == "deliver_required"
            for query in ({}, {"dryRun": "true"}):
                with pytest.raises(InvalidRequest, match="name a destination") as refused:
                    await running.video(deliver_to=nowhere, media_retention="0", query=query)
                assert refused.value.param == "media_retention"
        assert running.lab.images.received == []


@sqlite_only
async def test_what_is_stored_is_what_the_call_said(open_gateway: OpenGateway) -> None:
    """Later changes of the destination do not change where the outputs of accepted calls go."""
    async with fake_bucket() as bucket, open_gateway(works=False, **LOOPBACK) as running:
        destination = await bucket.add_to(running, required=True)
        for wanted, required, expected in (
            (destination, None, Delivery(destination, "{date}/{request_id}/{position}.{ext}", True)),
            ({"bucket": destination, "path": PATH}, False, Delivery(destination, PATH)),
        ):
            video = await running.video(deliver_to=wanted, deliver_required=required)
            row = await running.gateway.store.one("get_generation", id=video.json["id"], org_id=running.caller.org_id)
            assert row is not None
            assert f'"delivery":{{"destination":"{expected.destination}"' in bytes(row["request"]).decode()
            assert ('"required":true' in bytes(row["request"]).decode()) is expected.required


@sqlite_only
async def test_the_same_key_with_another_destination_is_another_call(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        wanted: dict[str, Any] = {"deliver_to": await bucket.add_to(running), "idempotency_key": "one"}
        await running.video(**wanted)
        again = await endpoints.start_video(running.gateway, running.call(_body(**wanted)))
        assert "idempotency-mismatch" not in again.headers
        other = await endpoints.start_video(running.gateway, running.call(_body(**wanted | {"deliver_to": "none"})))
        assert other.headers["idempotency-mismatch"] == "true"


def _body(**more: Any) -> dict[str, Any]:
    return {"model": "video-1", "prompt": "a train", "seconds": 4, **more}
