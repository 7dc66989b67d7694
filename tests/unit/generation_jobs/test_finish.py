"""The end of a generation: one end, one webhook message, and the money that matches it."""

import asyncio
from decimal import Decimal

from penstock.errors import Cancelled, UpstreamError
from penstock.generation_jobs.finish import fail
from penstock.generation_jobs.job import read_job
from penstock.jobs.running import Lease, LeaseLost, RunningJob
from penstock.values import nanos
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only

HOOK = "https://receiver.example/hook"


async def test_a_generation_fails_once(open_gateway: OpenGateway) -> None:
    """Of a hundred failures and cancels at once, one is stored."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.never_ends)
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        await running.lab.videos.reached(1)
        row = await running.gateway.store.one("get_generation", id=video_id, org_id=running.caller.org_id)
        assert row is not None
        lease = Lease(video_id, row["lease_token"])
        job = await read_job(running.gateway, RunningJob(lease))
        ends = [UpstreamError("no"), Cancelled("stop")] * 50
        outcomes = await asyncio.gather(
            *(fail(running.gateway, job, problem) for problem in ends), return_exceptions=True
        )
        assert [outcome for outcome in outcomes if outcome is None] == [None]
        assert sum(isinstance(outcome, LeaseLost) for outcome in outcomes) == 99
        assert await running.transfers(video_id) == {"hold": nanos("0.4"), "release": nanos("0.4")}
        assert len(await running.rows("SELECT id FROM messages")) == 1
        await running.wait_until_idle()


async def test_a_cancel_at_any_moment_gives_one_end(open_gateway: OpenGateway) -> None:
    """One end, one webhook message, and the charge that matches them."""
    async with open_gateway() as running:
        for turns in range(0, 60, 7):
            video_id = (await running.video(seconds=1, webhook_url=HOOK)).json["id"]
            await running.lab.videos.reached(len(running.lab.videos))
            before = await running.money()

            async def cancel(video_id: str = video_id, turns: int = turns) -> None:
                for _ in range(turns):
                    await asyncio.sleep(0)
                    running.clock.advance(0.5)
                await running.cancel(video_id)

            await asyncio.gather(cancel(), running.wait_for_request(video_id, step_seconds=0.5))
            record = await running.record(video_id)
            (event,) = await running.rows(f"SELECT event FROM messages WHERE request_id = '{video_id}'")  # noqa: S608
            if record["status"] == "completed":
                assert (record["cost"], event["event"]) == (Decimal("0.1"), "video.completed")
            else:
                assert (record["status"], record["cost"], event["event"]) == ("cancelled", 0, "video.cancelled")
            after = await running.money()
            assert after[1] == 0
            assert after[0] + nanos(record["cost"]) == before[0] + before[1]


async def test_a_provider_that_charges_more_than_was_held(open_gateway: OpenGateway) -> None:
    """Three times the held number of tokens are reported. The caller pays the hold, the gateway the rest."""
    price = {"unit": "token", "output_usd": "0.0001", "max_tokens": 1000}
    async with open_gateway(models={"image-1": {"price": price}}, starting_credit_usd="0.1") as running:
        running.lab.usage = {"input_tokens": 0, "output_tokens": 3000}
        made = await running.image()
        assert made["metadata"]["cost"] == Decimal("0.1")
        assert await running.money() == (0, 0)
        assert await running.transfers(made["id"]) == {
            "hold": nanos("0.1"), "capture": nanos("0.1"), "loss": nanos("0.2")
        }  # fmt: skip


@sqlite_only
async def test_a_provider_that_charges_less_than_was_held(open_gateway: OpenGateway) -> None:
    price = {"unit": "token", "output_usd": "0.0001", "max_tokens": 1000}
    async with open_gateway(models={"image-1": {"price": price}}) as running:
        running.lab.usage = {"input_tokens": 0, "output_tokens": 1}
        made = await running.image()
        assert made["metadata"]["cost"] == Decimal("0.0001")
        assert await running.money() == (nanos("9.9999"), 0)


@sqlite_only
async def test_tiny_prices_are_rounded_once(open_gateway: OpenGateway) -> None:
    """Four videos of four seconds at 0.1 nano-dollars a second: 1.6, rounded to 2; each alone would be rounded to 0."""
    async with open_gateway(models={"video-1": {"price": {"unit": "second", "usd": "0.0000000001"}}}) as running:
        done = await running.wait_for_video((await running.video(n=4)).json["id"])
        assert done["metadata"]["cost"] == Decimal("0.000000002")


@sqlite_only
async def test_the_webhook_message_of_a_completed_video(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.wait_for_video((await running.video(webhook_url=HOOK, n=2)).json["id"])
        (message,) = await running.rows("SELECT event, url, body FROM messages")
        assert (message["event"], message["url"]) == ("video.completed", HOOK)
        assert bytes(message["body"]).count(b"/m/med_") == 3
