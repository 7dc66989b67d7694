"""A table `proxy_sign_in` that cannot work is refused, and nobody is believed who is not named as agreed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.net.client import HttpClient
from penstock.people.configured import ProxyConfig, read_proxy_sign_in
from penstock.people.oidc import SignInFailed
from penstock.people.opening import PROXY_SECRET, open_people
from penstock.people.proxy_sign_in import ProxySignIn
from penstock.settings import Settings
from penstock.typed_config import Misconfigured
from tests.gateway import OpenGateway

SECRET = "s" * 32
TABLE = {
    "user_header": "Remote-User",
    "email_header": "Remote-Email",
    "name_header": "Remote-Name",
    "groups_header": "Remote-Groups",
    "roles": [{"role": "admin", "org": "default", "group": "leads"}],
}


def read(table: Mapping[str, Any], proxies: tuple[str, ...] = ("127.0.0.1",), secret: str = SECRET) -> Any:
    return read_proxy_sign_in(table, proxies, secret, PROXY_SECRET)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"user_header": "Remote_User"}, "user_header must be the name of a header"),
        ({"user_header": ""}, "user_header must be the name of a header"),
        ({"user_header": "Authorization"}, "authorization"),
        ({"name_header": "X-Proxy-Secret"}, "x-proxy-secret"),
        ({"groups_separator": " "}, "groups_separator"),
        ({"groups_header": None}, "groups_header"),
        ({"email_header": None, "roles": [{"role": "admin", "org": "a", "email": "*@b.example"}]}, "email_header"),
        ({"header": "x"}, "unknown key: header"),
        ({"roles": [{"role": "boss", "org": "a", "group": "b"}]}, "role"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Misconfigured, match=reason):
        read({**TABLE, **changes})


def test_the_headers_need_a_named_proxy_and_a_secret() -> None:
    for proxies in ((), ("*",), ("127.0.0.1", "*"), ("0.0.0.0/0",), ("::/0",)):
        with pytest.raises(Misconfigured, match="needs trusted_proxies"):
            read(TABLE, proxies)
    for secret in ("", "s" * 31, "ß" * 40, "s" * 40 + " ", "s\n" * 20):
        with pytest.raises(Misconfigured, match=f"needs {PROXY_SECRET} with at least 32 ASCII"):
            read(TABLE, secret=secret)
    assert read({}, (), "") is None


async def test_people_sign_in_one_way(open_gateway: OpenGateway, tmp_path: Path) -> None:
    async with open_gateway() as running:
        gateway = running.gateway
        parts = (HttpClient(), gateway.store, gateway.keys, gateway.vault, running.clock)
        proxy: dict[str, Any] = {"data": tmp_path, "trusted_proxies": ("127.0.0.1",), "proxy_sign_in": TABLE}
        oidc: dict[str, Any] = {
            "public_url": "https://media.example",
            "oidc": {"issuer": "https://issuer.invalid", "client_id": "x"},
        }
        opened = await open_people(Settings(**proxy), {PROXY_SECRET: SECRET}, *parts)
        assert isinstance(opened.sign_in, ProxySignIn)
        with pytest.raises(Misconfigured, match="one way"):
            await open_people(Settings(**proxy, **oidc), {PROXY_SECRET: SECRET}, *parts)
        await parts[0].close()


# ------------------------------------------------------------------------------------------------------ the headers


def identify(headers: Mapping[str, str], *, is_proxied: bool = True, **changes: Any) -> Any:
    """What is believed of headers, which are given as text and arrive as a server reads them."""
    config = read({**TABLE, **changes})
    assert isinstance(config, ProxyConfig)
    sign_in = ProxySignIn(config, SECRET, None, None)  # type: ignore[arg-type]
    arrived = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    sign_in._check_proxy(arrived, is_proxied=is_proxied)
    return sign_in._identity(arrived)


GOOD = {"x-proxy-secret": SECRET, "remote-user": "anna"}


def test_a_person_is_read_with_all_that_the_proxy_says() -> None:
    found = identify(
        {
            **GOOD,
            "remote-user": "zoë",
            "remote-email": "Zoe@Studio.example",
            "remote-name": "Zoë Ångström",
            "remote-groups": " leads,, team ünï ,(null)",
        }
    )
    assert (found.issuer, found.subject, found.email) == ("proxy", "zoë", "zoe@studio.example")
    assert (found.email_verified, found.name) == (True, "Zoë Ångström")
    assert found.groups == {"leads", "team ünï"}
    assert identify({**GOOD, "remote-groups": "a,b|c"}, groups_separator="|").groups == {"a,b", "c"}
    alone = identify({**GOOD, "remote-email": "(null)", "x-forwarded-groups": "leads"})
    assert (alone.email, alone.name, alone.groups) == (None, None, frozenset())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"x-proxy-secret": ""}, "no-proxy"),
        ({"x-proxy-secret": "s" * 31}, "no-proxy"),
        ({"x-proxy-secret": SECRET + "s"}, "no-proxy"),
        ({"x-proxy-secret": "ß" * 32}, "no-proxy"),
        ({"remote-user": ""}, "no-proxy"),
        ({"remote-user": "  "}, "no-proxy"),
        ({"remote-user": "(null)"}, "no-proxy"),
        ({"remote-user": "a" * 256}, "failed"),
        ({"remote-user": "a\tb"}, "failed"),
        ({"remote-user": "a\u202eb"}, "failed"),
        ({"remote-email": "a" * 250 + "@b.example"}, "failed"),
        ({"remote-groups": "leads\u2028x"}, "failed"),
    ],
)
def test_a_header_that_is_not_as_agreed_signs_nobody_in(changes: dict[str, str], code: str) -> None:
    with pytest.raises(SignInFailed) as caught:
        identify({**GOOD, **changes})
    assert caught.value.code == code


def test_a_header_that_is_not_utf_8_signs_nobody_in() -> None:
    sign_in = ProxySignIn(read(TABLE), SECRET, None, None)  # type: ignore[arg-type]
    with pytest.raises(SignInFailed, match="not UTF-8"):
        sign_in._identity({"remote-user": "zo\xeb"})


def test_only_the_proxy_is_believed() -> None:
    for headers in (GOOD, {}, {"remote-user": "anna"}):
        with pytest.raises(SignInFailed) as caught:
            identify(headers, is_proxied=False)
        assert caught.value.code == "no-proxy"
    with pytest.raises(SignInFailed, match="sends no X-Proxy-Secret"):
        identify({"remote-user": "anna"})
