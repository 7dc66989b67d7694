"""Read the table `oidc` of penstock.toml: who says who people are, and what they may do."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from penstock.typed_config import Misconfigured, Text, convert
from penstock.values import OrgId

Role = Literal["viewer", "member", "admin", "operator"]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = OrgId("*")  # stands for all organizations
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


def read_oidc(written: Mapping[str, Any], public_url: str) -> OidcConfig | None:
    """The table, or None without one. Raises Misconfigured."""
    if not written:
        return None
    config = convert(written, OidcConfig, where="oidc")
    parts = urlsplit(public_url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise Misconfigured("oidc needs public_url with https, to which the issuer sends people back")
    return config
