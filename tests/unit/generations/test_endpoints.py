"""The story of requests: made, promised, repeated, cancelled, forgotten; and the money of each."""

import asyncio
import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import (
    AllProvidersExhausted,
    Conflict,
    ContentPolicyViolation,
    InsufficientBalance,
    InvalidRequest,
    ModelNotFound,
    NotFound,
    Problem,
    UpstreamError,
    UpstreamTimeout,
)
from penstock.failpoints import Tripped
from penstock.generations import endpoints, retrieve
from penstock.values import nanos
from tests.house import House, OpenHouse, neighbours, postgres_only, sqlite_only, tripping
from tests.upstreams import faults
from tests.upstreams.lab import KEY, png

HOOK = "https://receiver.example/hook"


# -------------------------------------------------------------------------------------------------------------- images


async def test_an_image(open_house: OpenHouse) -> None:
    async with open_house() as house:
        made = await house.image(size="128x64")
        assert made["size"] == "128x64"
        assert made["metadata"] == {
            "provider_name": "lab",
            "provider": "lab",
            "upstream_id": house.lab.invoice[0].id,
            "model": "picture",
            "executed_model": "lab/easel-1",
            "cost": Decimal("0.04"),
            "cost_currency": "USD",
        }
        record = await house.record(made["id"])
        assert (record["status"], record["cost"], record["modality"]) == ("completed", Decimal("0.04"), "image")
        assert await house.money() == (nanos("9.96"), 0)
        assert house.lab.bill_usd == Decimal("0.04")


@sqlite_only
async def test_images_in_the_answer_itself(open_house: OpenHouse) -> None:
    async with open_house() as house:
        made = await house.image(response_format="b64_json", n=2)
        assert [base64.b64decode(one["b64_json"]) for one in made["data"]] == [png(64, 64)] * 2
        assert made["metadata"]["cost"] == Decimal("0.08")


@sqlite_only
async def test_an_image_that_lies_at_an_address(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.gives_addresses = True
        made = await house.image(response_format="b64_json")
        assert base64.b64decode(made["data"][0]["b64_json"]) == png(64, 64)


@sqlite_only
async def test_an_edit(open_house: OpenHouse) -> None:
    async with open_house() as house:
        source = "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()
        made = await house.edit(image=source)
        assert made["metadata"]["executed_model"] == "lab/easel-1"
        assert [len(heard.fields["image"]) for heard in house.lab.edits.heard] == [1]


@sqlite_only
async def test_an_image_that_nobody_waits_for(open_house: OpenHouse) -> None:
    async with open_house() as house:
        started = await house.image(headers={"prefer": "respond-async"})
        assert (started["status"], started["object"]) == ("queued", "image.generation")
        await house.ended(started["id"])
        found = (await retrieve.image_status(house.gateway, house.call(id=started["id"]))).json
        assert found["metadata"]["cost"] == Decimal("0.04")


@sqlite_only
async def test_an_image_that_takes_too_long_goes_on(open_house: OpenHouse) -> None:
    """The caller is told where it will be, and is not to ask again: it is being paid for."""
    async with open_house(image_wait_seconds=0.05) as house:
        gate = faults.Gate()
        house.lab.images.next(gate)
        with pytest.raises(UpstreamTimeout, match="/compat/v1/images/req_") as caught:
            await house.image()
        assert caught.value.should_retry is False
        request_id = caught.value.message.rsplit("/", 1)[1].rstrip(".")
        assert (await house.record(request_id))["status"] == "processing"
        gate.open()
        assert (await house.ended(request_id))["status"] == "completed"
        assert len(house.lab.invoice) == 1


async def test_a_caller_who_leaves_changes_nothing(open_house: OpenHouse) -> None:
    async with open_house() as house:
        gate = faults.Gate()
        house.lab.images.next(gate)
        waiting = asyncio.create_task(house.image())
        await house.lab.images.reached(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.open()
        await house.idle()
        (row,) = await house.records()
        assert (row["status"], row["cost"]) == ("completed", nanos("0.04"))


# --------------------------------------------------------------------------------------------- what callers may not do


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"model": "nonesuch"}, ModelNotFound),
        ({"model": "film"}, InvalidRequest),
        ({"prompt": ""}, InvalidRequest),
        ({"n": 11}, InvalidRequest),
        ({"size": "0x0"}, InvalidRequest),
        ({"api_base": "https://evil.example"}, InvalidRequest),
        ({"num_images": 4}, InvalidRequest),
        ({"webhook_url": "http://receiver.example"}, InvalidRequest),
    ],
)
@sqlite_only
async def test_refusals_cost_nothing(open_house: OpenHouse, body: dict[str, Any], kind: type[Problem]) -> None:
    async with open_house() as house:
        with pytest.raises(kind):
            await house.image(**body)
        assert await house.money() == (nanos("10"), 0)
        assert house.lab.submits == 0


