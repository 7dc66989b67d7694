"""Recordings and mocks: one recording for alike calls, takeover when it fails, cancel while waiting."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from penstock.errors import Problem
from penstock.generation_jobs import playback
from penstock.generations import endpoints, retrieve
from penstock.media.storage import Folder
from tests.api.raw_http import until
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only, two_providers

IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
VIDEO = {"model": "video-1", "prompt": "a train", "seconds": 4, "size": "128x128"}
OR_RECORD = {"x-service-replay": "replay-or-record"}


async def image(running: RunningGateway, headers: dict[str, str]) -> dict[str, str]:
    response = await endpoints.make_images(running.gateway, running.call(IMAGE, endpoint="/image", headers=headers))
    return dict(response.headers)


async def together(running: RunningGateway, count: int) -> list[dict[str, str] | BaseException]:
    """Calls made at once, while time passes."""
    calls = asyncio.gather(*(image(running, OR_RECORD) for _ in range(count)), return_exceptions=True)

    async def met() -> bool:
        return calls.done()

    await running.wait_until(met)
    return list(await calls)


async def test_alike_calls_make_one_recording_and_one_upstream_call(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        responses = await together(running, 5)
        assert len(running.lab.invoice) == 1
        recordings = (await running.gateway.recordings.page(running.caller.org_id)).data
        assert len(recordings) == 1
        stands = sorted(response["x-service-replay-status"] for response in responses if isinstance(response, dict))
        assert stands == ["recorded", *["replayed"] * 4]
        assert {response["x-service-replay-recording"] for response in responses if isinstance(response, dict)} == {
            recordings[0].id
        }


@sqlite_only
async def test_many_that_follow_one_ask_for_its_end_together(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An organization can have thousands of them, and each question takes time of the event loop."""
    async with open_gateway() as running:
        gateway = running.gateway
        running.lab.videos.next(faults.never_ends)
        calls = [running.call(VIDEO, headers=OR_RECORD) for _ in range(21)]
        started = [await endpoints.start_video(gateway, call) for call in calls]
        leader = started[0].json["id"]
        questions: list[str] = []
        read_one = gateway.store.one

        async def count_and_read(name: str, /, **values: Any) -> Any:
            if values.get("id") == leader and name.startswith("get_generation"):
                questions.append(name)
            return await read_one(name, **values)

        monkeypatch.setattr(gateway.store, "one", count_and_read)
        for _ in range(5):
            running.clock.advance(1)
            await until(partial(lambda before: len(questions) > before, len(questions)))
        assert len(questions) <= 8, "not one for each of the twenty"
        await running.cancel(leader)
        for response in started:
            await running.wait_for_request(response.json["id"])


@sqlite_only
async def test_when_the_first_call_fails_the_next_one_records(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.error(500, "Oops."))
        responses = await together(running, 3)
        assert sum(isinstance(response, Problem) for response in responses) == 1
        assert sorted(response["x-service-replay-status"] for response in responses if isinstance(response, dict)) == [
            "recorded",
            "replayed",
        ]
        assert len((await running.gateway.recordings.page(running.caller.org_id)).data) == 1


