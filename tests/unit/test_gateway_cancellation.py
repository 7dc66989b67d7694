"""Calls and jobs may be cancelled wherever they wait: afterwards nothing is lost, charged twice or taken for ever.

A call, or a job, is cancelled at its first wait, the next one at its second, and so on, until one ends before.
"""

import asyncio
import base64
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest

from penstock.chat.endpoint import complete_chat
from penstock.errors import NotFound
from penstock.generations import endpoints
from penstock.jobs import leases
from penstock.jobs.leases import Jobs, Run
from penstock.jobs.running import RunningJob
from penstock.recordings import files
from penstock.schema import Response
from penstock.store.postgres import PostgresStore
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, exported

IMAGE = "data:image/png;base64," + base64.b64encode(png(64, 64)).decode()
PEAR = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}]}


class CancelledAtWait:
    """Awaits some work, and cancels the task as soon as it waits for this time or a later one, and may be cancelled."""

    def __init__(self, work: Coroutine[Any, Any, Any], number: int, may_cancel: Callable[[], bool]) -> None:
        self._work = work
        self._number = number
        self._may_cancel = may_cancel
        self.is_cancelled = False

    def __await__(self) -> Generator[Any, Any, Any]:
        resume: Callable[[Any], Any] = self._work.send
        value: Any = None
        for number in count(1):
            try:
                awaited = resume(value)
            except StopIteration as end:
                return end.value
            task = asyncio.current_task()
            if task and number >= self._number and not self.is_cancelled and self._may_cancel():
                self.is_cancelled = True
                task.cancel()
            try:
                value = yield awaited
                resume = self._work.send
            except BaseException as error:
                value = error
                resume = self._work.throw
        return None


def taken(running: RunningGateway) -> dict[str, int]:
    """What calls and jobs take while they run, and must give back."""
    gateway = running.gateway
    http = gateway.upstream._http
    balances = gateway.chat_reservations._balances.values()
    found = {
        "jobs": gateway.jobs.running,
        "connections": len(http._in_loop._connections) - sum(map(len, http._in_loop._idle.values())),
        "lookups": http._lookups._occupied.total(),
        "places for images": sum(share.running for share in gateway.worker_pool._places._shares.values()),
        "places for webhooks": gateway.deliveries._places._taken,
        "reserved": sum(balance.reserved + balance.being_held for balance in balances),
    }
    if isinstance(gateway.store, PostgresStore):
        stats = gateway.store._pool.get_stats()
        found["connections to Postgres"] = stats["pool_size"] - stats["pool_available"]
    return {name: number for name, number in found.items() if number}


async def wait_until_given_back(running: RunningGateway) -> None:
    """Wait until nothing is taken; if something stays taken, the message says what."""
    try:
        async with asyncio.timeout(200):
            while taken(running):
                await asyncio.sleep(0.001)
                running.clock.advance(0.05)
    except TimeoutError:
        pytest.fail(f"taken for ever: {taken(running)}")


# --------------------------------------------------------------------------------------------------------------- calls


async def cancel_at_each_wait(running: RunningGateway, call: Callable[[], Coroutine[Any, Any, object]]) -> int:
    """Make calls, each cancelled at a later wait than the one before; return how many were cancelled."""
    for number in count(1):
        cancelled = CancelledAtWait(call(), number, lambda: True)

        async def work(cancelled: CancelledAtWait = cancelled) -> None:
            await cancelled

        with suppress(asyncio.CancelledError):
            await asyncio.create_task(work())
        await wait_until_given_back(running)
        if not cancelled.is_cancelled:
            return number - 1
    raise AssertionError("a call has an end")


async def read_stream(response: Response) -> None:
    assert response.chunks is not None
    async for _ in response.chunks:
        pass


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_may_be_cancelled_at_each_wait(open_gateway: OpenGateway, stream: bool) -> None:
    async with open_gateway() as running:

        async def chat() -> None:
            call = running.call({**CHAT, "stream": stream}, endpoint="/compat/v1/chat/completions")
            response = await complete_chat(running.gateway, call)
            if stream:
                await read_stream(response)

        assert await cancel_at_each_wait(running, chat) > 1
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert (await running.money())[1] == 0, "nothing is held"
        assert {record["status"] for record in await running.records()} <= {"completed", "cancelled"}


