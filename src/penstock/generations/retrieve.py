"""Return images and videos after they were accepted: their state, their result and their files."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial

import msgspec

from penstock import errors
from penstock.errors import Conflict, InvalidRequest, NotFound, Problem, StorageUnavailable, UpstreamTimeout
from penstock.event_loop import LONG_FILE_BYTES
from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import CompletedGeneration, Mailbox
from penstock.generation_jobs.rows import (
    Follow,
    GenerationRow,
    Live,
    Mock,
    Plan,
    Recording,
    Replay,
    ShownRow,
    get_generation,
    list_last_attempts,
)
from penstock.generations import respond
from penstock.imaging.workers import WorkFailed
from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.long_bodies.json_encoding import encode_with_files
from penstock.media.rows import MediaRow, list_media
from penstock.package_extras import ExtraMissing, check_extra
from penstock.recordings.replay_headers import response_headers
from penstock.schema import LISTEN_TASKS, SOUND_TASKS, Call, GenerationResult, Output, Response, StoredOutput
from penstock.store.paging import Pager
from penstock.values import OrgId

_PREVIEW_BYTES_MAX = 256 * 1024**2
_encode = msgspec.json.Encoder(decimal_format="number").encode

# -------------------------------------------------------------------------------------------------------------- images


async def image_status(gateway: Gateway, call: Call) -> Response:
    """The state of an asynchronous image request or, once it is completed, its result."""
    row = await get_generation(gateway.store, call.path["id"], call.caller.org_id)
    if row is None or row.task in ("video", *SOUND_TASKS, *LISTEN_TASKS):
        raise NotFound(f"No such image request: {call.path['id']}.")
    if row.status != "completed":
        return Response(json=respond.image_status(row), headers=respond.poll_headers(row))
    return await image_result(gateway, row.org_id, row.id, call.base_url)


async def job_result(gateway: Gateway, call: Call, mailbox: Mailbox) -> Response:
    """The result of an image request whose job has ended in this process."""
    if isinstance(mailbox.end, CompletedGeneration):
        return await _images_response(gateway, mailbox.end, call.base_url)
    return await image_result(gateway, call.caller.org_id, call.id, call.base_url)


async def image_result(gateway: Gateway, org_id: OrgId, request_id: str, base_url: str) -> Response:
    """The stored result of an image request, with URLs under `base_url`.

    Raises the Problem of a failed request, and NotFound when the images were purged or have expired.
    """
    row = await get_generation(gateway.store, request_id, org_id)
    if row is None:  # generations are never deleted, but a standby that takes over may lack the last commits
        raise StorageUnavailable("The database has lost this request; it may have been made.", should_retry=False)
    if row.status == "failed":
        raise stored_problem(row.error_code, row.error_message)
    result = row.decode_result()
    if result is None:
        raise unfinished_problem(request_id)
    request = row.decode_request()
    if request is None or row.expires_at_ms is None or row.expires_at_ms <= gateway.clock.now_ms():
        raise NotFound("The images of this request are gone.")
    completed = CompletedGeneration(row, request, row.decode_plan(), result, row.expires_at_ms)
    return await _images_response(gateway, completed, base_url)


async def _images_response(gateway: Gateway, completed: CompletedGeneration, base_url: str) -> Response:
    in_base64 = completed.request.values.get("response_format") == "b64_json"
    until_ms = min(completed.expires_at_ms, gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
    data = []
    for position, output in enumerate(completed.result.outputs):
        if in_base64:
            in_memory = completed.outputs[position] if position < len(completed.outputs) else None
            data.append(respond.image(output, b64_json=await base64_of(gateway, output, in_memory)))
        else:
            url = await gateway.media.signed_url(output.media_id, until_ms, base_url)
            data.append(respond.image(output, url=url))
    headers = source_headers(completed.plan, completed.result) | respond.credentials_header(completed.result)
    url_expires_at = None if in_base64 else until_ms // 1000
    return Response(json=respond.images(completed.row, completed.result, data, url_expires_at), headers=headers)


async def base64_of(gateway: Gateway, output: Output, in_memory: StoredOutput | None) -> str | FileAsBase64:
    """A file in base64; a large one is encoded when it is sent."""
    data = in_memory.data if in_memory else None
    if data is None:
        data = await gateway.media.read(output.media_id, output.size_bytes)
    text = FileAsBase64(data)
    return text if len(data) > LONG_FILE_BYTES else str(text)


def unfinished_problem(request_id: str, task: str = "image") -> Problem:
    """The error of a call that no longer waits for its image, sound or transcript, which is still being made."""
    what, path = "image", "images"
    if task in SOUND_TASKS:
        what, path = "sound", "audio/generations"
    elif task in LISTEN_TASKS:
        what, path = "transcript", "audio/transcriptions"
    message = f"The {what} is not finished yet; its result will be at /compat/v1/{path}/{request_id}."
    return UpstreamTimeout(message, should_retry=False, recorded=True)


def stored_problem(code: str | None, message: str | None) -> Problem:
    """The Problem of a failed generation, from its stored code and message."""
    kinds = {kind.code: kind for kind in errors.problem_kinds()}
    kind = kinds.get(code or "", errors.UpstreamError)
    problem = Problem.__new__(kind)  # some kinds have other parameters in their own constructors
    Problem.__init__(problem, message or "The generation failed.", should_retry=False, recorded=True)
    return problem


async def delayed_image_result(gateway: Gateway, call: Call, due_ms: tuple[int, int]) -> Response:
    """The result of an image request, with its first and last byte sent at the moments in `due_ms`.

    The images are read and the response is encoded after the wait, so that a waiting call holds little memory.
    """
    first_ms, last_ms = due_ms
    clock = gateway.clock
    row = await get_generation(gateway.store, call.id, call.caller.org_id)
    assert row is not None, "generations are never deleted"
    headers = source_headers(row.decode_plan(), row.decode_result())

    async def chunks() -> AsyncIterator[bytes]:
        await clock.sleep(max(0.0, (first_ms - clock.steady_ms()) / 1000))
        yield b"{"
        await clock.sleep(max(0.0, (last_ms - clock.steady_ms()) / 1000))
        response = await image_result(gateway, call.caller.org_id, call.id, call.base_url)
        pieces = iter(encode_with_files(response.json, decimal_format="number"))
        yield next(pieces)[1:]
        for piece in pieces:
            yield piece

    return Response(chunks=chunks(), headers=headers)


# -------------------------------------------------------------------------------------------------------------- videos


async def video(gateway: Gateway, call: Call) -> Response:
    """One video, in whatever state it is."""
    row = await get_video_row(gateway, call.path["id"], call.caller.org_id)
    result = row.decode_result()
    headers = {
        **respond.poll_headers(row),
        **source_headers(row.decode_plan(), result),
        **respond.credentials_header(result),
    }
    return Response(json=await _video_object(gateway, call.base_url, row), headers=headers)


async def list_videos(gateway: Gateway, call: Call, limit: int, after: str | None, *, ascending: bool) -> Response:
    """OpenAI's list, oldest or newest first: up to `limit` videos that follow the video `after`."""
    if after:
        await get_video_row(gateway, after, call.caller.org_id, param="after")
    return await list_jobs(gateway, call, "generation", _video_object, limit, after, ascending=ascending)


