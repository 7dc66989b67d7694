"""Effects and music as jobs: their money, idempotency keys, failures, formats, waits and replays."""

import asyncio
from typing import Any

import pytest

from penstock.errors import InsufficientBalance, InvalidRequest
from penstock.generations.cancel import cancel_sound
from penstock.values import nanos
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.generations.sound_calls import finished, shown, start

TWO_SECONDS = 20_000_000  # nanos


async def test_a_sound_is_charged_by_the_second_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        started = await start(running)
        assert started.status == 202
        assert (started.json["object"], started.json["status"], started.json["seconds"]) == ("audio", "queued", "2")
        record = await running.wait_for_request(started.json["id"])
        assert (record["status"], record["modality"], record["kind"]) == ("completed", "speech", "sound")
        assert nanos(record["cost"]) == TWO_SECONDS, "what the encoder adds at the end is not charged"
        assert await running.money() == (available - TWO_SECONDS, 0)
        assert running.lab.bill_usd * 10**9 == TWO_SECONDS
        body = await shown(running, started.json["id"])
        assert body["output"]["content_type"] == "audio/mpeg"
        assert body["output"]["seconds"] == pytest.approx(2, abs=0.1)
        (sent,) = running.lab.effects.received
        assert sent.fields == {"text": "rain on a roof", "duration_seconds": 2, "model_id": "foley-1"}


