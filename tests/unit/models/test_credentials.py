"""What an inactive provider lacks."""

from penstock.models.credentials import inactive_reason, missing_credentials
from penstock.providers import discover

PROVIDERS = {provider.slug: provider for provider in discover()}
INACTIVE = {slug: reason for slug, one in PROVIDERS.items() if (reason := inactive_reason(one, (), {}))}


def test_a_provider_is_inactive_without_its_variable_or_when_it_is_switched_off() -> None:
    assert inactive_reason(PROVIDERS["fal"], (), {"FAL_KEY": "x"}) is None
    assert inactive_reason(PROVIDERS["fal"], (), {}) == "FAL_KEY is not set"
    assert inactive_reason(PROVIDERS["fal"], ("fal",), {"FAL_KEY": "x"}) == "switched off in the settings"


def test_the_sentence_names_every_variable_that_would_do() -> None:
    sentence = missing_credentials("flux-dev", PROVIDERS.values(), INACTIVE)
    assert "FAL_KEY" in sentence
    assert " or " in sentence
    assert "ANTHROPIC_API_KEY" in missing_credentials("anthropic/any", PROVIDERS.values(), INACTIVE)
    assert missing_credentials("nothing", PROVIDERS.values(), INACTIVE) == ""
    off = missing_credentials("flux-dev", PROVIDERS.values(), {"fal": "switched off in the settings"})
    assert "switched off" in off
