"""What callers ask about afterwards: images, videos and their files."""

from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from penstock import errors
from penstock.clock import Clock
from penstock.errors import Conflict, InvalidRequest, NotFound, Problem, UpstreamTimeout
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.recordings import recordings
from penstock.schema import Call, GenerationResult, Output, Plan, Request, Response, StoredOutput
from penstock.store.base import Row
from penstock.store.paging import Pager

encode = msgspec.json.Encoder(decimal_format="number").encode

# -------------------------------------------------------------------------------------------------------------- images


async def image_status(gateway: Gateway, call: Call) -> Response:
    """An asynchronous image: where it stands, and then the result itself."""
    row = await gateway.store.one("get_generation", id=call.path["id"], org_id=call.caller.org_id)
    if row is None or row["task"] == "video":
        raise NotFound(f"No such image request: {call.path['id']}.")
    if row["status"] != "completed":
        return Response(json=respond.image_status(row), headers=respond.poll_headers(row))
    return await image_result(gateway, msgspec.structs.replace(call, id=row["id"]), ())


async def image_result(gateway: Gateway, call: Call, at_hand: Sequence[StoredOutput]) -> Response:
    row = await gateway.store.one("get_generation", id=call.id, org_id=call.caller.org_id)
    assert row is not None, "generations are never deleted"
    if row["status"] == "failed":
        raise problem_of(row["error_code"], row["error_message"])
    if row["status"] != "completed":
        raise unfinished(call.id)
    if row["request"] is None or row["expires_at_ms"] <= gateway.clock.now_ms():
        raise NotFound("The images of this request are gone.")
    settled = msgspec.json.decode(row["result"], type=GenerationResult)
    request = msgspec.json.decode(row["request"], type=Request)
    data = []
    for number, kept in enumerate(settled.files):
        if request.values.get("response_format") == "b64_json":
            shelved = at_hand[number] if number < len(at_hand) else None
            data.append(respond.image(kept, b64_json=await _base64(gateway, kept, shelved)))
        else:
            until = min(row["expires_at_ms"], gateway.clock.now_ms() + gateway.settings.url_seconds * 1000)
            data.append(respond.image(kept, url=await gateway.media.signed_url(kept.media_id, until, call.base_url)))
    signals = _signals(msgspec.json.decode(row["plan"], type=Plan), settled)
    return Response(json=respond.images(row, settled, data), headers=signals)


async def _base64(gateway: Gateway, kept: Output, shelved: StoredOutput | None) -> str:
    """What the provider sent, if it came so and nothing had to be changed; else the file's bytes, encoded."""
    if shelved and shelved.base64:
        return shelved.base64
    raw = (shelved and shelved.data) or await gateway.media.read(kept.media_id, kept.size_bytes)
    return await gateway.transfer.encode_base64(raw)


def unfinished(request_id: str) -> Problem:
    words = f"The image is not finished yet; it will be found under /compat/v1/images/{request_id}."
    return recorded(UpstreamTimeout(words, should_retry=False))


def problem_of(code: str, message: str) -> Problem:
    """A failure as the record tells it, for who asks after the process that saw it is gone."""
    kinds = {kind.code: kind for kind in _family(Problem)}
    kind = kinds.get(code, errors.UpstreamError)
    problem = Problem.__new__(kind)
    Problem.__init__(problem, message or "The generation failed.", should_retry=False)
    return recorded(problem)


def _family(kind: type[Problem]) -> list[type[Problem]]:
    return [kind, *(one for child in kind.__subclasses__() for one in _family(child))]


# -------------------------------------------------------------------------------------------------------------- videos


async def video(gateway: Gateway, call: Call) -> Response:
    row = await video_row(gateway, call)
    settled = msgspec.json.decode(row["result"], type=GenerationResult) if row["result"] else None
    signals = _signals(msgspec.json.decode(row["plan"], type=Plan), settled)
    return Response(json=await _shown(gateway, call, row), headers={**respond.poll_headers(row), **signals})


