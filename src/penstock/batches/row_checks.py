"""Check a row of a batch as its endpoint would, and price it, without fetching anything."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.accounts.limits import check_model
from penstock.accounts.prices import highest_cost
from penstock.batches.lines import CHATS, EDITS, IMAGES, MODEL_RESPONSES, VIDEOS, Line, RowFault
from penstock.batches.records import NEVER, ONLY
from penstock.chat import endpoint as chats
from penstock.chat import responses
from penstock.chat.batched import batched_chat
from penstock.errors import Problem, StorageUnavailable
from penstock.gateway import Gateway
from penstock.generations import validate
from penstock.generations.candidates import find_candidates, order_candidates
from penstock.generations.validate import ValidatedCall
from penstock.schema import Call, Caller, Input
from penstock.settings import Settings
from penstock.values import INPUT_VIDEOS, ZERO, Nanos, new_id

# Of inputs that are not fetched before their row runs.
_IMAGE = Input("image", "", "image/png", 1024, 1024, 1_000_000)
_VIDEO = Input("video", "", "video/mp4", 1280, 720, 1_000_000, seconds=5.0, frames=120)
_REFUSED = {
    "stream": "Rows of a batch cannot be streamed; leave out `stream`.",
    "idempotency_key": "Rows of a batch have idempotency keys of their own; leave out `idempotency_key`.",
}
_NOT_IN_BATCHES = (
    "`vendor_batch` is `only`, and this row cannot go with a batch of its provider: it must be a chat of text, with a "
    "model of a provider that has batches, and a key without limits of requests and replay."
)
_FREE_MODES = ("mock", "replay-or-mock", "replay-or-error")
_MICRO = 1000


class Price(NamedTuple):
    """What a row is expected to cost, and the most that it may cost."""

    estimate: Nanos
    most: Nanos
    in_batch: bool = False  # with a batch of a provider, at the price of that


class _Media(NamedTuple):
    """How a row for images or videos is checked, and what its model must do."""

    validate: Callable[[Call, Settings], ValidatedCall]
    tasks: Sequence[str]


_MEDIA: Mapping[str, _Media] = {
    IMAGES: _Media(validate.image, ("image",)),
    EDITS: _Media(validate.edit, ("edit", "upscale")),
    VIDEOS: _Media(validate.video, ("video",)),
}
_CHATS = {CHATS: chats.complete_chat, MODEL_RESPONSES: responses.create_response}


def row_call(
    gateway: Gateway,
    caller: Caller,
    endpoint: str,
    body: dict[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    request_id: str | None = None,
) -> Call:
    """The call that a row stands for, as the API would read it; with the id of its request, if it has one."""
    at_ms = gateway.clock.now_ms()
    raw = msgspec.json.encode(body)
    return Call(
        id=request_id or new_id("req", at_ms),
        caller=caller,
        endpoint=endpoint,
        at_ms=at_ms,
        started=gateway.clock.monotonic(),
        headers=headers or {},
        query=query or {},
        body=raw,
        json=body,
        size_bytes=len(raw),
        base_url=gateway.settings.base_url,
        is_batch_row=True,
    )


async def check_row(gateway: Gateway, caller: Caller, line: Line, vendor_batch: str = NEVER) -> Price:
    """Check a row and return its price. Raises RowFault, which names the column."""
    for name, message in _REFUSED.items():
        if line.body.get(name):
            raise RowFault(message, name)
    call = row_call(gateway, caller, line.endpoint, line.body, query={"dryRun": "true"})
    try:
        price = await (_media_price(gateway, call) if line.endpoint in _MEDIA else _chat_price(gateway, call))
        if vendor_batch != NEVER:
            price = await _batch_price(gateway, call, price, vendor_batch)
    except StorageUnavailable:
        raise
    except Problem as problem:
        raise RowFault(problem.message, problem.param) from None
    return Price(ZERO, ZERO) if caller.replay_mode in _FREE_MODES else price


async def _batch_price(gateway: Gateway, call: Call, alone: Price, vendor_batch: str) -> Price:
    """The price of a row that can go with a batch of a provider; of others, that alone. Raises RowFault for these if
    rows must.
    """
    batched = await batched_chat(gateway, call) if call.endpoint == CHATS else None
    if batched is not None:
        return Price(batched.estimate(gateway.settings.chat_output_tokens), alone.most, in_batch=True)
    if vendor_batch == ONLY:
        raise RowFault(_NOT_IN_BATCHES, "model" if call.endpoint == CHATS else "url")
    return alone


async def _media_price(gateway: Gateway, call: Call) -> Price:
    check, tasks = _MEDIA[call.endpoint]
    validated = check(call, gateway.settings)
    asked = validated.request.model
    check_model(call.caller, asked, gateway.catalog.public_id(asked))
    await gateway.live_models.prepare(asked, call.caller.org_id)
    choice = await find_candidates(gateway, call.caller.org_id, validated, tasks)
    choice, request = order_candidates(choice, validated, tuple(map(_unread_input, validated.inputs)))
    costs = [highest_cost(candidate.model, request) for candidate in choice.route.candidates]
    return Price(costs[0], max(costs))


def _unread_input(item: Any) -> Input:
    return msgspec.structs.replace(_VIDEO if item.role in INPUT_VIDEOS else _IMAGE, role=item.role)


async def _chat_price(gateway: Gateway, call: Call) -> Price:
    estimate = (await _CHATS[call.endpoint](gateway, call)).json
    if estimate is None or "total_cost_micros" not in estimate:  # it would be replayed
        return Price(ZERO, ZERO)
    costs = [candidate["total_cost_micros"] for candidate in estimate["candidates"]]
    # Micros are rounded, and the most that a row may cost must not be below what it does cost.
    return Price(Nanos(estimate["total_cost_micros"] * _MICRO), Nanos((max(costs) + 1) * _MICRO))
