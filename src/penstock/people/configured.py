"""Read the tables `oidc` and `proxy_sign_in` of penstock.toml: who says who people are, and what they may do."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from penstock.typed_config import Misconfigured, Text, convert
from penstock.values import OrgId

Role = Literal["viewer", "member", "admin", "operator"]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = OrgId("*")  # stands for all organizations
SECRET_HEADER = "x-proxy-secret"  # noqa: S105 (the name of a header)
_RESERVED = (SECRET_HEADER, "authorization", "cookie", "host")
_MIN_SECRET_CHARS = 32
HeaderName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9-]{1,64}$", title="the name of a header, such as X-Forwarded-User")
]
_URL = r"^(?!.*\s)https?://[^\s/?#@]+(/[^\s?#]*)?$"


class RoleRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the members of a group, or people with an e-mail address, may do in an organization."""

    role: Role
    org: Text  # its id or its name; `*` for operators
    group: str = ""
    email: str = ""  # in whole, or `*@` and a domain

    def __post_init__(self) -> None:
        """Raise ValueError for what the types cannot check."""
        if bool(self.group) == bool(self.email):
            raise ValueError("must have `group` or `email`, one of them")
        if self.email and ("@" not in self.email or "*" in self.email.removeprefix("*")):
            raise ValueError("must have an `email` such as `anna@studio.example` or `*@studio.example`")
        if (self.role == "operator") != (self.org == EVERYWHERE):
            raise ValueError('must have `org = "*"` for the role `operator`, and for no other')

    def matches(self, groups: frozenset[str], email: str | None) -> bool:
        if self.group:
            return self.group in groups
        if self.email.startswith("*"):
            return email is not None and email.endswith(self.email[1:].lower())
        return email == self.email.lower()


class OidcConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people sign in."""

    issuer: Annotated[str, Meta(pattern=_URL, title="the URL of the issuer, as its tokens have it")]
    client_id: Text
    scopes: Text = "openid email profile"
    groups_claim: Text = "groups"
    button: Text = "Sign in with your company"
    trust_email: bool = False  # use e-mail addresses of which the issuer does not say that they are verified
    key_sign_in: bool = True  # the pages also offer to sign in with a key
    roles: tuple[RoleRule, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for what the types cannot check."""
        parts = urlsplit(self.issuer)
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise ValueError("must have an https URL as `issuer`; plain http may go only to this machine")


class ProxyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people sign in through a proxy that knows who they are, and says so in headers."""

    user_header: HeaderName  # what a person is known by
    email_header: HeaderName | None = None
    name_header: HeaderName | None = None
    groups_header: HeaderName | None = None
    groups_separator: Literal[",", ";", "|"] = ","
    button: Text = "Sign in with your company"
    key_sign_in: bool = True  # the pages also offer to sign in with a key
    roles: tuple[RoleRule, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for what the types cannot check."""
        if taken := sorted(self.headers.intersection(_RESERVED)):
            raise ValueError(f"must not read people from the header {taken[0]}, which means something else")
        if self.groups_header is None and any(rule.group for rule in self.roles):
            raise ValueError("must have a `groups_header`: there are roles for a `group`")
        if self.email_header is None and any(rule.email for rule in self.roles):
            raise ValueError("must have an `email_header`: there are roles for an `email`")

    @property
    def headers(self) -> frozenset[str]:
        """The headers that say who somebody is, in lower case."""
        names = (self.user_header, self.email_header, self.name_header, self.groups_header)
        return frozenset(name.lower() for name in names if name)


def read_proxy_sign_in(
    written: Mapping[str, Any], trusted_proxies: tuple[str, ...], secret: str, secret_name: str
) -> ProxyConfig | None:
    """The table, or None without one. Raises Misconfigured."""
    if not written:
        return None
    config = convert(written, ProxyConfig, where="proxy_sign_in")
    if not trusted_proxies:
        raise Misconfigured("proxy_sign_in needs trusted_proxies with the address or the network of the proxy")
    if any(named == "*" or ip_network(named).prefixlen == 0 for named in trusted_proxies):
        raise Misconfigured("proxy_sign_in needs trusted_proxies that names the proxy, not everybody")
    if len(secret) < _MIN_SECRET_CHARS or not (secret.isascii() and secret.isprintable()) or secret != secret.strip():
        raise Misconfigured(
            f"proxy_sign_in needs {secret_name} with at least {_MIN_SECRET_CHARS} ASCII characters, "
            "which the proxy sends in the header X-Proxy-Secret"
        )
    return config


def read_oidc(written: Mapping[str, Any], public_url: str) -> OidcConfig | None:
    """The table, or None without one. Raises Misconfigured."""
    if not written:
        return None
    config = convert(written, OidcConfig, where="oidc")
    parts = urlsplit(public_url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise Misconfigured("oidc needs public_url with https, to which the issuer sends people back")
    return config
