"""Candidates: the name of the model that is executed, and whose network the provider is in."""

from dataclasses import replace

from penstock.models import configured
from penstock.providers import llamacpp, localai, ollama, openai, vllm
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Provider
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
