"""The story of a conversation: reserve, ask, pass the answer on, settle."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import msgspec

from penstock.accounts.chat_settlement import Reservation
from penstock.accounts.prices import Line, quote_of
from penstock.accounts.requests import RequestEnd
from penstock.chat import request as conversation
from penstock.chat.request import ChatRequest
from penstock.chat.stream import Broken, Relay, Usage, plainly
from penstock.errors import Cancelled, Problem, UpstreamError
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.generations.retrieve import mark_recorded
from penstock.metrics import NO_PROVIDER
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.providers.spec import Price
from penstock.schema import Call, Quote, Request, Response
from penstock.upstream.catalog import Candidate, capable_route
from penstock.upstream.client import AttemptFailed, OutcomeUnknown
from penstock.upstream.outcome import Failure, error_for
from penstock.values import ZERO, Nanos, nanos

_IDLE_SECONDS = 60.0
_BYTES_PER_TOKEN = 4  # where a provider reports nothing, text is counted like this
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_NO_WORDS: Mapping[bytes, bytes] = {}


class _Completion(msgspec.Struct):
    choices: list[msgspec.Raw] = []
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


_read = msgspec.json.Decoder(_Completion).decode


async def complete(gateway: Gateway, call: Call) -> Response:
    """Ask the options in order until one answers."""
    said = conversation.talk(call)
    route = gateway.catalog.route(said.model, ("chat",), gateway.health.is_healthy)
    values = {name: said.body[name] for name in ("user", "session_id") if said.body.get(name)}
    request = Request(task="chat", model=said.model, values=values)
    route = capable_route(route, request, lambda model, _: conversation.check(said, model))
    if call.dry_run:
        return respond.estimate(said.model, route.first.provider.slug, _quote(gateway, route.first, said))
    hold = Nanos(max([_hold(gateway, option, said) for option in route.candidates]))
    entry = await gateway.chat_settlement.reserve(call, request, hold, "vision" if said.has_images else None)
    misses: list[Failure] = []
    try:
        for option in route.candidates:
            try:
                answer = await (_streamed if said.stream else _answered)(gateway, entry, option, said)
            except (AttemptFailed, OutcomeUnknown) as problem:
                misses.append(_missed(gateway, option, problem))
                if not misses[-1].allows_failover:
                    break
            else:
                gateway.health.record_success(option.provider.slug, option.model.upstream)
                return answer
        raise error_for(misses, forced=route.forced)
    except BaseException as problem:
        if isinstance(problem, Problem):
            _close(gateway, entry, "upstream_failure", problem=mark_recorded(problem))
        else:
            _close(gateway, entry, "cancelled", problem=Cancelled("The call was broken off."))
        raise


def _missed(gateway: Gateway, option: Candidate, problem: AttemptFailed | OutcomeUnknown) -> Failure:
    miss = Failure.from_error(problem)
    if miss.kind in ("rejected", "refused"):
        gateway.health.record_success(option.provider.slug, option.model.upstream)
    else:
        gateway.health.record_failure(option.provider.slug, option.model.upstream, miss.kind, miss.retry_after_seconds)
    return miss


# ------------------------------------------------------------------------------------------------------- in one piece


async def _answered(gateway: Gateway, entry: Reservation, option: Candidate, said: ChatRequest) -> Response:
    """The provider's answer goes out byte for byte, but for odd words; it is read only for what it says about use."""
    reply = await gateway.upstream.send_chat(
        option, conversation.told(said, option.model), gateway.settings.upstream_seconds
    )
    try:
        completion = _read(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        words = f"{option.provider.name} gave an answer that makes no sense."
        raise AttemptFailed(option.provider.slug, "unreadable", words) from None
    if bytes(completion.error) != b"null":
        raise gateway.upstream.failure_in_body(option, reply.body)
    if not completion.choices:
        raise AttemptFailed(option.provider.slug, "unreadable", f"{option.provider.name} gave an empty answer.")
    usage = completion.usage or _guessed(said, sum(len(bytes(one)) for one in completion.choices) // _BYTES_PER_TOKEN)
    cost, body = _cost(option, usage), plainly(reply.body, _finish(option))
    _close(gateway, entry, "completed", provider=option.provider.slug, cost=cost, response_bytes=len(body))
    return Response(body=body)


def _finish(option: Candidate) -> Mapping[bytes, bytes]:
    words: Mapping[bytes, bytes] = option.model.op.settings.get("finish_reasons", _NO_WORDS)
    return words


# -------------------------------------------------------------------------------------------------------- bit by bit


async def _streamed(gateway: Gateway, entry: Reservation, option: Candidate, said: ChatRequest) -> Response:
    """Nothing is promised before the first bytes are here: until then another provider can be asked."""
    relay = Relay(keeps_usage=said.wants_usage, finish=_finish(option))
    limits = {"idle_seconds": _IDLE_SECONDS, "total_seconds": gateway.settings.stream_seconds}
    chunks = await gateway.upstream.stream_chat(option, conversation.told(said, option.model), **limits)
    try:
        first = b""
        while not first and not relay.done:
            first = relay.feed(await anext(chunks))
    except (StopAsyncIteration, Broken, MaybeSent, NotSent) as problem:
        await chunks.aclose()
        if isinstance(problem, Broken) and problem.event:
            raise gateway.upstream.failure_in_body(option, problem.event) from None
        words = f"{option.provider.name} answered with no stream."
        raise AttemptFailed(option.provider.slug, "unreadable", words) from problem
    except BaseException:
        await chunks.aclose()
        raise
    body = _passed_on(gateway, entry, option, said, chunks, relay, first)
    return Response(chunks=body, headers=_STREAM_HEADERS, media_type="text/event-stream")


async def _passed_on(
    gateway: Gateway,
    entry: Reservation,
    option: Candidate,
    said: ChatRequest,
    chunks: ByteStream,
    relay: Relay,
    first: bytes,
) -> AsyncIterator[bytes]:
    """Whatever way this ends, the provider is hung up on and the books are closed, once."""
    status = "cancelled"
    problem: Problem | None = Cancelled("The caller hung up.")
    try:
        yield first
        try:
            async for chunk in chunks:
                if ready := relay.feed(chunk):
                    yield ready
                if relay.done:
                    break
            words = None if relay.done else "ended without saying that it was done"
        except Broken as trouble:
            words = str(trouble)
            if trouble.event:
                words += f": {gateway.upstream.failure_in_body(option, trouble.event).message.rstrip('.')}"
        except (MaybeSent, NotSent):
            words = "broke off in the middle of its answer"
        if words is None:
            status, problem = "completed", None
        else:
            gateway.health.record_failure(option.provider.slug, option.model.upstream, "broken")
            status, problem = "upstream_failure", UpstreamError(f"{option.provider.name} {words}.")
            yield b"data: " + msgspec.json.encode(problem.body()) + b"\n\n"
    finally:
        cost = ZERO if status == "upstream_failure" else _stream_cost(option, said, relay)
        slug, size = option.provider.slug, relay.size_bytes
        _close(gateway, entry, status, provider=slug, cost=cost, response_bytes=size, problem=problem)
        await chunks.aclose()


def _stream_cost(option: Candidate, said: ChatRequest, relay: Relay) -> Nanos:
    """What was reported, else what was delivered: providers send about a token an event."""
    return _cost(option, relay.usage or _guessed(said, relay.events))


# --------------------------------------------------------------------------------------------------------------- money


@dataclass(frozen=True, slots=True)
class Rate:
    """A token price in whole units so small that no price has a part of one: sums stay integers."""

    input: int
    output: int
    cached: int

    def nanos(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> Nanos:
        """Rounded once, half up."""
        fresh = self.input * (input_tokens - cached_tokens) + self.output * output_tokens
        return Nanos((fresh + self.cached * cached_tokens + _HALF_NANO) // _UNITS_PER_NANO)


_UNITS_PER_NANO = 10**12
_HALF_NANO = _UNITS_PER_NANO // 2
_UNITS_PER_USD = _UNITS_PER_NANO * 10**9


@cache
def _rate(*usd: str) -> Rate:
    return Rate(*(int(Decimal(one) * _UNITS_PER_USD) for one in usd))


def _hold(gateway: Gateway, option: Candidate, said: ChatRequest) -> Nanos:
    price = _price(option, said.input_ceiling)
    output = said.output_tokens(gateway.settings.chat_output_tokens)
    if price is None:
        return ZERO
    tokens = _rates(price).nanos(said.input_ceiling, output)
    return tokens if price.each_usd == "0" else Nanos(tokens + nanos(price.each_usd))


def _quote(gateway: Gateway, option: Candidate, said: ChatRequest) -> Quote:
    price = _price(option, said.input_ceiling)
    if price is None:
        return Quote(components=())
    output = said.output_tokens(gateway.settings.chat_output_tokens)
    lines = [
        Line(price.input_usd, "token", Decimal(said.input_ceiling), is_input=True),
        Line(price.usd, "token", Decimal(output)),
    ]
    if price.each_usd != "0":
        lines.append(Line(price.each_usd, "output", Decimal(1)))
    return quote_of(lines)


def _cost(option: Candidate, usage: Usage) -> Nanos:
    """The provider's own figure where it gives one, else the table."""
    if (usd := usage.cost_usd) is not None:
        return nanos(usd)
    price = _price(option, usage.input)
    return max(ZERO, _rates(price).nanos(usage.input, usage.output, usage.cached)) if price else ZERO


def _price(option: Candidate, input_tokens: int) -> Price | None:
    """Long conversations may have a row of their own."""
    rows = option.model.prices
    if len(rows) == 1:
        return rows[0]
    return next((row for row in rows if input_tokens > row.above or not row.above), None)


def _rates(price: Price) -> Rate:
    return _rate(price.input_usd, price.usd, price.other_usd.get("cached", price.input_usd))


def _guessed(said: ChatRequest, output_tokens: int) -> Usage:
    """For providers that do not say."""
    size = len(msgspec.json.encode(said.body["messages"]))
    return Usage(prompt_tokens=max(1, size // _BYTES_PER_TOKEN), completion_tokens=output_tokens)


def _close(
    gateway: Gateway,
    entry: Reservation,
    status: str,
    *,
    provider: str = NO_PROVIDER,
    cost: Nanos = ZERO,
    response_bytes: int = 0,
    problem: Problem | None = None,
) -> None:
    duration = int((gateway.clock.monotonic() - entry.call.started) * 1000)
    charged = min(cost, entry.amount)
    code, message = (problem.code, problem.message) if problem else (None, None)
    gateway.chat_settlement.settle_later(entry, RequestEnd(status, charged, duration, response_bytes, code, message))
    gateway.metrics.count_generation(provider, "chat", status, charged)
