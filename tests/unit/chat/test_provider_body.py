"""The body that a provider gets of a chat call, and what a model does not support."""

from typing import Any

import pytest

from penstock import providers
from penstock.chat.provider_body import check_supported, provider_body
from penstock.errors import InvalidRequest
from penstock.providers import deepseek, mistral
from penstock.providers.chat_models import MAX_TOKENS
from penstock.providers.openai_compatible import CHAT as PLAIN
from penstock.providers.spec import Model, Param, fixed, refused
from tests.unit.chat.small_request import HELLO, chat_request, model


def test_the_body_is_passed_on_with_the_upstream_model() -> None:
    body = provider_body(chat_request(temperature=0.5, session_id="s1", top_k=3), model(), None)
    assert body == {"model": "their-chat", "messages": [HELLO], "temperature": 0.5, "top_k": 3}


@pytest.mark.parametrize("wants", [True, False])
def test_a_stream_always_asks_for_usage(wants: bool) -> None:
    chat = chat_request(stream=True, stream_options={"include_usage": wants, "other": 1})
    assert chat.wants_usage is wants
    assert provider_body(chat, model(), None)["stream_options"] == {"include_usage": True, "other": 1}


def test_the_models_table_renames_and_adds_fields() -> None:
    rows = (MAX_TOKENS, fixed("safe", True), *(Param(name="user", handling="renamed", to=("who.id",)),))
    body = provider_body(chat_request(max_completion_tokens=7, user="u1", who={"kind": "person"}), model(*rows), None)
    assert (body["max_tokens"], body["safe"], body["who"]) == (7, True, {"kind": "person", "id": "u1"})
    assert {"max_completion_tokens", "user"}.isdisjoint(body)


def test_values_that_a_model_does_not_support_are_refused() -> None:
    without = model(*refused("logprobs", "temperature"))
    with pytest.raises(InvalidRequest, match="`logprobs` is not supported by lab/chat"):
        check_supported(chat_request(logprobs=True), without)
    check_supported(chat_request(logprobs=False, temperature=1), without)  # defaults always pass
    with pytest.raises(InvalidRequest, match="cannot be passed through"):
        check_supported(chat_request(base_url="https://elsewhere.example"), without)


@pytest.mark.parametrize("provider", [deepseek.PROVIDER, mistral.PROVIDER], ids=lambda provider: provider.slug)
def test_developer_messages_become_system_messages_where_needed(provider: Any) -> None:
    chat = chat_request(messages=[{"role": "developer", "content": "be brief"}, HELLO])
    body = provider_body(chat, provider.models[0], None)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    plain = Model(id="x", upstream="x", op=PLAIN, prices=())
    assert provider_body(chat, plain, None)["messages"] is chat.body["messages"]


CHAT_MODELS = [
    (provider.slug, model) for provider in providers.discover() for model in provider.models if model.op.task == "chat"
]


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({}, 4096),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"max_tokens": 9, "max_completion_tokens": 8}, 8),
        ({"max_tokens": None, "n": 3}, 4096),
    ],
)
def test_every_provider_is_sent_the_limit_that_money_is_reserved_for(body: dict[str, Any], limit: int) -> None:
    wrong = []
    for slug, chat_model in CHAT_MODELS:
        chat = chat_request(**body)
        sent = provider_body(chat, chat_model, 4096)
        limits = [sent[name] for name in ("max_tokens", "max_completion_tokens") if sent.get(name) is not None]
        is_free = chat_model.prices[0].usd == "0"
        if limits != ([limit] if chat.token_limit or not is_free else []):
            wrong.append((slug, chat_model.id, limits))
    assert wrong == []


@pytest.mark.parametrize("body", [{}, {"max_tokens": 7}, {"max_completion_tokens": 7}])
def test_every_provider_is_sent_the_limit_under_the_name_that_it_takes(body: dict[str, Any]) -> None:
    """As docs/chat.md says. OpenAI's reasoning models reject `max_tokens`, Mistral the other name."""
    wrong = []
    for slug, chat_model in CHAT_MODELS:
        sent = provider_body(chat_request(**body), chat_model, 4096)
        if slug in ("openai", "groq", "xai") and "max_completion_tokens" not in sent:
            wrong.append(slug)
        if slug in ("mistral", "deepseek", "together") and "max_tokens" not in sent:
            wrong.append(slug)
    assert wrong == []
