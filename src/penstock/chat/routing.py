"""Route a chat call: the candidates that can serve it, in the order in which to try them."""

from dataclasses import dataclass, replace
from decimal import Decimal

import msgspec

from penstock.chat.mock import chat_replay, mock_chat
from penstock.chat.pricing import max_cost, quote, token_usd
from penstock.chat.provider_body import check_supported
from penstock.chat.request import ChatRequest
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.models import selection
from penstock.models.catalog import Route
from penstock.models.preferences import FIELD, NO_PREFERENCES, read_preferences
from penstock.models.selection import Choice, Costs, Knowledge
from penstock.providers.spec import Model
from penstock.schema import Call, Response
from penstock.upstream.candidate import Candidate
from penstock.values import dollars

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class RoutedChat:
    """A chat call and its candidates."""

    chat: ChatRequest
    choice: Choice
    replay: str | None  # how it is answered if it has a replay mode

    @property
    def route(self) -> Route:
        return self.choice.route


async def route_chat(gateway: Gateway, call: Call, chat: ChatRequest) -> RoutedChat:
    """Find the candidates of a call. Raises InvalidRequest if none can serve it, or the caller allows none that can."""
    replay = chat_replay(call)
    knowledge = Knowledge(is_healthy=gateway.health.is_healthy)
    if replay == "mocked":
        chat, route = mock_chat(gateway, chat)
    else:
        route = gateway.catalog.route(chat.model, ("chat",), gateway.health.is_healthy)
    written = chat.body.get(FIELD)
    if written is None or all(_has_own_providers(candidate.model) for candidate in route.candidates):
        return RoutedChat(chat, Choice(_capable(route, chat), NO_PREFERENCES, knowledge), replay)
    preferences = read_preferences(written, "chat")
    chat = _without_preferences(chat)
    route = _capable(selection.allowed_route(route, preferences, gateway.catalog.known), chat)
    if preferences.needs_records:
        records = await gateway.provider_records.performance("chat", call.caller.org_id)
        knowledge = replace(knowledge, records=records)
    output_tokens = gateway.settings.chat_output_tokens
    knowledge = replace(knowledge, costs=lambda candidate: _costs(candidate.model, chat, output_tokens))
    return RoutedChat(
        chat, Choice(selection.preferred_route(route, preferences, knowledge), preferences, knowledge), replay
    )


def executed_model_header(candidate: Candidate) -> dict[str, str]:
    """The header that names who served a call. A model of a router may have any name, also one that no header can."""
    name = candidate.executed_model
    is_header = name.isascii() and name.isprintable()
    return {"x-service-executed-model": name if is_header else candidate.provider.slug}


def estimate(gateway: Gateway, routed: RoutedChat) -> Response:
    """The response to a dry run."""
    chat = routed.chat
    route = routed.route
    output_tokens = gateway.settings.chat_output_tokens
    tried = [
        respond.tried(candidate, max_cost(candidate.model, chat, output_tokens), routed.choice.reason(candidate))
        for candidate in route.candidates
    ]
    found = quote(route.first.model, chat, output_tokens)
    return respond.estimate(chat.model, route.first.provider.slug, found, tried, route.left_out)


def _capable(route: Route, chat: ChatRequest) -> Route:
    return selection.capable_route(route, lambda model: check_supported(chat, model))


def _has_own_providers(model: Model) -> bool:
    """Whether the provider chooses among others itself, and takes the caller's preferences."""
    return "takes_preferences" in model.op.settings


def _without_preferences(chat: ChatRequest) -> ChatRequest:
    """The call for providers that do not know this field."""
    body = {name: value for name, value in chat.body.items() if name != FIELD}
    return msgspec.structs.replace(chat, body=body)


def _costs(model: Model, chat: ChatRequest, output_tokens: int) -> Costs | None:
    """What a call may cost at most in dollars, by the names of `max_price`; None if the price is not known."""
    if not model.prices:
        return None
    input_usd, output_usd = token_usd(model, chat)
    return {
        "request": dollars(max_cost(model, chat, output_tokens)),
        "prompt": input_usd * _MILLION,
        "completion": output_usd * _MILLION,
    }
