"""Copies of outputs in a bucket: there before anybody is told, once, paid once, and what happens when it is away."""

import asyncio
import hashlib
import json
from typing import Any

import pytest

from penstock.accounts.alerts import Alerts
from penstock.errors import DeliveryFailed, InvalidRequest, Problem
from penstock.generation_jobs import delivery
from penstock.generations import endpoints
from penstock.values import nanos
from tests.fake_bucket import FakeBucket, fake_bucket
from tests.gateway import OpenGateway, RunningGateway, failpoint_raises, sqlite_only, two_providers
from tests.unit.speech.speech_calls import speak

HOOK = "https://hooks.example/penstock"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
LOOPBACK: dict[str, Any] = {"egress_allow_cidrs": ("127.0.0.0/8",)}


async def events(running: RunningGateway) -> list[dict[str, Any]]:
    return [json.loads(bytes(row["body"])) for row in await running.rows("SELECT body FROM messages ORDER BY id")]


async def check_copies(running: RunningGateway, bucket: FakeBucket, request_id: str, count: int = 1) -> None:
    """Each output is in the bucket under its one name, with the content that the gateway has."""
    record = await running.rows(f"SELECT sha256, delivered FROM media WHERE request_id = '{request_id}'")  # noqa: S608
    copies = [json.loads(row["delivered"])["delivered"] for row in record]
    assert sorted(bytes(row["sha256"]).hex() for row in record) == sorted(copy["sha256"] for copy in copies)
    stored = {f"s3:/{path}": hashlib.sha256(data).hexdigest() for path, data in bucket.files.items()}
    assert {copy["url"]: copy["sha256"] for copy in copies} == stored
    assert len(stored) == count


