"""Read images that a provider streams: unfinished ones are shown as they arrive, the rest becomes a whole response.

The events are OpenAI's: `….partial_image`, `….completed` and `error`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from penstock.event_loop import LoopTurns, run_aside
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, ResponseTooLarge
from penstock.net.event_stream import EventBuffer, EventTooLong, data_of_events
from penstock.net.response import MAX_RESPONSE_BYTES
from penstock.providers.spec import HttpRequest, Reply

ShowImage = Callable[[Mapping[str, Any]], None]  # gets the fields of an event, and does not wait

_CALLERS_FAULT = ("invalid_request_error", "image_generation_user_error")
_IN_RESPONSE = ("usage", "output_format", "size", "quality", "background")  # of the last event


async def send_streamed(
    http: HttpClient,
    request: HttpRequest,
    seconds: float,
    turns: LoopTurns,
    show: ShowImage,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> Reply:
    """Send a request, show the unfinished images of its stream, and return the response without streaming.

    A response that is no stream is returned as it is. Raises NotSent, or MaybeSent for a stream that breaks off
    or is longer than `max_bytes`.
    """
    async with http.stream(request, read_timeout_seconds=seconds, timeout_seconds=seconds) as response:
        if response.status != 200 or "text/event-stream" not in response.headers.get("content-type", ""):
            return Reply(response.status, response.headers, await response.read())
        buffer = EventBuffer(max_bytes)  # an event is as long as an image
        size_bytes = 0
        last: list[Mapping[str, Any]] = []
        async for chunk in response:
            size_bytes += len(chunk)
            if size_bytes > max_bytes:
                raise ResponseTooLarge(max_bytes)
            for data in data_of_events(_events(buffer, chunk)):
                await turns.wait_turn(len(data))  # showing it will hold up the event loop
                fields = await run_aside(len(data), _decode, data)
                kind = str(fields.get("type"))
                if kind.endswith(".partial_image"):
                    show(fields)
                elif kind.endswith(".completed"):
                    last.append(fields)
                elif kind == "error":
                    return _error_reply(fields, response.headers)
    if not last:
        raise MaybeSent("the stream ended before the image was complete")
    return await run_aside(size_bytes, _whole_reply, last, response.headers)


def _events(buffer: EventBuffer, chunk: bytes) -> bytes:
    try:
        return buffer.feed(chunk)
    except EventTooLong:
        raise MaybeSent("the stream has an event that is too long") from None


def _decode(data: bytes) -> Mapping[str, Any]:
    try:
        fields = msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise MaybeSent("the stream has a malformed event") from None
    return fields if isinstance(fields, dict) else {}


def _whole_reply(events: list[Mapping[str, Any]], headers: Mapping[str, str]) -> Reply:
    """The response that OpenAI gives without streaming."""
    images = [{name: event[name] for name in ("b64_json", "revised_prompt") if name in event} for event in events]
    fields = {name: events[-1][name] for name in _IN_RESPONSE if name in events[-1]}
    return Reply(200, headers, msgspec.json.encode({**fields, "data": images}))


def _error_reply(fields: Mapping[str, Any], headers: Mapping[str, str]) -> Reply:
    """The response that says the same with an HTTP status."""
    error = fields.get("error")
    if not isinstance(error, dict):
        error = fields
    status = 400 if error.get("type") in _CALLERS_FAULT else 500
    return Reply(status, headers, msgspec.json.encode({"error": error}))
