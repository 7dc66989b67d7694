"""Candidates: the name of the model that is executed, where its calls go, and whose network the provider is in."""

from dataclasses import replace

from penstock.models import configured
from penstock.providers import llamacpp, localai, ollama, openai, vllm
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Provider
from penstock.upstream import translate
from penstock.upstream.candidate import Candidate


def candidate(provider: Provider, base_url: str = "") -> Candidate:
    model = Model(id="x/talk", upstream="chat", op=CHAT, prices=())
    return Candidate(replace(provider, base_url=base_url or provider.base_url), model)


def test_the_executed_model_is_the_providers_own_name_of_it() -> None:
    assert candidate(openai.PROVIDER).executed_model == "openai/chat"


def test_which_providers_are_in_the_own_network() -> None:
    for provider in (vllm.PROVIDER, llamacpp.PROVIDER, ollama.PROVIDER, localai.PROVIDER):
        assert candidate(provider).in_own_network
        assert candidate(provider, "https://models.example/v1").in_own_network, "its name may resolve to anything"
    assert not candidate(openai.PROVIDER).in_own_network
    for base_url in ("http://proxy.example/v1", "https://10.0.0.7/v1", "https://proxy.internal/v1", "https://[::1]/v1"):
        assert candidate(openai.PROVIDER, base_url).in_own_network, base_url


def test_a_provider_that_the_operator_describes_is_in_the_own_network() -> None:
    """What its name resolves to is not known here, and an image always serves as well as its URL."""
    written = {"speaks": "openai", "base_url": "https://models.example/v1"}
    (own,) = configured.providers({}, {"own": written})
    assert candidate(own).in_own_network


def test_the_calls_of_a_candidate_go_to_the_same_place_with_the_same_headers() -> None:
    chat = replace(candidate(openai.PROVIDER, "https://lab.test/v1"), own_key="k")
    sent = translate.http_request(chat.provider, chat.model, {"a": 1}, chat.key)
    target = chat.target
    assert target is not None
    assert (target.method, target.url, target.headers) == (sent.method, sent.url, sent.headers)
    assert chat.target is target
    assert replace(chat, own_key="other").target != target


def test_a_provider_whose_requests_differ_has_no_fixed_target() -> None:
    plain = candidate(openai.PROVIDER)
    signing = replace(plain.provider, sign=lambda request, key: {"x-signature": "s"})
    for provider in (signing, replace(plain.provider, id_header="x-id")):
        assert replace(plain, provider=provider).target is None
    form = replace(plain.model, op=replace(plain.model.op, body="form"))
    assert replace(plain, model=form).target is None