async def list_jobs(
    gateway: Gateway,
    call: Call,
    noun: str,
    show: Callable[[Gateway, str, ShownRow], Awaitable[dict[str, object]]],
    limit: int,
    after: str | None,
    *,
    ascending: bool,
) -> Response:
    """A list of videos or sounds as OpenAI's lists are; see Pager for the `noun`."""
    pager = Pager(gateway.store, noun, "req", ShownRow)
    if ascending:
        rows, has_more = await pager.rows(call.caller.org_id, limit, low=after, ascending=True)
    else:
        rows, has_more = await pager.rows(call.caller.org_id, limit, high=after)
    data = []
    for row in rows:
        data.append(msgspec.Raw(_encode(await show(gateway, call.base_url, row))))
        await asyncio.sleep(0)  # all prompts together may have megabytes
    return Response(
        json={
            "object": "list",
            "data": data,
            "first_id": rows[0].id if rows else None,
            "last_id": rows[-1].id if rows else None,
            "has_more": has_more,
        }
    )


async def video_content(gateway: Gateway, call: Call, index: int = 0, *, redirect: bool = False) -> Response:
    """An output's file, or a redirect to it."""
    row = await get_video_row(gateway, call.path["id"], call.caller.org_id)
    file, expires_at_ms = await video_output(gateway, row, index)
    return await file_or_redirect(gateway, call, file, expires_at_ms, redirect=redirect)


