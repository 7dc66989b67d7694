"""A purge removes what a request said and made, everywhere, and keeps its times and its cost."""

import base64
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import Conflict, NotFound, PermissionDenied, StorageUnavailable
from penstock.failpoints import FailpointRaised
from penstock.generations import endpoints, retrieve
from penstock.generations.purge import purge
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, caller_with, failpoint_raises, files_with, sqlite_only
from tests.webhook_receivers import Receiver

HOOK = "https://receiver.example/hook"
CANARY = "zxcanary-0147258369"
INPUT = "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()


class Steps:
    """Every write to the store, and every file that is deleted; each of them can fail, with or without an effect."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, running: RunningGateway) -> None:
        self._passed = 0
        self._number = 0
        self._is_after = False
        for part, name in ((type(running.gateway.store), "write"), (type(running.storage), "delete")):
            monkeypatch.setattr(part, name, self._step(getattr(part, name)))

    @contextmanager
    def interrupted_at(self, number: int, *, is_after: bool) -> Iterator[None]:
        self._passed = 0
        self._number = number
        self._is_after = is_after
        try:
            yield
        finally:
            self._number = 0

    def _step(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def step(*arguments: Any, **options: Any) -> Any:
            self._passed += 1
            is_last = self._passed == self._number
            if is_last and not self._is_after:
                raise StorageUnavailable("interrupted")
            value = await function(*arguments, **options)
            if is_last:
                raise StorageUnavailable("interrupted", should_retry=False)
            return value

        return step


async def make_and_purge(running: RunningGateway, **body: Any) -> dict[str, Any]:
    """Make a video with the canary in each field that takes text, and purge it."""
    video = await running.video(prompt=CANARY, metadata={"note": CANARY}, negative_prompt=CANARY, **body)
    await running.wait_for_request(video.json["id"])
    response: dict[str, Any] = await running.purge(video.json["id"])
    return response


async def test_a_purge_removes_request_and_outputs(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await make_and_purge(running)
        video_id = response["id"]
        assert response == {"id": video_id, "purged": True, "already_purged": False, "media_deleted": 1}
        shown = await running.get_video(video_id)
        assert (shown["prompt"], shown["output"], shown["status"]) == ("", None, "completed")
        assert shown["metadata"]["cost"] == Decimal("0.4")
        assert "note" not in shown["metadata"]
        record = await running.record(video_id)
        assert (record["status"], record["cost"], record["model"]) == ("completed", Decimal("0.4"), "video-1")
        again = await running.purge(video_id)
        assert again == {"id": video_id, "purged": True, "already_purged": True, "media_deleted": 0}
        with pytest.raises(NotFound):
            await retrieve.video_content(running.gateway, running.call(id=video_id))


async def test_requests_of_other_keys_are_purged_by_admin_keys_only(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video = await running.video(prompt=CANARY)
        await running.wait_for_request(video.json["id"])
        other = await running.create_caller(running.caller.org_id)
        with pytest.raises(PermissionDenied, match="`admin`"):
            await purge(running.gateway, running.call(caller=other, request_id=video.json["id"]))
        assert (await running.record(video.json["id"]))["purged_at"] is None
        admin = caller_with(other, scopes=frozenset({"admin"}))
        await purge(running.gateway, running.call(caller=admin, request_id=video.json["id"]))
        assert (await running.record(video.json["id"]))["purged_at"] is not None


async def test_a_purge_forgets_the_webhook_url_and_the_idempotency_key(open_gateway: OpenGateway) -> None:
    """A message that is still to be delivered keeps its URL until its end, and is not delivered again after it."""
    async with open_gateway() as running:
        gateway = running.gateway
        gateway.sender._client = Receiver(running.clock, 500)
        video_id = (await running.video(webhook_url=HOOK, idempotency_key=CANARY)).json["id"]
        await running.wait_for_request(video_id)
        await running.purge(video_id)
        (row,) = await running.rows("SELECT webhook_url, idempotency_key FROM generations")
        assert row["webhook_url"] is None
        assert row["idempotency_key"].startswith("sha256:")
        assert CANARY not in row["idempotency_key"]
        assert await running.rows("SELECT url FROM messages") == [{"url": HOOK}]

        async def exhausted() -> bool:
            return await running.rows("SELECT state, url FROM messages") == [{"state": "exhausted", "url": ""}]

        await running.wait_until(exhausted, step_seconds=600)
        assert await gateway.deliveries.redeliver_exhausted(running.caller.org_id) == 0


async def test_a_purge_forgets_the_webhook_url_of_a_delivered_message(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.gateway.sender._client = Receiver(running.clock, 200)
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        await running.wait_for_request(video_id)

        async def delivered() -> bool:
            return await running.rows("SELECT state FROM messages") == [{"state": "delivered"}]

        await running.wait_until(delivered)
        await running.purge(video_id)
        assert await running.rows("SELECT url FROM messages") == [{"url": ""}]


@sqlite_only
async def test_a_purge_leaves_no_trace_on_disk(open_gateway: OpenGateway) -> None:
    """Not in the database, its log, the media or other files; neither while the gateway runs nor afterwards."""
    async with open_gateway() as running:
        data = running.gateway.settings.data
        reference = {"image_url": "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()}
        running.lab.polls.next(faults.altered(error={"code": "x", "message": CANARY}))
        await make_and_purge(running, webhook_url=HOOK, input_reference=reference)
        assert files_with(data, CANARY) == []
        media = [path for path in (data / "media").rglob("*") if path.is_file()]
        assert media == []
        other = await running.video(prompt="kept-7777")
        await running.wait_for_request(other.json["id"])
        assert files_with(data, "kept-7777"), "the search does find words"
    assert files_with(data, CANARY) == []


@sqlite_only
async def test_a_purge_removes_the_messages_of_providers(open_gateway: OpenGateway) -> None:
    """Their messages may quote the prompt and are in the record, the attempts and the webhook event."""
    async with open_gateway() as running:
        running.lab.videos.next(faults.error(400, f"I will not draw {CANARY}.", "moderation_blocked"))
        await make_and_purge(running, webhook_url=HOOK)
        assert files_with(running.gateway.settings.data, CANARY) == []


@sqlite_only
async def test_a_purge_that_was_interrupted(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = (await running.video(prompt=CANARY)).json["id"]
        await running.wait_for_request(video_id)
        with failpoint_raises("purge.files_gone"), pytest.raises(FailpointRaised):
            await running.purge(video_id)
        assert (await running.purge(video_id))["already_purged"] is False
        assert files_with(running.gateway.settings.data, CANARY) == []


async def test_a_purge_that_is_interrupted_at_any_step_leaves_no_row_without_its_file(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a step, or after it: the connection to a database may be lost when a commit has taken effect."""
    async with open_gateway() as running:
        steps = Steps(monkeypatch, running)
        for number, is_after in itertools.product(range(1, 20), (False, True)):
            made = running.call(
                {"model": "edit-1", "prompt": CANARY, "image": [INPUT], "size": "64x64"},
                endpoint="/edit",
                headers={"x-service-replay": "record"},
            )
            await endpoints.edit_images(running.gateway, made)
            try:
                with steps.interrupted_at(number, is_after=is_after):
                    await running.purge(made.id)
            except StorageUnavailable:
                assert await running.run_audit() == [], f"interrupted at step {number}, {is_after=}"
            else:
                break
            await running.purge(made.id)
            assert await running.run_audit() == []
            assert await running.storage.list_files() == []
        assert number > 4, "two kinds of files, and the rows of both"