@sqlite_only
async def test_fields_that_are_ours_to_set(open_house: OpenHouse) -> None:
    """An extra goes to the provider, as promised, and sets nothing here: not the owner, the price or the state."""
    async with open_house() as house:
        stranger = await house.another()
        extras: dict[str, Any] = {
            "org_id": stranger.org_id, "key_id": stranger.key_id, "cost": 0, "status": "completed",
            "created_at": 1, "balance": 10**6, "id": "req_x", "hold": 0,
        }  # fmt: skip
        made = await house.image(**extras)
        record = await house.record(made["id"])
        assert (record["cost"], record["key_id"]) == (Decimal("0.04"), house.caller.key_id)
        assert record["created_at"].startswith("2023-11-14T22:13:20")
        assert await house.money() == (nanos("9.96"), 0)
        assert await house.money(stranger.org_id) == (nanos("10"), 0)
        assert house.lab.images.heard[0].fields.items() >= extras.items()


async def test_money_for_seven(open_house: OpenHouse) -> None:
    """Two hundred calls at once on a balance for exactly seven."""
    async with open_house(starting_credit_usd="0.28") as house:

        async def ask() -> str:
            try:
                await house.image()
            except InsufficientBalance as problem:
                return f"{problem.status} {problem.should_retry}"
            return "made"

        outcomes = await asyncio.gather(*(ask() for _ in range(200)))
        assert outcomes.count("made") == 7
        assert outcomes.count("402 False") == 193
        assert len(house.lab.images) == 7
        assert await house.money() == (0, 0)


# -------------------------------------------------------------------------------------------------------------- videos