async def file_or_redirect(gateway: Gateway, call: Call, file: MediaRow, until_ms: int, *, redirect: bool) -> Response:
    """A file, or a redirect to its signed URL: to the object store, if that signs URLs."""
    if not redirect:
        return gateway.media.file_response(file, call.headers.get("range"), until_ms // 1000)
    until_ms = min(until_ms, gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
    url = await gateway.media.signed_url(file.id, until_ms, call.base_url)
    return Response(status=307, headers={"location": url, "cache-control": "no-store"})


async def video_preview(gateway: Gateway, call: Call, variant: str, index: int = 0) -> Response:
    """An image made from an output's file: one of its frames, or a sheet of them."""
    try:
        check_extra("atelier", "it")
    except ExtraMissing as problem:
        raise NotFound(f"The {variant} cannot be made: {problem}.") from None
    row = await get_video_row(gateway, call.path["id"], call.caller.org_id)
    file, _ = await video_output(gateway, row, index)
    if file.size_bytes > _PREVIEW_BYTES_MAX:
        limit = _PREVIEW_BYTES_MAX // 1024**2
        raise InvalidRequest(f"A `{variant}` is made of videos up to {limit} MiB.", param="variant")
    load = partial(gateway.media.read, file.id, file.size_bytes)
    try:
        image = await gateway.worker_pool.run("video.preview", for_org=call.caller.org_id, load=load, variant=variant)
    except WorkFailed as problem:
        raise NotFound(f"The {variant} cannot be made: {problem.message}") from None
    headers = {"cache-control": "private, max-age=3600", "x-content-type-options": "nosniff"}
    return Response(body=image["data"], media_type=image["content_type"], headers=headers)


async def video_output(gateway: Gateway, row: GenerationRow, index: int = 0) -> tuple[MediaRow, int]:
    """The row of an output's file, and when it expires. Raises Conflict for an unfinished video."""
    if row.status != "completed":
        raise Conflict(f"This video is {row.status}; it has no content.", should_retry=False)
    files = await list_media(gateway.store, row.id, row.org_id)
    outputs = [file for file in files if file.role == "output"]
    if not outputs or row.expires_at_ms is None or row.expires_at_ms <= gateway.clock.now_ms():
        raise NotFound("The content of this video is gone.")
    if index >= len(outputs):
        raise NotFound(f"This video has {len(outputs)} outputs; `index` counts from 0.", param="index")
    return outputs[index], row.expires_at_ms


def video_created(gateway: Gateway, row: GenerationRow, headers: Mapping[str, str] | None = None) -> Response:
    """The response to the call that created a video, or that repeated its idempotency key."""
    body = respond.video_created(row, gateway.catalog.providers.names)
    replay_headers = source_headers(row.decode_plan(), None)
    return Response(status=202, json=body, headers={**respond.poll_headers(row), **replay_headers, **(headers or {})})


async def get_video_row(gateway: Gateway, video_id: str, org_id: OrgId, *, param: str | None = None) -> GenerationRow:
    """The video that the call's path names, or its parameter `param`. Raises NotFound."""
    row = await get_generation(gateway.store, video_id, org_id)
    if row is None or row.task != "video":
        raise NotFound(f"No such video: {video_id}.", param=param)
    return row


async def video_object(gateway: Gateway, org_id: OrgId, video_id: str, base_url: str) -> dict[str, object]:
    """The full object of one video. Raises NotFound."""
    return await _video_object(gateway, base_url, await get_video_row(gateway, video_id, org_id))


async def _video_object(gateway: Gateway, base_url: str, row: ShownRow) -> dict[str, object]:
    names = gateway.catalog.providers.names
    if row.status != "completed":
        return respond.video(row, names, upstream_id=await upstream_id(gateway, row))
    result = row.decode_result()
    if result is None or row.expires_at_ms is None or row.expires_at_ms <= gateway.clock.now_ms():
        return respond.video(row, names)
    urls = [await gateway.media.signed_url(output.media_id, row.expires_at_ms, base_url) for output in result.outputs]
    return respond.video(row, names, urls=urls)


async def upstream_id(gateway: Gateway, row: ShownRow) -> str | None:
    """The id that the last provider gave to an unfinished job, if it did."""
    attempts = await list_last_attempts(gateway.store, row.id)
    return next((attempt.upstream_id for attempt in reversed(attempts) if attempt.upstream_id), None)


def source_headers(plan: Plan, result: GenerationResult | None) -> dict[str, str]:
    """The replay headers of a response, for calls with a replay mode: how the result was made, or will be."""
    source = plan.source
    if isinstance(source, Live) and not source.is_reported:
        return {}
    if result is not None:
        return response_headers(result.origin, result.recording_id)
    match source:
        case Live():
            return response_headers("live", None)
        case Recording(recording_id=recording_id):
            return response_headers("recorded", recording_id)
        case Replay(recording_id=recording_id):
            return response_headers("replayed", recording_id)
        case Follow():
            return response_headers("replayed", None)
        case Mock():
            return response_headers("mocked", None)
