"""Which candidates can serve a chat call, and what each may cost; `models.routing` puts them in order."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial

import msgspec

from penstock.chat.mock import mock_chat
from penstock.chat.pricing import max_cost, quote, token_usd
from penstock.chat.provider_body import check_supported
from penstock.chat.request import ChatRequest
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.guards.configured import Guard
from penstock.models.preferences import FIELD, read_preferences
from penstock.models.routing import Choice, Costs, Route
from penstock.providers.spec import Model
from penstock.schema import Call, Response
from penstock.upstream.token_prices import TokenPrices
from penstock.values import dollars

_MILLION = Decimal(1_000_000)


class RoutedChat(msgspec.Struct, frozen=True):
    """A chat call and its candidates."""

    chat: ChatRequest
    choice: Choice

    @property
    def route(self) -> Route:
        return self.choice.route


async def route_chat(gateway: Gateway, call: Call, chat: ChatRequest, *, is_mock: bool = False) -> RoutedChat:
    """Find the candidates of a call. Raises InvalidRequest if none can serve it, or the caller allows none that can."""
    if is_mock:
        chat, route = mock_chat(gateway, chat)
    else:
        route = gateway.routing.route(chat.model, ("chat",), call.caller.org_id)
    written = chat.body.get(FIELD)
    if written is None or all(_has_own_providers(candidate.model) for candidate in route.candidates):
        return RoutedChat(chat, gateway.routing.choose_usual(route, partial(check_supported, chat)))
    preferences = read_preferences(written, "chat")
    chat = without_preferences(chat)
    check = partial(check_supported, chat)
    choice = await gateway.routing.choose(route, check, preferences, task="chat", org_id=call.caller.org_id)
    output_tokens = gateway.settings.chat_output_tokens
    choice = choice.in_preferred_order(lambda candidate: _costs(candidate.token_prices, chat, output_tokens))
    return RoutedChat(chat, choice)


def estimate(gateway: Gateway, routed: RoutedChat, guards: Sequence[Guard]) -> Response:
    """The response to a dry run; the guards may refuse the answer."""
    chat = routed.chat
    route = routed.route
    output_tokens = gateway.settings.chat_output_tokens
    tried = [
        respond.tried_candidate(
            candidate, max_cost(candidate.token_prices, chat, output_tokens), routed.choice.reason(candidate)
        )
        for candidate in route.candidates
    ]
    found = quote(route.first.token_prices, chat, output_tokens)
    return respond.estimate(chat.model, route.first.provider.slug, found, tried, route.left_out, guards=guards)


def _has_own_providers(model: Model) -> bool:
    """Whether the provider chooses among others itself, and takes the caller's preferences."""
    return "takes_preferences" in model.op.settings


def without_preferences(chat: ChatRequest) -> ChatRequest:
    """The call for providers that do not know this field."""
    body = {name: value for name, value in chat.body.items() if name != FIELD}
    return msgspec.structs.replace(chat, body=body)


def _costs(prices: TokenPrices, chat: ChatRequest, output_tokens: int) -> Costs | None:
    """What a call may cost at most in dollars, by the names of `max_price`; None if the price is not known."""
    if not prices.rows:
        return None
    input_usd, output_usd = token_usd(prices, chat)
    return {
        "request": dollars(max_cost(prices, chat, output_tokens)),
        "prompt": input_usd * _MILLION,
        "completion": output_usd * _MILLION,
    }