async def test_a_purge_does_not_fail_because_another_call_deletes_the_recording(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a second purge of the same request."""
    async with open_gateway() as running:
        recordings = running.gateway.recordings
        image = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
        made = running.call(image, endpoint="/image", headers={"x-service-replay": "record"})
        await endpoints.make_images(running.gateway, made)
        delete = recordings.delete

        async def delete_twice(org_id: OrgId, recording_id: str) -> int:
            await delete(org_id, recording_id)
            return await delete(org_id, recording_id)

        monkeypatch.setattr(recordings, "delete", delete_twice)
        assert (await running.purge(made.id))["purged"] is True
        assert (await running.purge(made.id))["already_purged"] is True
        assert await running.storage.list_files() == []


@sqlite_only
async def test_a_running_request_is_not_purged(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.videos.next(faults.never_ends)
        video_id = (await running.video()).json["id"]
        with pytest.raises(Conflict) as caught:
            await running.purge(video_id)
        assert caught.value.should_retry is False


@sqlite_only
async def test_requests_of_another_organization_are_not_purged(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = (await running.wait_for_video((await running.video()).json["id"]))["id"]
        call = running.call(request_id=video_id, caller=await running.create_caller_in_new_org())
        with pytest.raises(NotFound):
            await purge(running.gateway, call)