async def test_a_video(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answer = await house.video(size="1280x720", metadata={"scene": "7", "cost": "mine"})
        started = answer.json
        assert (answer.status, started["status"], started["seconds"], started["size"]) == (
            202,
            "queued",
            "4",
            "1280x720",
        )
        assert set(started) == {"id", "object", "created_at", "status", "model", "seconds", "size", "metadata"}
        assert started["metadata"]["cost_estimate"] == Decimal("0.4")
        assert started["metadata"]["scene"] == "7"
        assert await house.money() == (nanos("9.6"), nanos("0.4"))
        done = await house.finished(started["id"])
        assert (done["status"], done["error"], done["prompt"]) == ("completed", None, "a train")
        assert done["expires_at"] == done["completed_at"] + 86_400
        assert done["output"]["content_type"] == "video/mp4"
        assert done["metadata"]["cost"] == Decimal("0.4"), "what the gateway knows wins"
        assert "cost_estimate" not in done["metadata"]
        assert done["metadata"]["upstream_id"] == house.lab.invoice[0].id
        assert await house.money() == (nanos("9.6"), 0)


@sqlite_only
async def test_several_videos_in_one(open_house: OpenHouse) -> None:
    async with open_house() as house:
        started = (await house.video(n=3)).json
        assert started["metadata"]["cost_estimate"] == Decimal("1.2")
        done = await house.finished(started["id"])
        assert len(done["outputs"]) == 3
        assert done["outputs"][0] == done["output"]
        assert done["metadata"]["cost"] == Decimal("1.2")
        assert len(house.lab.invoice) == 3


@sqlite_only
async def test_some_of_several_fail(open_house: OpenHouse) -> None:
    """What was delivered is billed."""
    async with open_house() as house:
        house.lab.videos.next(faults.ok, faults.fails, faults.ok)
        done = await house.finished((await house.video(n=3)).json["id"])
        assert (done["status"], len(done["outputs"]), done["metadata"]["cost"]) == ("completed", 2, Decimal("0.8"))


@sqlite_only
async def test_a_dry_run_does_nothing(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answer = await house.video(query={"dryRun": "true"}, idempotency_key="k", seconds=8)
        assert answer.status == 200
        assert (answer.json["estimated"], answer.json["total_cost_micros"]) == (True, 800_000)
        assert await house.records() == []
        assert house.lab.submits == 0
        assert await house.money() == (nanos("10"), 0)


# ---------------------------------------------------------------------------------------------------------- idempotency


async def test_fifty_creates_with_one_key(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answers = await asyncio.gather(*(house.video(idempotency_key="k", webhook_url=HOOK) for _ in range(50)))
        assert {answer.status for answer in answers} == {202}
        (video_id,) = {answer.json["id"] for answer in answers}
        assert [answer.headers.get("idempotent-replayed") for answer in answers].count("true") == 49
        await house.ended(video_id)
        assert len(house.lab.videos) == 1
        assert len(await house.rows("SELECT id FROM messages")) == 1
        assert await house.money() == (nanos("9.6"), 0)


@postgres_only
async def test_fifty_creates_over_two_processes(open_house: OpenHouse) -> None:
    async with open_house() as house, open_house(labs=(house.lab, house.annex), works=False, worker=False) as other:
        answers = await asyncio.gather(
            *((house if number % 2 else other).video(idempotency_key="k") for number in range(50))
        )
        assert len({answer.json["id"] for answer in answers}) == 1
        await house.ended(answers[0].json["id"], step_seconds=3)
        assert len(house.lab.invoice) == 1


@sqlite_only
async def test_a_key_that_comes_again_later(open_house: OpenHouse) -> None:
    """The same video in its present state: finished, failed, a day later, purged."""
    async with open_house() as house:
        house.lab.videos.next(faults.ok, faults.fails)
        first, second = [(await house.video(idempotency_key=key)).json["id"] for key in ("a", "b")]
        await house.ended(first)
        await house.ended(second)
        house.clock.advance(25 * 3600)
        again = [await house.video(idempotency_key=key) for key in ("a", "b")]
        assert [answer.json["id"] for answer in again] == [first, second]
        assert [answer.json["status"] for answer in again] == ["completed", "failed"]
        await house.purge(first)
        assert (await house.video(idempotency_key="a")).json["id"] == first
        assert (await house.shown(first))["output"] is None
        assert len(house.lab.videos) == 2


@sqlite_only
async def test_a_key_with_another_body(open_house: OpenHouse) -> None:
    async with open_house() as house:
        first = await house.video(idempotency_key="k")
        same, other = await house.video(idempotency_key="k"), await house.video(idempotency_key="k", prompt="a ship")
        assert first.json["id"] == same.json["id"] == other.json["id"]
        assert [one.headers.get("idempotency-mismatch") for one in (first, same, other)] == [None, None, "true"]
        await house.idle()
        assert len(house.lab.invoice) == 1


@sqlite_only
async def test_a_key_belongs_to_its_organization(open_house: OpenHouse) -> None:
    async with open_house() as house:
        mine, theirs = (
            await house.video(idempotency_key="k"),
            await house.video(idempotency_key="k", caller=await house.another()),
        )
        assert mine.json["id"] != theirs.json["id"]
        await house.idle()


@sqlite_only
async def test_refused_calls_burn_no_key(open_house: OpenHouse) -> None:
    async with open_house(starting_credit_usd="0.5") as house:
        poor = await house.key_for(usd_a_day="0.01")
        for body, caller in (
            ({"prompt": ""}, house.caller),
            ({"model": "nonesuch"}, house.caller),
            ({"seconds": 100}, house.caller),
            ({}, poor),
        ):
            with pytest.raises(Problem):
                await house.video(idempotency_key="k", caller=caller, **body)
        answer = await house.video(idempotency_key="k")
        assert "idempotent-replayed" not in answer.headers
        await house.idle()


@pytest.mark.parametrize(("key", "good"), [("k" * 256, True), ("k" * 257, False), ("", False), ("  ", False)])
@sqlite_only
async def test_the_length_of_keys(open_house: OpenHouse, key: str, good: bool) -> None:
    async with open_house() as house:
        if good:
            await house.video(idempotency_key=key)
            await house.idle()
        else:
            with pytest.raises(InvalidRequest, match="idempotency_key"):
                await house.video(idempotency_key=key)


# --------------------------------------------------------------------------------------------------------------- cancel


async def test_cancelling_what_was_not_begun(open_house: OpenHouse) -> None:
    async with open_house(works=False, worker=False) as house:
        video_id = (await house.video(webhook_url=HOOK)).json["id"]
        assert (await house.cancel(video_id)).status == 204
        shown = await house.shown(video_id)
        assert (shown["status"], shown["error"]["code"]) == ("failed", "CANCELLED")
        assert "cost_estimate" not in shown["metadata"]
        record = await house.record(video_id)
        assert (record["status"], record["cost"], record["error_code"]) == ("cancelled", 0, "CANCELLED")
        assert await house.money() == (nanos("10"), 0)
        (message,) = await house.rows("SELECT event FROM messages")
        assert message["event"] == "video.cancelled"
        assert house.lab.submits == 0


async def test_cancelling_what_a_provider_makes(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.videos.always(faults.never_ends)
        video_id = (await house.video(webhook_url=HOOK)).json["id"]
        await house.lab.videos.reached(1)
        await asyncio.gather(*(house.cancel(video_id) for _ in range(20)))
        record = await house.ended(video_id)
        assert (record["status"], record["cost"]) == ("cancelled", 0)
        assert house.lab.invoice == []
        assert await house.money() == (nanos("10"), 0)
        assert len(await house.rows("SELECT id FROM messages")) == 1


@sqlite_only
async def test_cancelling_what_a_provider_will_not_stop(open_house: OpenHouse) -> None:
    """Whichever comes first: it is finished, and billed."""
    async with open_house() as house:
        house.lab.cancels.always(faults.broken)
        video_id = (await house.video()).json["id"]
        await house.lab.videos.reached(1)
        await house.cancel(video_id)
        done = await house.finished(video_id)
        assert (done["status"], done["metadata"]["cost"]) == ("completed", Decimal("0.4"))


@sqlite_only
async def test_a_cancel_that_comes_too_late_for_the_provider(open_house: OpenHouse) -> None:
    """It takes the cancel, and says that it had finished: then it had."""
    async with open_house() as house:
        house.lab.videos.next(faults.film("queued", "completed"))
        house.lab.cancels.always(faults.file(b"{}", "application/json"))
        video_id = (await house.video()).json["id"]
        await house.lab.videos.reached(1)
        await house.cancel(video_id)
        assert (await house.finished(video_id))["status"] == "completed"


@sqlite_only
async def test_cancelling_what_is_finished(open_house: OpenHouse) -> None:
    async with open_house() as house:
        done = await house.finished((await house.video()).json["id"])
        assert (await house.cancel(done["id"])).status == 204
        assert await house.shown(done["id"]) == done
        assert await house.money() == (nanos("9.6"), 0)


async def test_a_cancelled_video_is_not_begun_elsewhere(open_house: OpenHouse) -> None:
    """The provider that has it cannot stop it, and then fails: nobody else is asked."""
    async with open_house(annex=True) as house:
        house.lab.videos.next(faults.fails)
        house.lab.cancels.always(faults.broken)
        video_id = (await house.video()).json["id"]
        await house.lab.videos.reached(1)
        await house.cancel(video_id)
        record = await house.ended(video_id)
        assert (record["status"], record["cost"]) == ("cancelled", 0)
        assert len(house.annex.videos) == 0


@sqlite_only
async def test_cancelling_somebody_elses(open_house: OpenHouse) -> None:
    async with open_house() as house:
        video_id = (await house.video()).json["id"]
        call = house.call(id=video_id, caller=await house.another())
        with pytest.raises(NotFound):
            await endpoints.cancel_video(house.gateway, call)
        assert (await house.finished(video_id))["status"] == "completed"


# ------------------------------------------------------------------------------------------------------------- failover


@sqlite_only
async def test_the_next_provider_is_asked(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.always(faults.broken)
        made = await house.image()
        assert made["metadata"]["executed_model"] == "annex/easel-1"
        assert [one["outcome"] for one in made["metadata"]["attempts"]] == ["broken", "made"]
        assert await house.money() == (nanos("9.96"), 0)
        assert (len(house.lab.invoice), len(house.annex.invoice)) == (0, 1)


@pytest.mark.parametrize("act", [faults.busy(3), faults.unauthorized, faults.empty, faults.page, faults.rejected])
@sqlite_only
async def test_what_another_provider_may_do_better(open_house: OpenHouse, act: Any) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.next(act)
        assert (await house.image())["metadata"]["provider"] == "annex"


@sqlite_only
async def test_every_provider_fails(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.always(faults.broken)
        house.annex.images.always(faults.broken)
        with pytest.raises(AllProvidersExhausted) as caught:
            await house.image()
        assert caught.value.should_retry is False
        (row,) = await house.records()
        assert (row["status"], row["error_code"], row["cost"]) == ("upstream_failure", "ALL_PROVIDERS_EXHAUSTED", 0)
        assert await house.money() == (nanos("10"), 0)


@sqlite_only
async def test_a_refusal_of_content_ends_it(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.next(faults.blocked)
        with pytest.raises(ContentPolicyViolation, match="safety system"):
            await house.image()
        assert house.annex.submits == 0


@sqlite_only
async def test_a_forced_provider_stands_alone(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.next(faults.broken)
        with pytest.raises(UpstreamError):
            await house.image(model="lab/picture")
        assert house.annex.submits == 0
        assert (await house.image(model="annex/easel-1"))["metadata"]["provider"] == "annex"


@sqlite_only
async def test_busy_everywhere_says_when_to_come_back(open_house: OpenHouse) -> None:
    async with open_house(annex=True) as house:
        house.lab.images.next(faults.busy(7))
        house.annex.images.next(faults.busy(9999))
        with pytest.raises(AllProvidersExhausted) as caught:
            await house.image()
        assert caught.value.headers["retry-after"] == "120", "no longer than clients heed"
        assert caught.value.should_retry is True


# ---------------------------------------------------------------------------------------------------------------- money


async def test_prices_are_those_of_the_promise(open_house: OpenHouse) -> None:
    """A video is promised at one price; the gateway restarts with another before it is finished."""
    dear = {"film": {"price": {"unit": "second", "usd": "99"}}}
    async with neighbours() as labs:
        async with open_house(labs=labs) as house:
            labs[0].videos.next(faults.never_ends)
            video_id = (await house.video()).json["id"]
            await labs[0].videos.reached(1)
        next(iter(labs[0].films.values())).states.append("completed")
        async with open_house(labs=labs, models=dear) as house:
            done = await house.finished(video_id)
            assert done["metadata"]["cost"] == Decimal("0.4")
            assert (await house.video(query={"dryRun": "true"})).json["total_cost_micros"] == 396_000_000


async def test_a_provider_that_charges_more_than_was_held(open_house: OpenHouse) -> None:
    """Tokens are held up to a ceiling; three times as many are reported. The caller pays the ceiling, we the rest."""
    price = {"unit": "token", "output_usd": "0.0001", "most": 1000}
    async with open_house(models={"picture": {"price": price}}, starting_credit_usd="0.1") as house:
        house.lab.usage = {"input_tokens": 0, "output_tokens": 3000}
        made = await house.image()
        assert made["metadata"]["cost"] == Decimal("0.1")
        assert await house.money() == (0, 0)
        assert await house.transfers(made["id"]) == {
            "hold": nanos("0.1"), "post": nanos("0.1"), "loss": nanos("0.2")
        }  # fmt: skip


@sqlite_only
async def test_a_provider_that_charges_less(open_house: OpenHouse) -> None:
    price = {"unit": "token", "output_usd": "0.0001", "most": 1000}
    async with open_house(models={"picture": {"price": price}}) as house:
        house.lab.usage = {"input_tokens": 0, "output_tokens": 1}
        made = await house.image()
        assert made["metadata"]["cost"] == Decimal("0.0001")
        assert await house.money() == (nanos("9.9999"), 0)


@sqlite_only
async def test_tiny_prices_are_rounded_once(open_house: OpenHouse) -> None:
    """Four films of four seconds at 0.1 nano-dollars a second: 1.6, and so 2, not four times nothing."""
    async with open_house(models={"film": {"price": {"unit": "second", "usd": "0.0000000001"}}}) as house:
        done = await house.finished((await house.video(n=4)).json["id"])
        assert done["metadata"]["cost"] == Decimal("0.000000002")


# ---------------------------------------------------------------------------------------------------------------- purge

CANARY = "zxcanary-0147258369"


async def purged(house: House, **body: Any) -> dict[str, Any]:
    """A finished video that says the canary wherever a caller can, and is then purged."""
    video = await house.video(prompt=CANARY, metadata={"note": CANARY}, negative_prompt=CANARY, **body)
    await house.ended(video.json["id"])
    answer: dict[str, Any] = await house.purge(video.json["id"])
    return answer


async def test_a_purge_forgets_what_was_said_and_made(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answer = await purged(house)
        video_id = answer["id"]
        assert answer == {"id": video_id, "purged": True, "already_purged": False, "media_deleted": 1}
        shown = await house.shown(video_id)
        assert (shown["prompt"], shown["output"], shown["status"]) == ("", None, "completed")
        assert shown["metadata"]["cost"] == Decimal("0.4")
        assert "note" not in shown["metadata"]
        record = await house.record(video_id)
        assert (record["status"], record["cost"], record["model"]) == ("completed", Decimal("0.4"), "film")
        again = await house.purge(video_id)
        assert again == {"id": video_id, "purged": True, "already_purged": True, "media_deleted": 0}
        with pytest.raises(NotFound):
            await retrieve.video_content(house.gateway, house.call(id=video_id))


def traces(folder: Path, word: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


@sqlite_only
async def test_a_purge_leaves_no_trace_on_the_disk(open_house: OpenHouse) -> None:
    """Not in the database, its log, the media, or what is left over; while the gateway runs and after it."""
    async with open_house() as house:
        data = house.gateway.settings.data
        reference = {"image_url": "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()}
        house.lab.polls.next(faults.altered(error={"code": "x", "message": CANARY}))
        await purged(house, webhook_url=HOOK, input_reference=reference)
        assert traces(data, CANARY) == []
        media = [path for path in (data / "media").rglob("*") if path.is_file()]
        assert media == []
        other = await house.video(prompt="kept-7777")
        await house.ended(other.json["id"])
        assert traces(data, "kept-7777"), "so that finding nothing means something"
    assert traces(data, CANARY) == []


@sqlite_only
async def test_a_purge_forgets_what_a_provider_said(open_house: OpenHouse) -> None:
    """Providers like to quote; their words are in the record, the attempts and the event."""
    async with open_house() as house:
        house.lab.videos.next(faults.error(400, f"I will not draw {CANARY}.", "moderation_blocked"))
        await purged(house, webhook_url=HOOK)
        assert traces(house.gateway.settings.data, CANARY) == []


@sqlite_only
async def test_a_purge_that_was_interrupted(open_house: OpenHouse) -> None:
    async with open_house() as house:
        video_id = (await house.video(prompt=CANARY)).json["id"]
        await house.ended(video_id)
        with tripping("purge.files_gone"), pytest.raises(Tripped):
            await house.purge(video_id)
        assert (await house.purge(video_id))["already_purged"] is False
        assert traces(house.gateway.settings.data, CANARY) == []


@sqlite_only
async def test_a_running_request_is_not_purged(open_house: OpenHouse) -> None:
    async with open_house() as house:
        house.lab.videos.next(faults.never_ends)
        video_id = (await house.video()).json["id"]
        with pytest.raises(Conflict) as caught:
            await house.purge(video_id)
        assert caught.value.should_retry is False


@sqlite_only
async def test_others_requests_are_not_purged(open_house: OpenHouse) -> None:
    async with open_house() as house:
        video_id = (await house.finished((await house.video()).json["id"]))["id"]
        call = house.call(request_id=video_id, caller=await house.another())
        with pytest.raises(NotFound):
            await endpoints.purge(house.gateway, call)


# -------------------------------------------------------------------------------------------------------------- secrets


@sqlite_only
async def test_the_providers_key_stays_with_us(open_house: OpenHouse) -> None:
    """A provider that echoes its key in the error: the caller, the record and the disk never see it."""
    async with open_house() as house:
        house.lab.images.always(faults.unauthorized)
        house.lab.videos.always(faults.unauthorized)
        with pytest.raises(Problem) as caught:
            await house.image()
        assert "did not accept the gateway's account" in caught.value.message
        assert (await house.ended((await house.video()).json["id"]))["status"] == "upstream_failure"
        assert KEY not in repr(await house.records()) + repr(caught.value.body())
        assert traces(house.gateway.settings.data, KEY) == []
        assert not house.gateway.health.report()[0]["good"]