async def test_images_are_in_the_bucket_before_the_response(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        image = await running.image(n=2, deliver_to=destination)
        await check_copies(running, bucket, image["id"], 2)
        copies = [each["delivered"] for each in image["data"]]
        assert copies[0]["url"] == f"s3://media/out/2023-11-14/{image['id']}/0.png"
        assert copies[0]["etag"]
        assert "deliver" not in str(running.lab.images.received[0].fields), "providers are not told"
        assert (await running.image())["data"][0].keys() == {"url"}, "no copy without a destination"
        assert len(bucket.written) == 2


async def test_a_video_is_copied_before_its_webhook_is_stored(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        wanted = {"bucket": await bucket.add_to(running), "path": "{label.customer}/{request_id}-{position}.{ext}"}
        video_id = (await running.video(deliver_to=wanted, webhook_url=HOOK)).json["id"]
        video = await running.wait_for_video(video_id)
        await check_copies(running, bucket, video_id)
        url = f"s3://media/out/none/{video_id}-0.mp4"
        assert video["output"]["delivered"]["url"] == url
        [event] = await events(running)
        assert event["data"]["output"]["delivered"] == video["output"]["delivered"]


async def test_the_default_of_the_organization_is_used_unless_the_call_says_otherwise(
    open_gateway: OpenGateway,
) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        await bucket.add_to(running, default=True)
        assert (await running.image())["data"][0]["delivered"]["url"].startswith("s3://media/out/")
        assert "delivered" not in (await running.image(deliver_to="none"))["data"][0]
        other = await running.create_caller_in_new_org()
        assert "delivered" not in (await running.image(caller=other))["data"][0]
        replayed = {"x-service-replay": "mock"}
        assert (await running.image(headers=replayed))["data"][0]["delivered"]["url"].startswith("s3://media/out/")


async def test_a_bucket_that_is_away_for_a_while_is_waited_for(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        bucket.refusals = [503, 403, 500, 200]
        video_id = (await running.video(n=2, deliver_to=destination)).json["id"]
        assert (await running.wait_for_video(video_id))["status"] == "completed"
        await check_copies(running, bucket, video_id, 2)
        assert len(running.lab.videos) == 2
        assert running.gateway.destinations.get(running.caller.org_id, destination).failure is None


@pytest.mark.parametrize("task", ["image", "video"])
async def test_after_its_time_an_output_is_announced_without_a_copy(open_gateway: OpenGateway, task: str) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK, delivery_seconds=120.0) as running:
        destination = await bucket.add_to(running)
        bucket.refusals = [503]
        started = running.clock.monotonic()
        if task == "image":
            output, tried_for = (await _image_while_time_passes(running, destination))["data"][0], 30
        else:
            video_id = (await running.video(deliver_to=destination)).json["id"]
            output, tried_for = (await running.wait_for_video(video_id))["output"], 120
        assert tried_for / 2 < running.clock.monotonic() - started < tried_for * 10
        assert (output["delivered"], output["delivery_error"]) == (
            None,
            "the bucket answered with status 503 (Refused)",
        )
        assert output["url"], "it can be fetched from the gateway"
        assert not bucket.files
        found = running.gateway.destinations.get(running.caller.org_id, destination)
        assert found.failure == "the bucket answered with status 503 (Refused)"
        await _check_alert(running, destination)


async def _image_while_time_passes(running: RunningGateway, destination: str, **body: Any) -> Any:
    call = asyncio.create_task(running.image(deliver_to=destination, **body))

    async def met() -> bool:
        return call.done()

    await running.wait_until(met)
    return await call


async def _check_alert(running: RunningGateway, destination: str) -> None:
    settings = running.gateway.settings.__class__(data=running.gateway.settings.data, alert_url=HOOK)
    alerts = Alerts(running.gateway.store, running.clock, settings, lambda: None)
    assert [await alerts.check(), await alerts.check()] == [1, 0]
    [alert] = [event for event in await events(running) if event["type"] == "delivery.failed"]
    assert (alert["data"]["id"], alert["data"]["failure"][:10]) == (destination, "the bucket")


async def test_nothing_stays_here_of_what_is_kept_until_it_is_delivered(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        wanted: dict[str, Any] = {"deliver_to": await bucket.add_to(running), "media_retention": "0"}
        image = await running.image(response_format="b64_json", **wanted)
        assert image["data"][0]["b64_json"], "who waits still gets it"
        video = await running.wait_for_video((await running.video(**wanted)).json["id"])
        assert video["expires_at"] == video["completed_at"] + 600
        assert video["output"]["delivered"]["url"].startswith("s3://media/out/")
        kept = await running.video(**{**wanted, "media_retention": "2h"})
        video = await running.wait_for_video(kept.json["id"])
        assert video["expires_at"] == video["completed_at"] + 7200
        running.clock.advance(600)
        await running.gateway.media.delete_expired()
        assert await running.storage.list_files() != []
        running.clock.advance(7200)
        await running.gateway.media.delete_expired()
        assert await running.storage.list_files() == []
        assert len(bucket.files) == 3


async def test_what_could_not_be_delivered_is_kept_all_the_same(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK, delivery_seconds=5.0) as running:
        destination = await bucket.add_to(running)
        bucket.refusals = [200, 503]
        created = await running.video(n=2, deliver_to=destination, media_retention="0")
        video = await running.wait_for_video(created.json["id"])
        assert [bool(each["delivered"]) for each in video["outputs"]] == [True, False]
        assert video["expires_at"] == video["completed_at"] + 86_400


@pytest.mark.parametrize("task", ["image", "video"])
async def test_required_copies_fail_the_call_which_is_charged(open_gateway: OpenGateway, task: str) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK, delivery_seconds=60.0) as running:
        destination = await bucket.add_to(running, required=True)
        bucket.refusals = [503]
        if task == "image":
            with pytest.raises(DeliveryFailed, match="is charged, but not copied"):
                await _image_while_time_passes(running, destination)
            [row] = await running.records()
            request_id, cost = row["id"], nanos("0.04")
        else:
            request_id, cost = (await running.video(deliver_to=destination)).json["id"], nanos("0.4")
            assert (await running.wait_for_video(request_id))["error"]["code"] == "DELIVERY_FAILED"
        record = await running.record(request_id)
        assert (record["status"], record["error_code"]) == ("upstream_failure", "DELIVERY_FAILED")
        assert (await running.transfers(request_id))["capture"] == nanos(record["cost"]) == cost
        assert [row["state"] for row in await running.attempts(request_id)] == ["completed"]
        assert not bucket.files


async def test_a_call_may_lift_and_set_the_requirement(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running, required=True)
        bucket.refusals = [503]
        image = await _image_while_time_passes(running, destination, deliver_required=False)
        assert image["data"][0]["delivered"] is None


async def test_a_deleted_destination_is_not_waited_for(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        bucket.refusals = [503]
        video_id = (await running.video(deliver_to=destination)).json["id"]

        async def is_tried() -> bool:
            return bool(bucket.written)

        await running.wait_until(is_tried)
        await running.gateway.destinations.delete(running.caller.org_id, destination)
        output = (await running.wait_for_video(video_id))["output"]
        assert output["delivery_error"] == delivery._DELETED


async def test_a_new_key_is_used_for_what_waits(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        bucket.refusals = [403]
        video_id = (await running.video(deliver_to=destination)).json["id"]

        async def is_tried() -> bool:
            return bool(bucket.written)

        await running.wait_until(is_tried)
        bucket.refusals = []
        keys = {"access_key_id": "AKIANEWNEWNEWNEW9999", "secret_access_key": "another-canary"}
        await running.gateway.destinations.rotate(running.caller.org_id, destination, keys)
        await running.wait_for_video(video_id)
        assert bucket.server is not None
        assert b"AKIANEWNEWNEWNEW9999" in bucket.server.requests[-1]
        await check_copies(running, bucket, video_id)


# ----------------------------------------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("place", ["deliver.after_made", "deliver.after_copy", "settle.in_tx", "settle.after_commit"])
@pytest.mark.parametrize("task", ["image", "video"])
@pytest.mark.sweep(5)
async def test_interrupted_while_it_is_copied(open_gateway: OpenGateway, place: str, task: str) -> None:
    """Nothing is made again, lost or under two names; also an image is there, whose caller has left."""
    async with two_providers() as labs, fake_bucket() as bucket:
        async with open_gateway(labs=labs, **LOOPBACK) as running:
            destination = await bucket.add_to(running)
            with failpoint_raises(place, 1):
                if task == "image":
                    try:
                        await running.image(n=2, deliver_to=destination)
                    except Problem:
                        assert place != "settle.after_commit"
                else:
                    await running.video(n=2, deliver_to=destination)
                    await running.wait_until_idle()
        async with open_gateway(labs=labs, **LOOPBACK) as running:
            [row] = await running.records()
            record = await running.wait_for_request(row["id"])
            assert record["status"] == "completed"
            await check_copies(running, bucket, row["id"], 2)
            charged = (await running.transfers(row["id"]))["capture"]
            assert charged == nanos(record["cost"]) == nanos(labs[0].bill_usd)
            assert len(labs[0].images if task == "image" else labs[0].videos) == (1 if task == "image" else 2)
            assert (await running.rows("SELECT id FROM generations WHERE made IS NOT NULL")) == []


async def test_a_copy_that_crashes_each_worker_is_given_up(open_gateway: OpenGateway) -> None:
    """What was made is not lost: after five crashes it is announced without a copy."""
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        with failpoint_raises("deliver.after_copy"):
            video_id = (await running.video(deliver_to=destination)).json["id"]
            video = await running.wait_for_video(video_id, step_seconds=5)
        assert video["status"] == "completed"
        assert len(running.lab.videos) == 1


# ----------------------------------------------------------------------------------------------------- other outputs


@sqlite_only
async def test_edits_sounds_and_kept_speech_are_copied_too(open_gateway: OpenGateway) -> None:
    async with fake_bucket() as bucket, open_gateway(**LOOPBACK) as running:
        destination = await bucket.add_to(running)
        edited = await running.edit(image=PIXEL, deliver_to=destination)
        assert edited["data"][0]["delivered"]["url"].endswith("/0.png")
        body = {"model": "lab/sound", "prompt": "rain", "seconds": 2, "deliver_to": destination}
        made = await endpoints.start_sound(running.gateway, running.call(body, endpoint="/compat/v1/audio/generations"))
        assert (await running.wait_for_request(made.json["id"]))["status"] == "completed"
        spoken = (await speak(running, deliver_to=destination, headers={"accept": "application/json"})).json
        assert spoken["data"][0]["delivered"]["url"].endswith("/0.mp3")
        assert sorted(path.rpartition(".")[2] for path in bucket.files) == ["mp3", "mp3", "png"]
        with pytest.raises(InvalidRequest, match="deliver_to"):
            await speak(running, deliver_to="dst_1")
