"""Answer chat calls from recordings, and record them."""

import hashlib
import re
from collections.abc import AsyncIterator
from typing import Literal, Self

import msgspec
import structlog

from penstock.accounts.response_items import ResponseItem
from penstock.chat.form import ResponseForm
from penstock.chat.guarded import check_answer
from penstock.chat.kept_items import items_of
from penstock.chat.pricing import Bill
from penstock.chat.request import ChatRequest
from penstock.chat.reserved import ReservedChat, reserve
from penstock.errors import InvalidRequest, Problem
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.long_bodies.long_body import whole
from penstock.net.event_stream import data_of_events
from penstock.recordings.chat_fingerprints import chat_fingerprint
from penstock.recordings.recordings import recording_id
from penstock.recordings.replay_headers import (
    ReplayOptions,
    has_replay_header,
    no_match,
    replay_options,
    replay_times,
    response_headers,
)
from penstock.recordings.rows import RecordedResult, RecordingRow
from penstock.schema import Call, Fingerprint, Output, Request, Response, StoredOutput
from penstock.telemetry.call_report import reported_cost
from penstock.values import ZERO, OrgId

log = structlog.get_logger()
Chunks = tuple[tuple[int, int], ...]  # when each came, in milliseconds, and its size
_MAX_BYTES = 16 * 1024**2  # of a stream; a longer one is not recorded
_STREAM = "text/event-stream"
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
# The last event of a stream that ended well.
_ENDS = (b"data: [DONE]", b"event: response.completed\n", b"event: response.incomplete\n")
_COST = re.compile(rb'"cost":[0-9.eE+-]+,"cost_currency"')  # as the gateway writes it into the usage of a response
_FREE = b'"cost":0,"cost_currency"'


class CallReplay(msgspec.Struct, frozen=True):
    """How a call of chat or speech with a replay mode is answered."""

    status: Literal["live", "mocked", "recorded", "replayed"]
    options: ReplayOptions
    fingerprint: Fingerprint
    found: RecordingRow | None = None  # that is replayed


async def plan_replay(gateway: Gateway, call: Call, chat: ChatRequest) -> CallReplay | None:
    """Find out how a call is answered if it, or its key, has a replay mode; None without one.

    Raises InvalidRequest for a wrong header, and RecordingNotFound where a recording is required and none matches.
    """
    if call.caller.replay_mode is None and not has_replay_header(call.headers):
        return None
    options = replay_options(call.headers, call.caller.replay_mode)
    if options is None or options.mode == "off" or call.dry_run:
        return None
    kind, body = ("response", chat.responses.body) if chat.responses else ("chat", chat.body)
    model = gateway.catalog.public_id(chat.model)
    fingerprint = await run_aside(call.size_bytes, chat_fingerprint, kind, model, body, bytes(call.body), options.match)
    return await find_source(gateway, call.caller.org_id, options, fingerprint)


async def find_source(gateway: Gateway, org_id: OrgId, options: ReplayOptions, fingerprint: Fingerprint) -> CallReplay:
    """Find the recording that answers a call of chat or speech, or how it is answered without one. Raises as
    `plan_replay`.
    """
    if options.may_replay:
        if found := await gateway.recordings.find(org_id, options, fingerprint):
            return CallReplay("replayed", options, fingerprint, found)
        if options.mode == "replay-or-error":
            raise no_match()
    if options.records and gateway.settings.payloads == "none":
        message = "This gateway stores no payloads, so it cannot record: use another mode of `X-Service-Replay`."
        raise InvalidRequest(message, param="X-Service-Replay")
    status: Literal["live", "mocked", "recorded"] = "live"
    if options.mode.endswith("mock"):
        status = "mocked"
    elif options.records:
        status = "recorded"
    return CallReplay(status, options, fingerprint)


# ------------------------------------------------------------------------------------------------------------- replays


