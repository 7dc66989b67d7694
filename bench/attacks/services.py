"""Attack with what the gateway stores, lists and gets from providers."""

import asyncio
import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from bench.attacks.target import CHAT, IMAGES, VALID, VIDEOS, Begin, Target, add_gets, add_posts, attack, json_body
from bench.hostile_provider import noisy_png, small_png

# The longest that are accepted: longer ones are refused, and there would be nothing to list.
_REQUEST_CHARS = 65_000  # of a recording
_PROMPT_CHARS = 32_000

# ----------------------------------------------------------------------------------------------------------- recordings


def _recording(number: int, data: bytes, request: Mapping[str, Any], duration_ms: int = 5) -> bytes:
    names = dict.fromkeys(("provider", "provider_name", "executed_model"), "x")
    return json_body(
        **names,
        penstock_recording=1,
        id=f"rec_{number:032x}",
        kind="image",
        task="image",
        model="lab/image-small",
        recorded_at="2026-11-15T00:00:00Z",
        duration_ms=duration_ms,
        request=request,
        standard="0" * 64,
        strict=f"{number:064x}",
        files=[{"content_type": "image/png", "data": base64.b64encode(data).decode()}],
    )


add_posts("recordings: the largest import", "/v1/recordings", lambda _: _recording(1, noisy_png(), {"prompt": "a"}))


@attack("recordings: lists of long requests")
async def _list_recordings(target: Target, begin: Begin) -> None:
    request = {"prompt": "a" * _REQUEST_CHARS}
    for number in range(100):
        await target.call("POST", "/v1/recordings", _recording(number, small_png(), request))
    await begin()
    await target.repeat(lambda: target.call("GET", "/v1/recordings?limit=100"))


@attack("recordings: exports of the largest")
async def _export_recordings(target: Target, begin: Begin) -> None:
    imported = await target.call("POST", "/v1/recordings", _recording(1, noisy_png(), {"prompt": "a"}))
    path = f"/v1/recordings/{json.loads(imported)['id']}/export"
    await begin()
    await target.repeat(lambda: target.call("GET", path))


@attack("recordings: slow replays that nobody waits for")
async def _leave_replays(target: Target, begin: Begin) -> None:
    imported = await target.call("POST", "/v1/recordings", _recording(1, noisy_png(1100), {"prompt": "a"}))
    headers = {
        "x-service-replay": "replay-or-error",
        "x-service-replay-match": "pinned",
        "x-service-replay-recording": json.loads(imported)["id"],
        "x-service-replay-latency": "60000,60000",
    }
    body = json_body(**VALID[IMAGES], response_format="b64_json")
    await begin()

    async def leave() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await target.call("POST", IMAGES, body, headers)

    await target.repeat(leave, at_once=20)


# ---------------------------------------------------------------------------------------------------------------- lists


@attack("lists: videos with long prompts")
async def _list_videos(target: Target, begin: Begin) -> None:
    body = json_body(**{**VALID[VIDEOS], "prompt": "\U0001f350" * _PROMPT_CHARS})
    for _ in range(100):
        await target.call("POST", VIDEOS, body)
    await begin()
    await target.repeat(lambda: target.call("GET", f"{VIDEOS}?limit=100"))


@attack("lists: purging refused calls")
async def _purge(target: Target, begin: Begin) -> None:
    body = json_body(**{**VALID[IMAGES], "model": "nobody/nothing"})
    for _ in range(100):
        await target.call("POST", IMAGES, body)
    listed = json.loads(await target.call("GET", "/v1/requests?limit=100"))
    ids = [each["id"] for each in listed["data"]]
    await begin()
    number = 0

    async def purge() -> None:
        nonlocal number
        number += 1
        await target.call("DELETE", f"/v1/requests/{ids[number % len(ids)]}/payloads")

    await target.repeat(purge, at_once=16)


add_gets("lists: models with their schemas", "/compat/v1/models?schema=true")
add_gets("lists: the OpenAPI document", "/openapi.json", "")
add_gets("calls: wrong keys", "/v1/balance", "sk-penstock-wrong")
add_posts("calls: refused", IMAGES, lambda _: json_body(**{**VALID[IMAGES], "model": "nobody/nothing"}))

# ------------------------------------------------------------------------------------------------------------ providers


def _add_answers(about: str, model: str, **fields: Any) -> None:
    """Add an attack in which the provider answers as the name of the model says."""
    path = CHAT if model.startswith("chat") else IMAGES
    body = json_body(**{**VALID[path], "model": f"lab/{model}", **fields})
    add_posts(f"provider: {about}", path, lambda _: body)


_add_answers("a gzip bomb", "image-bomb")
_add_answers("empty gzip members", "image-members")
_add_answers("the URL of a gzip bomb", "image-at-bomb")
_add_answers("the URL of empty gzip members", "image-at-members")
_add_answers("fifteen million values", "image-values")
_add_answers("an image of 19 MB", "image-noisy", output_format="webp")
_add_answers("an image of 19 MB, in base64", "image-noisy", response_format="b64_json")
_add_answers("an image of forty megapixels", "image-wide", output_format="webp")
_add_answers("a chat of 30 MB", "chat-large")
_add_answers("a stream of 40,000 events", "chat-crumbs", stream=True)
_add_answers("an image in chunks of one byte", "image-crumbs")
_add_answers("a stream of comments", "chat-comments", stream=True)
_add_answers("a stream of events of 900 kB", "chat-large-events", stream=True)
_add_answers("a stream without line ends", "chat-unended-line", stream=True)

# ------------------------------------------------------------------------------------------------------------- webhooks


def _add_receivers(about: str, name: str) -> None:
    """Add an attack in which many videos are cancelled whose receivers answer as their name says."""

    async def run(target: Target, begin: Begin) -> None:
        hook = f"http://127.0.0.1:{target.provider_port}/hooks/{name}"
        body = json_body(**VALID[VIDEOS], webhook_url=hook)
        await begin()

        async def start_and_cancel() -> None:
            if started := await target.call("POST", VIDEOS, body):
                await target.call("DELETE", f"{VIDEOS}/{json.loads(started).get('id')}")

        await target.repeat(start_and_cancel, at_once=16)

    attack(f"webhooks: {about}")(run)


_add_receivers("receivers that never answer", "silent")
_add_receivers("receivers whose answer has no end", "endless")
_add_receivers("receivers that redirect to themselves", "redirect")
_add_receivers("receivers whose answer has a head of 4 MB", "large-head")