@pytest.mark.parametrize("kind", ["purge of a request", "deletion of a recording", "import of a recording"])
@pytest.mark.sweep(3)
async def test_calls_that_change_files_may_be_cancelled_at_each_wait_and_repeated(
    open_gateway: OpenGateway, kind: str
) -> None:
    """Files and rows are changed one after the other: repeating the call completes what it has begun."""
    async with open_gateway() as running:
        recordings = running.gateway.recordings
        org_id = running.caller.org_id

        async def record() -> tuple[str, str]:
            call = running.call(PEAR, endpoint="/image", headers={"x-service-replay": "record"})
            response = await endpoints.make_images(running.gateway, call)
            return call.id, response.headers["x-service-replay-recording"]

        async def change(request_id: str, recording_id: str, document: Any) -> None:
            if kind == "purge of a request":
                await running.purge(request_id)
            elif kind == "deletion of a recording":
                with suppress(NotFound):  # the first one may have been complete
                    await recordings.delete(org_id, recording_id)
            else:
                store, pool = running.gateway.store, running.gateway.worker_pool
                await files.import_recording(store, recordings, org_id, document, {}, 0, pool=pool)

        for number in count(1):
            ids = await record()
            exported_file = await exported(recordings, await recordings.get(org_id, ids[1]))
            document = {**msgspec.json.decode(msgspec.json.encode(exported_file)), "duration_ms": number}
            cancelled = CancelledAtWait(change(*ids, document), number, lambda: True)

            async def work(cancelled: CancelledAtWait = cancelled) -> None:
                await cancelled

            with suppress(asyncio.CancelledError):
                await asyncio.create_task(work())
            await wait_until_given_back(running)
            await change(*ids, document)
            assert await running.run_audit() == []
            if kind != "import of a recording":  # one that was cancelled may leave files, which are deleted as strays
                assert "rfl_" not in str(await running.storage.list_files())
            if not cancelled.is_cancelled:
                break
        assert number > 2
        stored = await recordings.all(org_id)
        assert len(stored) == (2 * number if kind == "import of a recording" else 0)
        for recording in stored:
            await exported(recordings, await recordings.get(org_id, recording.id))


@pytest.mark.parametrize("kind", ["image", "edit", "video"])
async def test_a_call_for_media_may_be_cancelled_at_each_wait(open_gateway: OpenGateway, kind: str) -> None:
    """Whether it was accepted or not: what was accepted is made, once, and nothing else is charged."""
    async with open_gateway() as running:

        async def call() -> None:
            if kind == "image":
                await running.image(output_format="jpeg")
            elif kind == "edit":
                await running.edit(image=IMAGE)
            else:
                body = {"model": "video-1", "prompt": "x", "seconds": 4, "input_reference": {"image_url": IMAGE}}
                await endpoints.start_video(running.gateway, running.call(body))

        assert await cancel_at_each_wait(running, call) > 1
        ended = [await running.wait_for_request(record["id"], 0.05) for record in await running.records()]
        assert {record["status"] for record in ended} == {"completed"}
        assert running.lab.submits == len(ended)
        assert (await running.money())[1] == 0, "nothing is held"


# ---------------------------------------------------------------------------------------------------------------- jobs


class Stopper:
    """Cancels the first run of each job at a wait, as a process that stops does: not while it sends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 1
        self.runs: dict[str, CancelledAtWait] = {}
        self.jobs: dict[str, RunningJob] = {}
        original = Jobs._run_job

        async def run_job(jobs: Jobs, job: RunningJob, run: Run | None) -> None:
            work = original(jobs, job, run)
            if job.id in self.runs:
                await work
                return
            self.jobs[job.id] = job
            self.runs[job.id] = CancelledAtWait(work, self.number, lambda: job.send_guard.may_stop)
            await self.runs[job.id]

        monkeypatch.setattr(Jobs, "_run_job", run_job)


BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "image": ("/compat/v1/images/generations", {"model": "image-1", "size": "64x64", "output_format": "jpeg"}),
    "edit": ("/compat/v1/images/edits", {"model": "edit-1", "size": "64x64", "image": IMAGE}),
    "video": ("/compat/v1/videos", {"model": "video-1", "seconds": 4, "input_reference": {"image_url": IMAGE}}),
    "several videos": ("/compat/v1/videos", {"model": "video-1", "seconds": 4, "n": 2}),
    "recorded video": ("/compat/v1/videos", {"model": "video-1", "seconds": 4}),
}
ENDPOINTS = {
    "/compat/v1/images/generations": endpoints.make_images,
    "/compat/v1/images/edits": endpoints.edit_images,
    "/compat/v1/videos": endpoints.start_video,
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.sweep(3)
async def test_a_job_may_be_stopped_at_each_wait_and_goes_on(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path, body = BODIES[kind]
    stopper = Stopper(monkeypatch)
    async with open_gateway() as running:
        for number in count(1):
            stopper.number = number
            headers = {"prefer": "respond-async", "x-service-replay": "record" if kind == "recorded video" else "off"}
            call = running.call({**body, "prompt": "a pear"}, endpoint=path, headers=headers)
            await ENDPOINTS[path](running.gateway, call)
            await running.wait_until(partial(_has_run, running, call.id, stopper), 0.05)
            await running.gateway.store.write(partial(leases._release_leases, [stopper.jobs[call.id]]))
            await running.gateway.jobs.resume()
            assert (await running.wait_for_request(call.id, 0.05))["status"] == "completed"
            await wait_until_given_back(running)
            if not stopper.runs[call.id].is_cancelled:
                break
        assert number > 1 or path != "/compat/v1/videos", "an image is only in memory, so it is made to its end"
        assert running.lab.submits == number * body.get("n", 1), "nothing was sent twice"
        assert (await running.money())[1] == 0, "nothing is held"


async def _has_run(running: RunningGateway, request_id: str, stopper: Stopper) -> bool:
    return request_id in stopper.runs and request_id not in running.gateway.jobs._running