@sqlite_only
async def test_a_sound_of_unknown_length_holds_the_longest_and_costs_what_it_is(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        held = (await start(running, seconds=None, query={"dryRun": "true"})).json
        assert held["total_cost_micros"] == 6_000_000, "600 seconds"
        made = await finished(running, seconds=None)
        assert float(made["metadata"]["cost"]) == pytest.approx(0.07, abs=0.002)


@sqlite_only
@pytest.mark.parametrize(("output_format", "found"), [("flac", "audio/flac"), ("opus", "audio/opus")])
async def test_every_format_is_made(open_gateway: OpenGateway, output_format: str, found: str) -> None:
    async with open_gateway() as running:
        assert (await finished(running, response_format=output_format))["output"]["content_type"] == found


@sqlite_only
async def test_several_sounds_have_a_file_each(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await finished(running, n=3)
        assert len(made["outputs"]) == 3
        assert float(made["metadata"]["cost"]) == pytest.approx(0.06)
        assert len(running.lab.effects) == 3


async def test_a_repeated_key_returns_the_first_sound(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = await start(running, idempotency_key="k")
        await running.wait_for_request(first.json["id"])
        again = await start(running, idempotency_key="k")
        other = await start(running, idempotency_key="k", prompt="thunder")
        assert again.json["id"] == other.json["id"] == first.json["id"]
        assert "idempotency-mismatch" not in again.headers
        assert other.headers["idempotency-mismatch"] == "true"
        assert (await start(running, idempotency_key=None)).json["id"] != first.json["id"]
        assert len(running.lab.effects.received) <= 2
        video = await running.video(idempotency_key="k")
        assert video.json["id"] != first.json["id"], "keys of videos and sounds do not meet"
        await running.wait_for_request(video.json["id"])


@sqlite_only
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"seconds": 900}, "seconds"),
        ({"seconds": 0.1}, "seconds"),
        ({"seconds": "long"}, "seconds"),
        ({"duration": 3}, "duration"),
        ({"lyrics": "la la"}, "lyrics"),
        ({"negative_prompt": "drums"}, "negative_prompt"),
        ({"output_format": "pcm"}, "output_format"),
        ({"output_format": "mp3", "response_format": "wav"}, "response_format"),
        ({"n": 5}, "n"),
        ({"model": "lab/voice"}, "model"),
        ({"model": "image-1"}, "model"),
        ({"webhook_url": "http://127.0.0.1/x"}, "webhook_url"),
        ({"metadata": {"a": 1}}, "metadata"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_held(
    open_gateway: OpenGateway, body: dict[str, Any], param: str
) -> None:
    async with open_gateway() as running:
        before = await running.money()
        with pytest.raises(InvalidRequest) as caught:
            await start(running, **body)
        assert caught.value.param == param
        assert await running.money() == before
        assert not running.lab.submits


@sqlite_only
async def test_a_call_that_the_balance_does_not_cover_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        poor = await running.create_caller_in_new_org("0.01")
        with pytest.raises(InsufficientBalance):
            await start(running, caller=poor)


@sqlite_only
@pytest.mark.parametrize(
    "fault",
    [faults.error(400, "No."), faults.raw(b"{}"), faults.raw(b"", "audio/mpeg"), faults.raw(b"ID3" + bytes(99))],
)
async def test_a_sound_that_fails_costs_nothing(open_gateway: OpenGateway, fault: Any) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.effects.always(fault)
        body = await finished(running)
        assert body["status"] == "failed"
        assert body["output"] is None
        assert body["error"]["code"]
        assert await running.money() == before


@sqlite_only
async def test_a_caller_may_wait_for_the_end(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        waiting = asyncio.ensure_future(start(running, headers={"prefer": "wait=30"}))

        async def met() -> bool:
            return bool(waiting.done())

        await running.wait_until(met)
        response = await waiting
        assert (response.status, response.json["status"]) == (200, "completed")
        assert response.headers["preference-applied"] == "wait"
        assert response.json["output"]["url"]


@sqlite_only
async def test_a_caller_waits_only_as_long_as_it_prefers(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        running.lab.effects.next(gate)
        for preference in ("respond-async", "wait=0", "wait=soon", "handling=lenient"):
            assert (await start(running, headers={"prefer": preference})).status == 202
        gate.open()


@sqlite_only
async def test_a_sound_that_waits_at_its_provider_is_cancelled(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        before = await running.money()
        job = (await start(running)).json["id"]
        assert (await cancel_sound(running.gateway, running.call(id=job))).status == 204
        record = await running.wait_for_request(job)
        assert record["status"] == "cancelled"
        assert await running.money() == before


async def test_a_sound_is_recorded_and_replayed_for_free(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = await start(running, headers={"x-service-replay": "record"})
        await running.wait_for_request(first.json["id"])
        available, _ = await running.money()
        again = await start(running, prompt="other words", headers={"x-service-replay": "replay-or-error"})
        record = await running.wait_for_request(again.json["id"])
        assert (record["status"], record["cost"]) == ("completed", 0)
        assert await running.money() == (available, 0)
        assert len(running.lab.effects.received) == 1
        old, new = await shown(running, first.json["id"]), await shown(running, again.json["id"])
        assert old["output"]["size_bytes"] == new["output"]["size_bytes"]
        assert old["output"]["url"] != new["output"]["url"]


@sqlite_only
async def test_the_built_in_renderer_mocks_a_sound(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        started = await start(running, seconds=1, headers={"x-service-replay": "mock"})
        record = await running.wait_for_request(started.json["id"])
        assert (record["status"], record["cost"]) == ("completed", 0)
        made = await shown(running, started.json["id"])
        assert made["output"]["seconds"] == pytest.approx(1, abs=0.1)
        assert not running.lab.submits


@sqlite_only
@pytest.mark.parametrize("model", ["atelier/sound", "atelier/music"])
async def test_the_built_in_models_make_a_sound(open_gateway: OpenGateway, model: str) -> None:
    async with open_gateway(disabled_providers=()) as running:
        made = await finished(running, model=model, prompt="a calm bell", seconds=3)
        assert made["status"] == "completed"
        assert made["output"]["seconds"] == pytest.approx(3, abs=0.1)
        assert float(made["metadata"]["cost"]) == pytest.approx(0.0006)
        failed = await finished(running, model=model, prompt="[fail] it", seconds=3)
        assert failed["status"] == "failed"


@sqlite_only
async def test_a_sound_waits_until_a_busy_provider_has_time(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.effects.next(faults.busy(), faults.busy(), faults.busy(), faults.busy(), faults.ok)
        made = await finished(running)
        assert made["status"] == "completed"
        assert len(running.lab.effects.received) == 5


@sqlite_only
async def test_a_sound_that_may_have_been_made_is_not_ordered_again(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        running.lab.effects.next(faults.dropped)
        failed = await finished(running)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert len(running.lab.effects.received) == 1
        assert await running.money() == before