@sqlite_only
async def test_alike_videos_follow_the_first(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        calls = [running.call(VIDEO, headers=OR_RECORD) for _ in range(3)]
        started = [await endpoints.start_video(running.gateway, call) for call in calls]
        assert [response.headers["x-service-replay-status"] for response in started] == [
            "recorded",
            "replayed",
            "replayed",
        ]
        for response in started:
            assert (await running.wait_for_request(response.json["id"]))["status"] == "completed"
        assert len(running.lab.invoice) == 1
        costs = [(await running.record(response.json["id"]))["cost"] for response in started]
        assert [cost > 0 for cost in costs] == [True, False, False]


@sqlite_only
async def test_videos_are_recorded_and_replayed_without_reading_them_into_memory(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have half a gigabyte each, and many of them may end at the same time."""

    def read(storage: Folder, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        raise AssertionError(f"{key} is read")

    monkeypatch.setattr(Folder, "read", read)
    async with open_gateway() as running:
        for status in ("recorded", "replayed"):
            started = await endpoints.start_video(running.gateway, running.call(VIDEO, headers=OR_RECORD))
            assert started.headers["x-service-replay-status"] == status
            assert (await running.wait_for_request(started.json["id"]))["status"] == "completed"
        sizes = [file.size_bytes for file in await running.storage.list_files()]
        assert (len(sizes), len(set(sizes)), sizes[0] > 0) == (3, 1, True), "the output, its recording, its replay"


@sqlite_only
async def test_a_replay_can_be_cancelled_while_it_waits(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first = await endpoints.start_video(
            running.gateway, running.call(VIDEO, headers={"x-service-replay": "record"})
        )
        await running.wait_for_request(first.json["id"])
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "1000,60000"}
        waiting = await endpoints.start_video(running.gateway, running.call(VIDEO, headers=headers))
        await running.cancel(waiting.json["id"])
        record = await running.wait_for_request(waiting.json["id"], 0.01)
        assert (record["status"], record["cost"]) == ("cancelled", 0)


@sqlite_only
async def test_a_replay_fails_when_its_recording_was_deleted(open_gateway: OpenGateway) -> None:
    """Accepted while there was a recording, and run by the next process when there is none."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            first = await endpoints.start_video(
                running.gateway, running.call(VIDEO, headers={"x-service-replay": "record"})
            )
            await running.wait_for_request(first.json["id"])
            recording = first.headers["x-service-replay-recording"]
        async with open_gateway(labs=labs, works=False, worker=False) as running:
            headers = {"x-service-replay": "replay-or-error"}
            again = await endpoints.start_video(running.gateway, running.call(VIDEO, headers=headers))
            await running.gateway.recordings.delete(running.caller.org_id, recording)
        async with open_gateway(labs=labs) as running:
            record = await running.wait_for_request(again.json["id"])
            assert (record["status"], record["error_code"]) == ("upstream_failure", "RECORDING_NOT_FOUND")


@sqlite_only
async def test_a_replay_fails_when_its_recording_is_deleted_while_it_waits(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not be completed without outputs."""
    async with open_gateway() as running:
        first = await endpoints.start_video(
            running.gateway, running.call(VIDEO, headers={"x-service-replay": "record"})
        )
        await running.wait_for_request(first.json["id"])
        wait_until_due = playback._wait_until_due

        async def purge_and_wait(*replay: Any) -> None:
            await running.purge(first.json["id"])
            await wait_until_due(*replay)

        monkeypatch.setattr(playback, "_wait_until_due", purge_and_wait)
        headers = {"x-service-replay": "replay-or-error", "x-service-replay-latency": "1000,1000"}
        waiting = await endpoints.start_video(running.gateway, running.call(VIDEO, headers=headers))
        record = await running.wait_for_request(waiting.json["id"])
        assert (record["status"], record["error_code"]) == ("upstream_failure", "RECORDING_NOT_FOUND")


@sqlite_only
async def test_a_purge_deletes_the_recordings_of_a_request(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = running.call(IMAGE, endpoint="/image", headers={"x-service-replay": "record"})
        await endpoints.make_images(running.gateway, made)
        assert (await running.purge(made.id))["media_deleted"] == 2
        assert (await running.gateway.recordings.page(running.caller.org_id)).data == []
        assert await running.storage.list_files() == []


@sqlite_only
async def test_a_replay_outlives_the_media_of_the_request_it_was_made_from(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = running.call(IMAGE, endpoint="/image", headers={"x-service-replay": "record"})
        await endpoints.make_images(running.gateway, made)
        running.clock.advance(3 * 86_400)
        await running.gateway.media.delete_expired()
        response = await image(running, {"x-service-replay": "replay-or-error"})
        assert response["x-service-replay-status"] == "replayed"


@sqlite_only
async def test_retrieving_reports_how_the_result_was_made(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        started = await endpoints.start_video(
            running.gateway, running.call(VIDEO, headers={"x-service-replay": "mock"})
        )
        await running.wait_for_request(started.json["id"])
        shown = await retrieve.video(running.gateway, running.call(id=started.json["id"]))
        assert shown.headers["x-service-replay-status"] == "mocked"
        plain = await endpoints.start_video(running.gateway, running.call(VIDEO))
        assert "x-service-replay-status" not in plain.headers
        await running.wait_for_request(plain.json["id"])


@pytest.mark.parametrize("kind", ["record", "mock"])
@sqlite_only
async def test_replays_and_mocks_cost_nothing(open_gateway: OpenGateway, kind: str) -> None:
    async with open_gateway() as running:
        before = await running.money()
        await image(running, {"x-service-replay": kind})
        after = await running.money()
        assert (after == before) is (kind == "mock")
