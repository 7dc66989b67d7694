"""Which providers can be used, and what is said about the others."""

from typing import Any

from penstock.models.known_providers import KnownProviders
from penstock.providers.spec import Provider
from penstock.settings import Settings


def provider(slug: str, **fields: Any) -> Provider:
    return Provider(slug=slug, name=slug.title(), docs="", base_url=f"https://{slug}.test", models=(), **fields)


ONE = provider("one", key_env="ONE_KEY", callback_key_env="ONE_CALLBACK")
TWO = provider("two", key_env="TWO_KEY")
OWN = provider("own", base_url_env="OWN_URL")


def known(environ: dict[str, str], **settings: Any) -> KnownProviders:
    return KnownProviders((TWO, ONE, OWN), Settings(**settings), environ)


def test_providers_with_a_credential_are_active_unless_they_are_disabled() -> None:
    providers = known({"ONE_KEY": "k1", "TWO_KEY": "k2"}, disabled_providers=("two",))
    assert providers.known.keys() == {"one", "two", "own"}
    assert (set(providers.active), providers.keys) == ({"one"}, {"one": "k1"})
    assert providers.names == {"one": "One", "two": "Two", "own": "Own"}


def test_a_self_hosted_provider_has_the_url_of_the_environment() -> None:
    providers = known({"OWN_URL": "http://127.0.0.1:9/base/"})
    assert providers.active["own"].base_url == "http://127.0.0.1:9/base"


def test_the_list_says_why_a_provider_is_off_and_what_it_lacks() -> None:
    rows = {row["id"]: row for row in known({"ONE_KEY": "k1"}).describe()}
    assert list(rows) == ["one", "own", "two"]
    assert (rows["one"]["on"], rows["one"]["reason"], rows["one"]["missing"]) == (True, None, [])
    assert (rows["two"]["on"], rows["two"]["reason"], rows["two"]["missing"]) == (
        False,
        "TWO_KEY is not set",
        ["TWO_KEY"],
    )


def test_a_model_of_an_inactive_provider_lacks_its_credential() -> None:
    assert "TWO_KEY" in known({}).missing_credentials("two/any")
    assert known({"TWO_KEY": "k2"}).missing_credentials("two/any") == ""


def test_active_providers_have_their_callback_secrets() -> None:
    environ = {"ONE_KEY": "k1", "ONE_CALLBACK": "whsec_x"}
    assert known(environ).callback_secrets(environ) == {"one": "whsec_x"}
    without_key = {"ONE_CALLBACK": "whsec_x"}
    assert known(without_key).callback_secrets(without_key) == {}
