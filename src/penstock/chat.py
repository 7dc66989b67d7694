"""The story of a conversation: reserve, ask, pass the answer on, settle."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import msgspec

from penstock import billing, conversation, respond, translate
from penstock.catalog import Option
from penstock.conversation import Talk
from penstock.errors import Cancelled, Problem, UpstreamError
from penstock.gateway import Gateway
from penstock.lookup import recorded
from penstock.providers.spec import Price
from penstock.schema import CHAT, Answer, Call, Quote, Request
from penstock.settling import Ending, Entry
from penstock.sse import Broken, Relay
from penstock.upstream import Failed, OutcomeUnknown
from penstock.values import NOTHING, Nanos, nanos
from penstock.verdict import Miss, verdict
from penstock.wire import NotSent, Unknown

_IDLE_SECONDS = 60.0
_BYTES_PER_TOKEN = 4  # where a provider reports nothing, text is counted like this
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


class _Completion(msgspec.Struct):
    choices: list[msgspec.Raw]
    usage: _Usage | None = None


_read = msgspec.json.Decoder(_Completion).decode


async def complete(gateway: Gateway, call: Call) -> Answer:
    """Ask the options in order until one answers."""
    said = conversation.talk(call)
    route = gateway.catalog.route(said.model, ("chat",), gateway.health.well)
    extras = {name: value for name, value in said.body.items() if name not in CHAT}
    if extras:
        translate.check_extras(route.first.model.op, extras)
    if call.dry_run:
        return respond.estimate(said.model, route.first.provider.slug, _quote(gateway, route.first, said))
    hold = Nanos(max([_hold(gateway, option, said) for option in route.options]))
    values = {name: said.body[name] for name in ("user", "session_id") if said.body.get(name)}
    request = Request(task="chat", model=said.model, values=values)
    entry = await gateway.settling.open(call, request, hold, "vision" if said.has_pictures else None)
    misses: list[Miss] = []
    try:
        for option in route.options:
            try:
                answer = await (_streamed if said.stream else _answered)(gateway, entry, option, said)
            except (Failed, OutcomeUnknown) as problem:
                misses.append(_missed(gateway, option, problem))
                if not misses[-1].may_go_on:
                    break
            else:
                gateway.health.answered(option.provider.slug, option.model.upstream)
                return answer
        raise verdict(misses, forced=route.forced)
    except BaseException as problem:
        if isinstance(problem, Problem):
            _close(gateway, entry, "upstream_failure", problem=recorded(problem))
        else:
            _close(gateway, entry, "cancelled", problem=Cancelled("The call was broken off."))
        raise


def _missed(gateway: Gateway, option: Option, problem: Failed | OutcomeUnknown) -> Miss:
    miss = Miss.of(problem)
    if miss.kind in ("rejected", "refused"):
        gateway.health.answered(option.provider.slug, option.model.upstream)
    else:
        gateway.health.failed(option.provider.slug, option.model.upstream, miss.kind, miss.retry_after_seconds)
    return miss


# ------------------------------------------------------------------------------------------------------- in one piece


async def _answered(gateway: Gateway, entry: Entry, option: Option, said: Talk) -> Answer:
    """The provider's answer goes out byte for byte; it is read only for what it says about use."""
    reply = await gateway.upstream.ask(option, conversation.told(said, option.model), gateway.settings.upstream_seconds)
    try:
        completion = _read(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        words = f"{option.provider.name} gave an answer that makes no sense."
        raise Failed(option.provider.slug, "unreadable", words) from None
    if not completion.choices:
        raise Failed(option.provider.slug, "unreadable", f"{option.provider.name} gave an empty answer.")
    usage = completion.usage
    if usage is None:
        size = sum(len(bytes(choice)) for choice in completion.choices)
        cost = _cost(option, _guessed_input(said), size // _BYTES_PER_TOKEN, None)
    else:
        cost = _cost(option, usage.prompt_tokens, usage.completion_tokens, usage.cost)
    _close(gateway, entry, "completed", cost=cost, response_bytes=len(reply.body))
    return Answer(body=reply.body)


# -------------------------------------------------------------------------------------------------------- bit by bit


async def _streamed(gateway: Gateway, entry: Entry, option: Option, said: Talk) -> Answer:
    """Nothing is promised before the first bytes are here: until then another provider can be asked."""
    stack = AsyncExitStack()
    relay = Relay(keeps_usage=said.wants_usage)
    try:
        limits = {"idle_seconds": _IDLE_SECONDS, "total_seconds": gateway.settings.stream_seconds}
        chunks = await stack.enter_async_context(
            gateway.upstream.listen(option, conversation.told(said, option.model), **limits)
        )
        first = b""
        while not first and not relay.done:
            first = relay.feed(await anext(chunks))
    except (StopAsyncIteration, Broken, Unknown, NotSent) as problem:
        await stack.aclose()
        words = f"{option.provider.name} answered with no stream."
        raise Failed(option.provider.slug, "unreadable", words) from problem
    except BaseException:
        await stack.aclose()
        raise
    body = _passed_on(gateway, entry, option, said, stack, chunks, relay, first)
    return Answer(chunks=body, headers=_STREAM_HEADERS, media_type="text/event-stream")


async def _passed_on(
    gateway: Gateway,
    entry: Entry,
    option: Option,
    said: Talk,
    stack: AsyncExitStack,
    chunks: AsyncIterator[bytes],
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
        except (Unknown, NotSent):
            words = "broke off in the middle of its answer"
        if words is None:
            status, problem = "completed", None
        else:
            gateway.health.failed(option.provider.slug, option.model.upstream, "broken")
            status, problem = "upstream_failure", UpstreamError(f"{option.provider.name} {words}.")
            yield b"data: " + msgspec.json.encode(problem.body()) + b"\n\n"
    finally:
        cost = NOTHING if status == "upstream_failure" else _stream_cost(option, said, relay)
        _close(gateway, entry, status, cost=cost, response_bytes=relay.size_bytes, problem=problem)
        await stack.aclose()


def _stream_cost(option: Option, said: Talk, relay: Relay) -> Nanos:
    """What was reported, else what was delivered: providers send about a token an event."""
    if relay.usage is None:
        return _cost(option, _guessed_input(said), relay.events, None)
    return _cost(option, *relay.usage, relay.cost)


# --------------------------------------------------------------------------------------------------------------- money


@dataclass(frozen=True, slots=True)
class Rate:
    """A token price in whole units so small that no price has a part of one: sums stay integers."""

    input: int
    output: int

    def nanos(self, input_tokens: int, output_tokens: int) -> Nanos:
        """Rounded once, half up."""
        return Nanos((self.input * input_tokens + self.output * output_tokens + _HALF_NANO) // _UNITS_PER_NANO)


_UNITS_PER_NANO = 10**12
_HALF_NANO = _UNITS_PER_NANO // 2
_UNITS_PER_USD = _UNITS_PER_NANO * 10**9


@cache
def _rate(input_usd: str, output_usd: str) -> Rate:
    return Rate(int(Decimal(input_usd) * _UNITS_PER_USD), int(Decimal(output_usd) * _UNITS_PER_USD))


def _hold(gateway: Gateway, option: Option, said: Talk) -> Nanos:
    price = _price(option)
    output = said.output_ceiling or gateway.settings.chat_output_tokens
    return _rate(price.input_usd, price.usd).nanos(said.input_ceiling, output) if price else NOTHING


def _quote(gateway: Gateway, option: Option, said: Talk) -> Quote:
    price = _price(option)
    if price is None:
        return Quote(components=())
    output = said.output_ceiling or gateway.settings.chat_output_tokens
    return billing.total(
        [
            billing.component(price.input_usd, "token", Decimal(said.input_ceiling), is_input=True),
            billing.component(price.usd, "token", Decimal(output)),
        ]
    )


def _cost(option: Option, input_tokens: int, output_tokens: int, reported: float | None) -> Nanos:
    """The provider's own figure where it gives one, else the table."""
    if reported is not None:
        return nanos(Decimal(str(reported)))
    price = _price(option)
    return _rate(price.input_usd, price.usd).nanos(input_tokens, output_tokens) if price else NOTHING


def _price(option: Option) -> Price | None:
    return option.model.prices[0] if option.model.prices else None


def _guessed_input(said: Talk) -> int:
    return max(1, len(msgspec.json.encode(said.body["messages"])) // _BYTES_PER_TOKEN)


def _close(
    gateway: Gateway,
    entry: Entry,
    status: str,
    *,
    cost: Nanos = NOTHING,
    response_bytes: int = 0,
    problem: Problem | None = None,
) -> None:
    duration = int((gateway.clock.monotonic() - entry.call.started) * 1000)
    ending = Ending(entry, status, min(cost, entry.hold), duration, response_bytes)
    if problem:
        ending.error_code, ending.error_message = problem.code, problem.message
    gateway.settling.close(ending)
