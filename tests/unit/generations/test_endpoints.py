"""The endpoints for images and videos: results, idempotency keys, failover, and the money of each call."""

import asyncio
import base64
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import (
    AllProvidersExhausted,
    ContentPolicyViolation,
    InsufficientBalance,
    InvalidRequest,
    ModelNotFound,
    Problem,
    UpstreamError,
    UpstreamTimeout,
)
from penstock.generations import retrieve
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY, png
from tests.gateway import OpenGateway, files_with, postgres_only, sqlite_only, two_providers
from tests.manual_clock import ManualClock

HOOK = "https://receiver.example/hook"


# -------------------------------------------------------------------------------------------------------------- images


async def test_an_image(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await running.image(size="128x64")
        assert made["size"] == "128x64"
        assert made["metadata"] == {
            "provider_name": "lab",
            "provider": "lab",
            "upstream_id": running.lab.invoice[0].id,
            "model": "image-1",
            "executed_model": "lab/easel-1",
            "cost": Decimal("0.04"),
            "cost_currency": "USD",
            "url_expires_at": running.clock.now_ms() // 1000 + 3600,
        }
        record = await running.record(made["id"])
        assert (record["status"], record["cost"], record["modality"]) == ("completed", Decimal("0.04"), "image")
        assert await running.money() == (nanos("9.96"), 0)
        assert running.lab.bill_usd == Decimal("0.04")


@sqlite_only
async def test_images_as_base64_in_the_response(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await running.image(response_format="b64_json", n=2)
        assert [base64.b64decode(image["b64_json"]) for image in made["data"]] == [png(64, 64)] * 2
        assert made["metadata"]["cost"] == Decimal("0.08")


@sqlite_only
async def test_an_image_that_the_provider_returns_as_a_url(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.returns_urls = True
        made = await running.image(response_format="b64_json")
        assert base64.b64decode(made["data"][0]["b64_json"]) == png(64, 64)


@sqlite_only
async def test_an_edit(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        source = "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()
        made = await running.edit(image=source)
        assert made["metadata"]["executed_model"] == "lab/easel-1"
        assert [len(received.fields["image"]) for received in running.lab.edits.received] == [1]


@sqlite_only
async def test_an_asynchronous_image(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        started = await running.image(headers={"prefer": "respond-async"})
        assert (started["status"], started["object"]) == ("queued", "image.generation")
        await running.wait_for_request(started["id"])
        found = (await retrieve.image_status(running.gateway, running.call(id=started["id"]))).json
        assert found["metadata"]["cost"] == Decimal("0.04")


@sqlite_only
async def test_an_image_that_takes_too_long_goes_on(open_gateway: OpenGateway) -> None:
    """The response says where the result will be, and that the call must not be repeated: it is being charged."""
    async with open_gateway(image_wait_seconds=0.05) as running:
        gate = faults.Gate()
        running.lab.images.next(gate)
        with pytest.raises(UpstreamTimeout, match="/compat/v1/images/req_") as caught:
            await running.image()
        assert caught.value.should_retry is False
        request_id = caught.value.message.rsplit("/", 1)[1].rstrip(".")
        assert (await running.record(request_id))["status"] == "processing"
        gate.open()
        assert (await running.wait_for_request(request_id))["status"] == "completed"
        assert len(running.lab.invoice) == 1


async def test_a_caller_that_disconnects_changes_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gate = faults.Gate()
        running.lab.images.next(gate)
        waiting = asyncio.create_task(running.image())
        await running.lab.images.reached(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.open()
        await running.wait_until_idle()
        (row,) = await running.records()
        assert (row["status"], row["cost"]) == ("completed", nanos("0.04"))


# -------------------------------------------------------------------------------------------------------- refused calls


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"model": "nonesuch"}, ModelNotFound),
        ({"model": "video-1"}, InvalidRequest),
        ({"prompt": ""}, InvalidRequest),
        ({"n": 11}, InvalidRequest),
        ({"size": "0x0"}, InvalidRequest),
        ({"api_base": "https://evil.example"}, InvalidRequest),
        ({"num_images": 4}, InvalidRequest),
        ({"webhook_url": "http://receiver.example"}, InvalidRequest),
    ],
)
@sqlite_only
async def test_refused_calls_cost_nothing(open_gateway: OpenGateway, body: dict[str, Any], kind: type[Problem]) -> None:
    async with open_gateway() as running:
        with pytest.raises(kind):
            await running.image(**body)
        assert await running.money() == (nanos("10"), 0)
        assert running.lab.submits == 0


@sqlite_only
async def test_fields_that_only_the_gateway_sets(open_gateway: OpenGateway) -> None:
    """Unknown fields go to the provider and set nothing in the gateway: not the owner, the price or the state."""
    async with open_gateway() as running:
        stranger = await running.create_caller_in_new_org()
        extras: dict[str, Any] = {
            "org_id": stranger.org_id, "key_id": stranger.key_id, "cost": 0, "status": "completed",
            "created_at": 1, "balance": 10**6, "id": "req_x", "hold": 0,
        }  # fmt: skip
        made = await running.image(**extras)
        record = await running.record(made["id"])
        assert (record["cost"], record["key_id"]) == (Decimal("0.04"), running.caller.key_id)
        assert record["created_at"].startswith("2023-11-14T22:13:20")
        assert await running.money() == (nanos("9.96"), 0)
        assert await running.money(stranger.org_id) == (nanos("10"), 0)
        assert running.lab.images.received[0].fields.items() >= extras.items()


async def test_a_balance_for_seven_calls_serves_seven(open_gateway: OpenGateway) -> None:
    """Two hundred calls at once on a balance for exactly seven."""
    async with open_gateway(starting_credit_usd="0.28") as running:

        async def ask() -> str:
            try:
                await running.image()
            except InsufficientBalance as problem:
                return f"{problem.status} {problem.should_retry}"
            return "made"

        outcomes = await asyncio.gather(*(ask() for _ in range(200)))
        assert outcomes.count("made") == 7
        assert outcomes.count("402 False") == 193
        assert len(running.lab.images) == 7
        assert await running.money() == (0, 0)


# -------------------------------------------------------------------------------------------------------------- videos


async def test_a_video(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await running.video(size="1280x720", metadata={"scene": "7", "cost": "mine"})
        started = response.json
        assert (response.status, started["status"], started["seconds"], started["size"]) == (
            202,
            "queued",
            "4",
            "1280x720",
        )
        assert set(started) == {"id", "object", "created_at", "status", "model", "seconds", "size", "metadata"}
        assert started["metadata"]["cost_estimate"] == Decimal("0.4")
        assert started["metadata"]["scene"] == "7"
        assert await running.money() == (nanos("9.6"), nanos("0.4"))
        done = await running.wait_for_video(started["id"])
        assert (done["status"], done["error"], done["prompt"]) == ("completed", None, "a train")
        assert done["expires_at"] == done["completed_at"] + 86_400
        assert done["output"]["content_type"] == "video/mp4"
        assert done["metadata"]["cost"] == Decimal("0.4"), "the gateway's value overrides the caller's"
        assert "cost_estimate" not in done["metadata"]
        assert done["metadata"]["upstream_id"] == running.lab.invoice[0].id
        assert await running.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_several_videos_in_one_request(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        started = (await running.video(n=3)).json
        assert started["metadata"]["cost_estimate"] == Decimal("1.2")
        done = await running.wait_for_video(started["id"])
        assert len(done["outputs"]) == 3
        assert done["outputs"][0] == done["output"]
        assert done["metadata"]["cost"] == Decimal("1.2")
        assert len(running.lab.invoice) == 3


@sqlite_only
async def test_delivered_videos_are_charged_when_others_fail(open_gateway: OpenGateway) -> None:
    """Only what was delivered is charged."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.ok, faults.fails, faults.ok)
        done = await running.wait_for_video((await running.video(n=3)).json["id"])
        assert (done["status"], len(done["outputs"]), done["metadata"]["cost"]) == ("completed", 2, Decimal("0.8"))


@sqlite_only
async def test_a_dry_run_does_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await running.video(query={"dryRun": "true"}, idempotency_key="k", seconds=8)
        assert response.status == 200
        assert (response.json["estimated"], response.json["total_cost_micros"]) == (True, 800_000)
        assert await running.records() == []
        assert running.lab.submits == 0
        assert await running.money() == (nanos("10"), 0)


# ---------------------------------------------------------------------------------------------------------- idempotency


async def test_fifty_calls_with_one_idempotency_key(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        responses = await asyncio.gather(*(running.video(idempotency_key="k", webhook_url=HOOK) for _ in range(50)))
        assert {response.status for response in responses} == {202}
        (video_id,) = {response.json["id"] for response in responses}
        assert [response.headers.get("idempotent-replayed") for response in responses].count("true") == 49
        await running.wait_for_request(video_id)
        assert len(running.lab.videos) == 1
        assert len(await running.rows("SELECT id FROM messages")) == 1
        assert await running.money() == (nanos("9.6"), 0)


@postgres_only
async def test_fifty_calls_with_one_idempotency_key_over_two_processes(open_gateway: OpenGateway) -> None:
    async with (
        open_gateway() as running,
        open_gateway(labs=(running.lab, running.annex), works=False, worker=False) as other,
    ):
        responses = await asyncio.gather(
            *((running if number % 2 else other).video(idempotency_key="k") for number in range(50))
        )
        assert len({response.json["id"] for response in responses}) == 1
        await running.wait_for_request(responses[0].json["id"], step_seconds=3)
        assert len(running.lab.invoice) == 1


@sqlite_only
async def test_an_idempotency_key_that_is_repeated_later(open_gateway: OpenGateway) -> None:
    """The same video in its present state: finished, failed, a day later, purged."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.ok, faults.fails)
        first, second = [(await running.video(idempotency_key=key)).json["id"] for key in ("a", "b")]
        await running.wait_for_request(first)
        await running.wait_for_request(second)
        running.clock.advance(25 * 3600)
        again = [await running.video(idempotency_key=key) for key in ("a", "b")]
        assert [response.json["id"] for response in again] == [first, second]
        assert [response.json["status"] for response in again] == ["completed", "failed"]
        await running.purge(first)
        assert (await running.video(idempotency_key="a")).json["id"] == first
        assert (await running.get_video(first))["output"] is None
        assert len(running.lab.videos) == 2


@sqlite_only
async def test_an_idempotency_key_with_another_body(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = await running.video(idempotency_key="k")
        same, other = (
            await running.video(idempotency_key="k"),
            await running.video(idempotency_key="k", prompt="a ship"),
        )
        assert first.json["id"] == same.json["id"] == other.json["id"]
        assert [response.headers.get("idempotency-mismatch") for response in (first, same, other)] == [
            None,
            None,
            "true",
        ]
        await running.wait_until_idle()
        assert len(running.lab.invoice) == 1


@sqlite_only
async def test_an_idempotency_key_belongs_to_its_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        mine, theirs = (
            await running.video(idempotency_key="k"),
            await running.video(idempotency_key="k", caller=await running.create_caller_in_new_org()),
        )
        assert mine.json["id"] != theirs.json["id"]
        await running.wait_until_idle()


@sqlite_only
async def test_refused_calls_use_no_idempotency_key(open_gateway: OpenGateway) -> None:
    async with open_gateway(starting_credit_usd="0.5") as running:
        poor = await running.create_caller(usd_per_day="0.01")
        for body, caller in (
            ({"prompt": ""}, running.caller),
            ({"model": "nonesuch"}, running.caller),
            ({"seconds": 100}, running.caller),
            ({}, poor),
        ):
            with pytest.raises(Problem):
                await running.video(idempotency_key="k", caller=caller, **body)
        response = await running.video(idempotency_key="k")
        assert "idempotent-replayed" not in response.headers
        await running.wait_until_idle()


@pytest.mark.parametrize(("key", "good"), [("k" * 256, True), ("k" * 257, False), ("", False), ("  ", False)])
@sqlite_only
async def test_the_length_of_idempotency_keys(open_gateway: OpenGateway, key: str, good: bool) -> None:
    async with open_gateway() as running:
        if good:
            await running.video(idempotency_key=key)
            await running.wait_until_idle()
        else:
            with pytest.raises(InvalidRequest, match="idempotency_key"):
                await running.video(idempotency_key=key)


# ------------------------------------------------------------------------------------------------------------- failover


@sqlite_only
async def test_the_next_provider_is_tried(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.always(faults.broken)
        made = await running.image()
        assert made["metadata"]["executed_model"] == "annex/easel-1"
        assert [attempt["outcome"] for attempt in made["metadata"]["attempts"]] == ["broken", "made"]
        assert await running.money() == (nanos("9.96"), 0)
        assert (len(running.lab.invoice), len(running.annex.invoice)) == (0, 1)


@pytest.mark.parametrize("act", [faults.busy(3), faults.unauthorized, faults.empty, faults.page, faults.rejected])
@sqlite_only
async def test_failures_after_which_the_next_provider_is_tried(open_gateway: OpenGateway, act: Any) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(act)
        assert (await running.image())["metadata"]["provider"] == "annex"


@sqlite_only
async def test_every_provider_fails(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.always(faults.broken)
        running.annex.images.always(faults.broken)
        with pytest.raises(AllProvidersExhausted) as caught:
            await running.image()
        assert caught.value.should_retry is False
        (row,) = await running.records()
        assert (row["status"], row["error_code"], row["cost"]) == ("upstream_failure", "ALL_PROVIDERS_EXHAUSTED", 0)
        assert await running.money() == (nanos("10"), 0)


@sqlite_only
async def test_refused_content_is_not_sent_to_the_next_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(faults.blocked)
        with pytest.raises(ContentPolicyViolation, match="safety system"):
            await running.image()
        assert running.annex.submits == 0


@sqlite_only
async def test_a_forced_provider_has_no_failover(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(faults.broken)
        with pytest.raises(UpstreamError):
            await running.image(model="lab/image-1")
        assert running.annex.submits == 0
        assert (await running.image(model="annex/easel-1"))["metadata"]["provider"] == "annex"


@sqlite_only
async def test_when_all_providers_are_busy_the_response_says_when_to_retry(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(faults.busy(7))
        running.annex.images.next(faults.busy(9999))
        with pytest.raises(AllProvidersExhausted) as caught:
            await running.image()
        assert caught.value.headers["retry-after"] == "120", "the longest time that clients accept"
        assert caught.value.should_retry is True


# ---------------------------------------------------------------------------------------------------------------- money


async def test_prices_are_those_of_the_acceptance(open_gateway: OpenGateway) -> None:
    """A video is accepted at one price; the gateway restarts with another before it is completed."""
    dear = {"video-1": {"price": {"unit": "second", "usd": "99"}}}
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            labs[0].videos.next(faults.never_ends)
            video_id = (await running.video()).json["id"]
            await labs[0].videos.reached(1)
        next(iter(labs[0].video_jobs.values())).states.append("completed")
        async with open_gateway(labs=labs, models=dear) as running:
            done = await running.wait_for_video(video_id)
            assert done["metadata"]["cost"] == Decimal("0.4")
            assert (await running.video(query={"dryRun": "true"})).json["total_cost_micros"] == 396_000_000


async def test_an_announced_price_is_for_requests_that_are_accepted_from_its_day_on(open_gateway: OpenGateway) -> None:
    """One video is accepted before the day of the change and ends after it; the next one is accepted after it."""
    clock = ManualClock(int(datetime(2026, 11, 30, 23, 59, tzinfo=UTC).timestamp() * 1000))
    change = {"unit": "second", "usd": "0.2", "from": "2026-12-01"}
    prices = {"video-1": {"price": [change, {"unit": "second", "usd": "0.1"}]}}
    async with two_providers() as labs, open_gateway(labs=labs, clock=clock, models=prices) as running:
        labs[0].videos.next(faults.never_ends)
        before = (await running.video()).json
        await labs[0].videos.reached(1)
        clock.advance(60)
        after = (await running.video()).json
        next(iter(labs[0].video_jobs.values())).states.append("completed")
        costs = [(await running.wait_for_video(video["id"]))["metadata"]["cost"] for video in (before, after)]
        assert costs == [Decimal("0.4"), Decimal("0.8")]
        assert [video["metadata"]["cost_estimate"] for video in (before, after)] == costs


# -------------------------------------------------------------------------------------------------------------- secrets


@sqlite_only
async def test_the_credential_of_a_provider_is_never_shown(open_gateway: OpenGateway) -> None:
    """A provider quotes its credential in an error: it is not in the response, the record or any file."""
    async with open_gateway() as running:
        running.lab.images.always(faults.unauthorized)
        running.lab.videos.always(faults.unauthorized)
        with pytest.raises(Problem) as caught:
            await running.image()
        assert "did not accept the gateway's account" in caught.value.message
        assert (await running.wait_for_request((await running.video()).json["id"]))["status"] == "upstream_failure"
        assert KEY not in repr(await running.records()) + repr(caught.value.body())
        assert files_with(running.gateway.settings.data, KEY) == []
        assert not running.gateway.health.report()[0]["successes"]
