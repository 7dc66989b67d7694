"""Return kept sounds and transcripts after they were accepted: their state, their result and their files.

Every job that makes a sound is a generation of one of SOUND_TASKS, whatever endpoint accepted it; one that writes down
what is said has one of LISTEN_TASKS. To add one, accept a generation with such a task, as `start_video` does, and
return `created`: the endpoints that read, list, cancel and download sounds, the webhook events `audio.*`, and the purge
know it then.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.errors import Conflict, NotFound, StorageUnavailable
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import GenerationRow, ShownRow, get_generation
from penstock.generations import respond
from penstock.generations.retrieve import (
    base64_of,
    file_or_redirect,
    list_jobs,
    source_headers,
    stored_problem,
    unfinished_problem,
    upstream_id,
)
from penstock.interrupts import ProcessStopped
from penstock.media.rows import MediaRow, list_media
from penstock.schema import LISTEN_TASKS, SOUND_TASKS, Call, GenerationResult, Request, Response
from penstock.values import OrgId

_GONE = "The file of this request is gone."


class Kind(NamedTuple):
    """What the endpoints of one path are about."""

    noun: str
    tasks: tuple[str, ...]


SOUNDS = Kind("sound", SOUND_TASKS)
TRANSCRIPTS = Kind("transcript", LISTEN_TASKS)


class FinishedSound(msgspec.Struct, frozen=True):
    """A sound or a transcript that was made and is still there."""

    row: GenerationRow
    request: Request
    result: GenerationResult
    expires_at_ms: int


def created(gateway: Gateway, row: GenerationRow, headers: Mapping[str, str] | None = None) -> Response:
    """The response to the call that began a sound, or that repeated its idempotency key."""
    body = respond.sound(row, gateway.catalog.providers.names)
    replay_headers = source_headers(row.decode_plan(), None)
    return Response(status=202, json=body, headers={**respond.poll_headers(row), **replay_headers, **(headers or {})})


async def waited(gateway: Gateway, call: Call, begun: Response, seconds: int) -> Response:
    """The sound that a call began, once it has ended; what was `begun` if it has not after so many seconds."""
    sound_id = begun.json["id"]
    try:
        with gateway.interrupts.allowed(call.line):  # of the wait only: the generation goes on
            async with asyncio.timeout(seconds):
                await gateway.endings.wait(sound_id)
    except (TimeoutError, ProcessStopped):
        return begun
    ended = await sound(gateway, msgspec.structs.replace(call, path={"id": sound_id}))
    return msgspec.structs.replace(ended, headers={**begun.headers, **ended.headers, "preference-applied": "wait"})


async def sound(gateway: Gateway, call: Call) -> Response:
    """One sound, in whatever state it is."""
    return await _one(gateway, call, SOUNDS)


async def transcript(gateway: Gateway, call: Call) -> Response:
    """One transcript, in whatever state it is."""
    return await _one(gateway, call, TRANSCRIPTS)


async def _one(gateway: Gateway, call: Call, kind: Kind) -> Response:
    row = await get_sound_row(gateway, call.path["id"], call.caller.org_id, kind)
    result = row.decode_result()
    headers = {
        **respond.poll_headers(row),
        **source_headers(row.decode_plan(), result),
        **respond.credentials_header(result),
    }
    return Response(json=await _sound_object(gateway, call.base_url, row), headers=headers)


async def list_sounds(
    gateway: Gateway, call: Call, limit: int, after: str | None, kind: Kind = SOUNDS, *, ascending: bool
) -> Response:
    """Up to `limit` sounds that follow the sound `after`, oldest or newest first."""
    if after:
        await get_sound_row(gateway, after, call.caller.org_id, kind, param="after")
    return await list_jobs(gateway, call, kind.noun, _sound_object, limit, after, ascending=ascending)


async def sound_content(gateway: Gateway, call: Call, kind: Kind = SOUNDS, *, redirect: bool = False) -> Response:
    """The file, or a redirect to it. Raises Conflict for an unfinished sound."""
    row = await get_sound_row(gateway, call.path["id"], call.caller.org_id, kind)
    if row.status != "completed":
        raise Conflict(f"This {kind.noun} is {row.status}; it has no content.", should_retry=False)
    return await file_of(gateway, await finished(gateway, row.org_id, row.id), call, redirect=redirect)


async def finished(gateway: Gateway, org_id: OrgId, request_id: str) -> FinishedSound:
    """A sound whose job has ended. Raises the Problem of one that failed, and NotFound when it was purged or has
    expired.
    """
    row = await get_generation(gateway.store, request_id, org_id)
    if row is None:  # generations are never deleted, but a standby that takes over may lack the last commits
        raise StorageUnavailable("The database has lost this request; it may have been made.", should_retry=False)
    if row.status == "failed":
        raise stored_problem(row.error_code, row.error_message)
    result = row.decode_result()
    if result is None:
        raise unfinished_problem(row.id, row.task)
    request = row.decode_request()
    if request is None or row.expires_at_ms is None or row.expires_at_ms <= gateway.clock.now_ms():
        raise NotFound(_GONE)
    return FinishedSound(row, request, result, row.expires_at_ms)


async def file_of(gateway: Gateway, sound: FinishedSound, call: Call, *, redirect: bool = False) -> Response:
    """The file of a finished sound, or the range of it that was asked for, or a redirect to it."""
    files = await list_media(gateway.store, sound.row.id, sound.row.org_id)
    outputs: list[MediaRow] = [file for file in files if file.role == "output"]
    if not outputs:
        raise NotFound(_GONE)
    return await file_or_redirect(gateway, call, outputs[0], sound.expires_at_ms, redirect=redirect)


async def speech_object(gateway: Gateway, sound: FinishedSound, base_url: str, *, in_base64: bool) -> dict[str, Any]:
    """The JSON of speech, with its file or a URL of it."""
    output = sound.result.outputs[0]
    until_ms = min(sound.expires_at_ms, gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
    if in_base64:
        data: dict[str, Any] = {"b64_json": await base64_of(gateway, output, None)}
    else:
        data = {"url": await gateway.media.signed_url(output.media_id, until_ms, base_url)}
    return respond.speech(sound.row, sound.request, sound.result, data, None if in_base64 else until_ms // 1000)


async def get_sound_row(
    gateway: Gateway, sound_id: str, org_id: OrgId, kind: Kind = SOUNDS, *, param: str | None = None
) -> GenerationRow:
    """The sound that the call's path names, or its parameter `param`. Raises NotFound."""
    row = await get_generation(gateway.store, sound_id, org_id)
    if row is None or row.task not in kind.tasks:
        raise NotFound(f"No such {kind.noun}: {sound_id}.", param=param)
    return row


async def _sound_object(gateway: Gateway, base_url: str, row: ShownRow) -> dict[str, object]:
    names = gateway.catalog.providers.names
    if row.status != "completed":
        return respond.sound(row, names, upstream_id=await upstream_id(gateway, row))
    result = row.decode_result()
    if result is None or row.expires_at_ms is None or row.expires_at_ms <= gateway.clock.now_ms():
        return respond.sound(row, names)
    urls = [await gateway.media.signed_url(output.media_id, row.expires_at_ms, base_url) for output in result.outputs]
    return respond.sound(row, names, urls=urls)