async def list_videos(gateway: Gateway, call: Call) -> Response:
    """OpenAI's list: `limit`, `after` and `order`."""
    limit, order, after = _video_page(call)
    if after:
        await video_row(gateway, msgspec.structs.replace(call, path={"id": after}))
    pager = Pager(gateway.store, "generation", "req")
    if order == "asc":
        rows, has_more = await pager.rows(call.caller.org_id, limit, low=after, ascending=True)
    else:
        rows, has_more = await pager.rows(call.caller.org_id, limit, high=after)
    data = [await _shown(gateway, call, row) for row in rows]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    page = {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more}
    return Response(json=page)


def _video_page(call: Call) -> tuple[int, str, str | None]:
    limit, order = call.query.get("limit", "20"), call.query.get("order", "desc")
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:4]) <= 100:
        raise InvalidRequest("`limit` must be from 1 to 100.", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequest("`order` must be `asc` or `desc`.", param="order")
    return int(limit), order, call.query.get("after")


async def video_content(gateway: Gateway, call: Call) -> Response:
    """The file itself, for clients that download through us."""
    row = await video_row(gateway, call)
    if row["status"] != "completed":
        raise Conflict(f"This video is {row['status']}; it has no content.", should_retry=False)
    files = await gateway.store.all("list_media", request_id=row["id"], org_id=call.caller.org_id)
    outputs = [one for one in files if one["role"] == "output"]
    if not outputs or row["expires_at_ms"] <= gateway.clock.now_ms():
        raise NotFound("The content of this video is gone.")
    opened = gateway.media.file_response(outputs[0], call.headers.get("range"), row["expires_at_ms"] // 1000)
    return Response(status=opened.status, chunks=opened.chunks, headers=opened.headers)


def created(gateway: Gateway, row: Row, headers: Mapping[str, str] | None = None) -> Response:
    """What create answers: now, or when its idempotency key comes again."""
    plan = msgspec.json.decode(row["plan"], type=Plan)
    shown = respond.video_created(row, plan, gateway.catalog.names)
    return Response(
        status=202, json=shown, headers={**respond.poll_headers(row), **_signals(plan, None), **(headers or {})}
    )


def _signals(plan: Plan, settled: GenerationResult | None) -> dict[str, str]:
    """How an answer came, or will come, about; said to those who asked for it."""
    if not plan.asked:
        return {}
    if settled is not None:
        return recordings.signals(settled.stand, settled.recording)
    if plan.mocks:
        return recordings.signals("mocked", None)
    if plan.replays or plan.follows:
        return recordings.signals("replayed", plan.replays)
    return recordings.signals("recorded" if plan.records else "live", plan.records)


def paced(clock: Clock, answer: Response, due_ms: tuple[int, int]) -> Response:
    """The same answer, its first and last byte at the moments they are due."""
    if due_ms[1] <= clock.now_ms():
        return answer
    body = encode(answer.json)

    async def chunks() -> AsyncIterator[bytes]:
        await clock.sleep(max(0.0, (due_ms[0] - clock.now_ms()) / 1000))
        yield body[:1]
        await clock.sleep(max(0.0, (due_ms[1] - clock.now_ms()) / 1000))
        yield body[1:]

    return msgspec.structs.replace(answer, json=None, chunks=chunks())


async def video_row(gateway: Gateway, call: Call) -> Row:
    row = await gateway.store.one("get_generation", id=call.path["id"], org_id=call.caller.org_id)
    if row is None or row["task"] != "video":
        raise NotFound(f"No such video: {call.path['id']}.")
    return row


async def _shown(gateway: Gateway, call: Call, row: Row) -> dict[str, object]:
    plan = msgspec.json.decode(row["plan"], type=Plan)
    urls = None
    if row["status"] == "completed" and row["expires_at_ms"] > gateway.clock.now_ms():
        settled = msgspec.json.decode(row["result"], type=GenerationResult)
        urls = [
            await gateway.media.signed_url(kept.media_id, row["expires_at_ms"], call.base_url) for kept in settled.files
        ]
    elif row["status"] != "completed":
        attempts = await gateway.store.all("list_attempts", request_id=row["id"])
        row = {**row, "upstream_id": next((one["upstream_id"] for one in attempts[::-1] if one["upstream_id"]), None)}
    return respond.video(row, plan, gateway.catalog.names, urls)


def recorded(problem: Problem) -> Problem:
    problem.recorded = True
    return problem