async def replay_chat(
    gateway: Gateway, call: Call, chat: ChatRequest, form: ResponseForm, request: Request, replay: CallReplay
) -> Response:
    """Answer with the recorded bytes, at no cost and without any provider."""
    found = replay.found
    assert found is not None, "it is replayed"
    recorded = found.decode_result()
    ((output, file),) = await gateway.recordings.list_files(found)
    data = _COST.sub(_FREE, await gateway.recordings.read_file(file))
    due_ms = due_times(gateway, call, replay, found.duration_ms)
    is_stream = output.content_type == _STREAM
    if not is_stream:
        await wait_until(gateway, due_ms[1])
    reservation = await reserve(gateway, call, request, ZERO, "vision" if chat.images else None)
    call.release_body()
    reserved = ReservedChat(gateway, reservation, chat=chat, form=form)
    items = await run_aside(len(data), _recorded_items, data, is_stream) if reserved.keeps_items else []
    bill = Bill({"input": 0, "cached": 0, "output": 0}, (), ZERO)
    await check_answer(reserved, data, bill, None)
    reserved.settle("completed", bill=bill, response_bytes=len(data), response=data, items=items)
    await reserved.free_place()
    headers = {"x-service-executed-model": recorded.executed_model, **response_headers("replayed", found.id)}
    if not is_stream:
        return Response(body=data, headers=headers)
    pieces = _pieces(data, recorded.chunks)
    times = piece_times(recorded.chunks, due_ms, gateway.clock.steady_ms(), replay.options.latency)
    chunks = _PacedPieces(gateway, list(zip(times, pieces, strict=True)))
    return Response(chunks=chunks, headers={**_HEADERS, **headers}, media_type=_STREAM)


def _recorded_items(data: bytes, is_stream: bool) -> list[ResponseItem]:
    """The items of a recorded response, to which the next call may refer."""
    if not is_stream:
        return items_of(data)
    *_, last = data_of_events(data)
    response: msgspec.Raw = msgspec.json.decode(last, type=dict[str, msgspec.Raw]).get("response", msgspec.Raw(b""))
    return items_of(bytes(response))


def _pieces(data: bytes, chunks: Chunks) -> list[bytes]:
    """The chunks in which a stream came. What the zero cost has shortened is missing at the end of the last one."""
    if not chunks:
        return [data]
    pieces = []
    start = 0
    for _, size in chunks[:-1]:
        pieces.append(data[start : start + size])
        start += size
    return [*pieces, data[start:]]


def due_times(gateway: Gateway, call: Call, replay: CallReplay, recorded_ms: int) -> tuple[int, int]:
    """When the first and the last byte are due; the call waits on its connection."""
    now = gateway.clock.steady_ms()
    due_ms = replay_times(replay.options.latency, recorded_ms, now)
    gateway.delays.add(call.caller.org_id, due_ms[1], keeps_connection=True)
    return due_ms


