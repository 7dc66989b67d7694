"""Respond to an image call with server-sent events, as OpenAI's clients expect them."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, NamedTuple, Self

from penstock.errors import Problem
from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import Mailbox
from penstock.generations.plan import PlannedCall
from penstock.generations.retrieve import job_result, source_headers, unfinished_problem
from penstock.interrupts import CallerLine, ProcessStopped
from penstock.jobs.running import RunningJob
from penstock.long_bodies.long_body import pieces_of
from penstock.net.event_stream import encoded_event
from penstock.schema import Call, Response

# Proxies close a connection on which nothing is sent. A comment is no event, and clients skip it.
_COMMENT = b": the images are being made\n\n"
_COMMENT_SECONDS = 15.0
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
# OpenAI's clients need the field. Most images are not priced by tokens: `metadata` has the cost.
_NO_TOKENS = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "total_tokens": 0,
}
_EVENT_NAMES = {"image": "image_generation", "edit": "image_edit", "upscale": "image_edit"}


class ImageEvent(NamedTuple):
    """An event of a stream; a large image in its fields is a FileAsBase64."""

    name: str
    fields: Mapping[str, Any]


class ImageEvents:
    """The stream of an image call: its bytes, in which large images are encoded piece by piece. Who needs the events
    themselves reads `events` instead; None among them is a comment.
    """

    def __init__(self, gateway: Gateway, call: Call, events: AsyncGenerator[ImageEvent | None, None]) -> None:
        self.events = events
        self._chunks = self._encode(gateway, call)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self.events.aclose()

    async def _encode(self, gateway: Gateway, call: Call) -> AsyncGenerator[bytes, None]:
        size_bytes = 0
        try:
            async for event in self.events:
                if event is None:
                    yield _COMMENT
                    continue
                encoded = encoded_event(event.name, {"type": event.name, **event.fields})
                size_bytes += len(encoded)
                for piece in pieces_of(encoded):
                    yield piece
        finally:
            gateway.chat_settlement.set_response_size(call.caller.org_id, call.id, size_bytes)


def image_stream(gateway: Gateway, call: Call, planned: PlannedCall, running: RunningJob, mailbox: Mailbox) -> Response:
    """A stream of unfinished images, if the caller wants them and the provider sends them. It ends with one `completed`
    event for each image, or with an `error` event.
    """
    headers = {**_HEADERS, **source_headers(planned.plan, None)}
    events = ImageEvents(gateway, call, _events(gateway, call, planned, running, mailbox))
    return Response(chunks=events, headers=headers, media_type="text/event-stream")


async def _events(
    gateway: Gateway, call: Call, planned: PlannedCall, running: RunningJob, mailbox: Mailbox
) -> AsyncGenerator[ImageEvent | None, None]:
    yield None
    deadline = gateway.clock.monotonic() + gateway.settings.image_wait_seconds
    shown = 0
    try:
        while True:
            seconds = min(_COMMENT_SECONDS, max(0.0, deadline - gateway.clock.monotonic()))
            is_finished = await _wait(gateway, running, mailbox, seconds)
            partial_images = mailbox.partial_images.take_all() if mailbox.partial_images else []
            for number, image in enumerate(partial_images, shown):
                yield _partial_event(call, planned, image, number)
            shown += len(partial_images)
            if is_finished:
                break
            if gateway.clock.monotonic() >= deadline or gateway.interrupts.is_stopped:
                raise unfinished_problem(call.id)
            if not partial_images:
                yield None
        if isinstance(mailbox.end, Problem):
            raise mailbox.take_problem()
        await _wait_until_due(gateway, planned, mailbox)
        result = (await job_result(gateway, call, mailbox)).json
        for event in _completed_events(planned, result):
            yield event
    except Problem as problem:
        yield ImageEvent("error", problem.body())


async def _wait(gateway: Gateway, running: RunningJob, mailbox: Mailbox, seconds: float) -> bool:
    """Wait for the job or an unfinished image; return whether the job is finished. Also ends when the process stops."""
    try:
        with gateway.interrupts.allowed(CallerLine()):  # the server notices when the caller disconnects
            return await mailbox.wait(running, seconds)
    except ProcessStopped:
        return False


async def _wait_until_due(gateway: Gateway, planned: PlannedCall, mailbox: Mailbox) -> None:
    """Wait until the images of a replay or mock are to be sent. Those in the mailbox are dropped meanwhile, and read
    from the storage afterwards, so that a waiting call holds little memory.
    """
    seconds = (planned.due_ms[1] - gateway.clock.steady_ms()) / 1000
    if seconds > 0:
        mailbox.end = None
        await gateway.clock.sleep(seconds)


def _partial_event(call: Call, planned: PlannedCall, image: Mapping[str, Any], number: int) -> ImageEvent:
    """The event of an unfinished image, which is as the provider sent it: in its own format and size."""
    request = planned.request
    fields = {
        "b64_json": image.get("b64_json", ""),
        "partial_image_index": number,
        "id": call.id,
        "created_at": image.get("created_at", call.at_ms // 1000),
        "size": image.get("size", request.values.get("size", "auto")),
        "output_format": image.get("output_format", "png"),
        "quality": image.get("quality", request.values.get("quality", "auto")),
        "background": image.get("background", request.extras.get("background", "auto")),
    }
    return ImageEvent(f"{_EVENT_NAMES[request.task]}.partial_image", fields)


def _completed_events(planned: PlannedCall, result: Mapping[str, Any]) -> Iterator[ImageEvent]:
    request = planned.request
    common = {
        "id": result["id"],
        "created_at": result["created"],
        "size": result["size"],
        "output_format": result["output_format"],
        "quality": request.values.get("quality", "auto"),
        "background": request.extras.get("background", "auto"),
        "metadata": result["metadata"],
        "usage": _NO_TOKENS,
    }
    name = f"{_EVENT_NAMES[request.task]}.completed"
    return (ImageEvent(name, {**image, **common}) for image in result["data"])
