"""What the record of a request says about a call that was refused or failed."""

import base64
from typing import Any

from tests.api.http_calls import ServedApi, form, served_api
from tests.api.raw_http import RawResponse
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, sqlite_only

IMAGES = "/compat/v1/images/generations"
EDITS = "/compat/v1/images/edits"
VIDEOS = "/compat/v1/videos"
CHATS = "/compat/v1/chat/completions"
RESPONSES = "/compat/v1/responses"
WHO = {"user": "bob", "session_id": "s-1"}
IMAGE_URL = f"data:image/png;base64,{base64.b64encode(png(8, 8)).decode()}"
SEEN = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": IMAGE_URL}}]


async def record_of(api: ServedApi, called: RawResponse) -> Any:
    return (await api.call("GET", f"/v1/requests/{called.headers['x-request-id']}")).json


@sqlite_only
async def test_the_record_of_a_refused_call_says_who_made_it(open_gateway: OpenGateway) -> None:
    messages = [{"role": "user", "content": "hello"}]
    refused: tuple[tuple[str, dict[str, Any], str | None], ...] = (
        (IMAGES, {"model": "image-1", "prompt": "x", "n": 11}, "image"),
        (IMAGES, {"model": "no/such", "prompt": "x"}, "image"),
        (VIDEOS, {"model": "video-1", "prompt": "x", "seconds": "soon"}, "video"),
        (EDITS, {"model": "edit-1", "prompt": "x"}, "image"),
        (CHATS, {"model": "lab/chat", "messages": messages, "temperature": 9}, None),
        (CHATS, {"model": "no/such", "messages": messages}, None),
        (CHATS, {"model": "lab/chat", "messages": [{"role": "user", "content": SEEN}], "temperature": 9}, "vision"),
        (RESPONSES, {"model": "lab/chat", "input": "hello", "temperature": 9}, None),
    )
    async with served_api(open_gateway) as api:
        for path, body, modality in refused:
            record = await record_of(api, await api.call("POST", path, {**body, **WHO}))
            names = ("status", "model", "user", "session_id", "modality")
            assert [record[name] for name in names] == ["rejected", body["model"], "bob", "s-1", modality], path
        parts = [("model", b"edit-1", None), ("prompt", b"x", None), ("n", b"11", None), ("user", b"bob", None)]
        body_bytes, headers = form(*parts, ("image", png(8, 8), "a.png"))
        record = await record_of(api, await api.call("POST", EDITS, body_bytes, headers=headers))
        assert (record["status"], record["model"], record["user"]) == ("rejected", "edit-1", "bob")


@sqlite_only
async def test_the_record_of_a_refused_call_has_no_value_that_its_field_cannot_have(open_gateway: OpenGateway) -> None:
    bodies: tuple[Any, ...] = (
        {"model": "image-1", "prompt": "x", "user": 7, "session_id": "s" * 257},
        {"model": "image-1", "prompt": "x", "user": "u" * 513, "session_id": ["s"]},
        {"model": ["image-1"], "prompt": "x", "messages": "x"},
        [{"model": "image-1", "prompt": "x", "user": "bob"}],
    )
    async with served_api(open_gateway) as api:
        for body in bodies:
            record = await record_of(api, await api.call("POST", IMAGES, body))
            assert (record["status"], record["user"], record["session_id"]) == ("rejected", None, None), body
        odd = {"model": "lab/chat", "messages": [7, {"content": 7}, {"content": [7, {"type": 7}]}]}
        assert (await record_of(api, await api.call("POST", CHATS, odd)))["status"] == "rejected"


@sqlite_only
async def test_the_record_of_a_failed_call_has_the_size_of_its_response(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        lab = api.running.lab
        for fault in (faults.broken, faults.rejected, faults.blocked, faults.dropped):
            lab.images.next(fault)
            lab.chats.next(fault)
            for called in (await api.image(), await api.chat()):
                record = await record_of(api, called)
                assert (record["status"], record["response_size_bytes"]) == ("upstream_failure", len(called.body))


@sqlite_only
async def test_a_video_keeps_the_size_of_its_response_however_it_ends(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.videos.next(faults.fails)
        failed = await api.video()
        assert (await api.running.wait_for_request(failed.json["id"]))["status"] == "upstream_failure"
        api.running.lab.videos.next(faults.never_ends)
        cancelled = await api.video()
        await api.running.cancel(cancelled.json["id"])
        assert (await api.running.wait_for_request(cancelled.json["id"]))["status"] == "cancelled"
        for called in (failed, cancelled):
            assert (await record_of(api, called))["response_size_bytes"] == len(called.body)