def piece_times(chunks: Chunks, due_ms: tuple[int, int], now_ms: int, latency: str) -> list[int]:
    """When each chunk is due: as in the recording, or in proportion between the first and the last byte."""
    if not chunks:
        return [due_ms[1]]
    if latency == "real":
        return [min(now_ms + at_ms, due_ms[1]) for at_ms, _ in chunks]
    first, end = due_ms
    start = chunks[0][0]
    length = max(1, chunks[-1][0] - start)
    return [*[first + (end - first) * (at_ms - start) // length for at_ms, _ in chunks[:-1]], end]


async def wait_until(gateway: Gateway, due_ms: int) -> None:
    seconds = (due_ms - gateway.clock.steady_ms()) / 1000
    if seconds > 0:
        await gateway.clock.sleep(seconds)


class _PacedPieces:
    """Pieces of a stream, each when it is due."""

    def __init__(self, gateway: Gateway, pieces: list[tuple[int, bytes]]) -> None:
        self._gateway = gateway
        self._pieces = pieces[::-1]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        due_ms, piece = self._pieces.pop()
        await wait_until(self._gateway, due_ms)
        return piece

    async def aclose(self) -> None:
        self._pieces.clear()


# ------------------------------------------------------------------------------------------- live, mocked and recorded


async def with_source(gateway: Gateway, call: Call, replay: CallReplay, response: Response) -> Response:
    """The response of a call with a replay mode that no recording answered: it says how it was made, and is recorded if
    the mode asks for it. A chat does not fail because it cannot be recorded.
    """
    status = replay.status
    made_id = None
    if status == "recorded":
        recorder = Recorder(gateway, call, replay, response.headers.get("x-service-executed-model", ""))
        if response.chunks is not None:
            made_id = recorder.id
            response = msgspec.structs.replace(response, chunks=_RecordedStream(response.chunks, recorder))
        else:
            body = bytes(whole(response.body or b""))
            made_id = recorder.id if await recorder.store(body, "application/json", ()) else None
            status = "recorded" if made_id else "live"
    elif status == "mocked":
        due_ms = due_times(gateway, call, replay, 0)
        if response.chunks is None:
            await wait_until(gateway, due_ms[1])
        else:
            response = msgspec.structs.replace(response, chunks=_DelayedStream(gateway, response.chunks, due_ms))
    return msgspec.structs.replace(response, headers={**response.headers, **response_headers(status, made_id)})


class Recorder:
    """Stores the recording of one call."""

    def __init__(
        self, gateway: Gateway, call: Call, replay: CallReplay, executed_model: str, task: str = "chat"
    ) -> None:
        self.id = recording_id(call.id)
        self._gateway = gateway
        self._call = call
        self._fingerprint = replay.fingerprint
        self._executed_model = executed_model
        self._task = task

    @property
    def age_ms(self) -> int:
        """How long ago the call arrived."""
        return int((self._gateway.clock.monotonic() - self._call.started) * 1000)

    async def store(self, data: bytes, content_type: str, chunks: Chunks) -> bool:
        """Store the response; return whether that succeeded."""
        gateway = self._gateway
        org_id = self._call.caller.org_id
        output = Output("", content_type, len(data))
        try:
            await gateway.quota.check(org_id, len(data))
            stored = StoredOutput(output=output, sha256=hashlib.sha256(data).digest(), data=data)
            files = await gateway.recordings.store_files(self.id, [stored])
            row = self._row(output, chunks)
            await gateway.store.write(lambda tx: gateway.recordings.add(tx, row, files), org_id=org_id)
        except Problem as problem:
            log.warning("a response is not recorded", task=self._task, request_id=self._call.id, code=problem.code)
            return False
        return True

    def _row(self, output: Output, chunks: Chunks) -> RecordingRow:
        fingerprint = self._fingerprint
        slug = self._executed_model.partition("/")[0]
        result = RecordedResult(
            slug, slug, self._executed_model, None, None, (output,), chunks=chunks, cost=reported_cost()
        )
        return RecordingRow(
            id=self.id,
            org_id=self._call.caller.org_id,
            request_id=self._call.id,
            kind=fingerprint.kind,
            task=self._task,
            model=fingerprint.model,
            standard=fingerprint.standard,
            strict=fingerprint.strict,
            exact=fingerprint.exact,
            request=msgspec.json.encode(fingerprint.values),
            result=msgspec.json.encode(result),
            duration_ms=self.age_ms,
            created_at_ms=self._gateway.clock.now_ms(),
        )


class _RecordedStream:
    """Passes a stream on and records it before its last chunk is sent; one that breaks off is not recorded."""

    def __init__(self, chunks: AsyncIterator[bytes], recorder: Recorder) -> None:
        self._source = chunks
        self._recorder = recorder
        self._data = bytearray()
        self._chunks: list[tuple[int, int]] = []  # when each came, and its size

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._source)
        if len(self._data) <= _MAX_BYTES:
            self._data += chunk
            self._chunks.append((self._recorder.age_ms, len(chunk)))
            if any(end in chunk for end in _ENDS) and len(self._data) <= _MAX_BYTES:
                await self._recorder.store(bytes(self._data), _STREAM, tuple(self._chunks))
        return chunk

    async def aclose(self) -> None:
        await _close(self._source)


class _DelayedStream:
    """A mock whose first and last chunk come when they are due."""

    def __init__(self, gateway: Gateway, chunks: AsyncIterator[bytes], due_ms: tuple[int, int]) -> None:
        self._gateway = gateway
        self._source = chunks
        self._due_ms = due_ms

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._source)
        await wait_until(self._gateway, self._due_ms[any(end in chunk for end in _ENDS)])
        return chunk

    async def aclose(self) -> None:
        await _close(self._source)


async def _close(chunks: AsyncIterator[bytes]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
