"""Sign people in who come through a trusted proxy, which says in headers who they are."""

import hmac
from collections.abc import Mapping

from penstock.people.configured import SECRET_HEADER, ProxyConfig
from penstock.people.oidc import Identity, SignInFailed
from penstock.people.sessions import NewSession, Sessions
from penstock.people.sign_in import safe_next
from penstock.people.users import Users

ISSUER = "proxy"  # in the place of an issuer's URL, with which no issuer can be confused
_MAX_TEXT_CHARS = 255
_NOBODY = ("", "(null)")  # the second is what Apache sends for a variable without a value


class ProxySignIn:
    """Begins the sessions of people whom the proxy has signed in."""

    def __init__(self, config: ProxyConfig, secret: str, users: Users, sessions: Sessions) -> None:
        self.config = config
        self.headers = config.headers
        self.users = users
        self._secret = secret.encode()
        self._sessions = sessions

    async def enter(
        self,
        headers: Mapping[str, str],
        *,
        is_proxied: bool,
        next_page: str,
        invitation: str,
        address: str | None,
        agent: str,
    ) -> tuple[NewSession, str]:
        """The session of the person in the headers, and the page to show. Raises SignInFailed.

        `is_proxied`: the other end of the connection is one of `trusted_proxies`, whatever the headers say.
        """
        self._check_proxy(headers, is_proxied=is_proxied)
        identity = self._identity(headers)
        caller = await self.users.enter(identity, self.config.roles, address, invitation)
        return await self._sessions.begin(caller, address, agent, keep=False), safe_next(next_page)

    def subject(self, headers: Mapping[str, str], *, is_proxied: bool) -> str | None:
        """Who makes a call, as the proxy says; None if it says nothing that can be believed."""
        try:
            self._check_proxy(headers, is_proxied=is_proxied)
            return _text(headers, self.config.user_header)
        except SignInFailed:
            return None

    def _check_proxy(self, headers: Mapping[str, str], *, is_proxied: bool) -> None:
        if not is_proxied:
            raise SignInFailed("no-proxy", "the call comes from none of trusted_proxies")
        sent = headers.get(SECRET_HEADER)
        if sent is None:
            raise SignInFailed("no-proxy", "the proxy sends no X-Proxy-Secret")
        if not hmac.compare_digest(sent.encode(), self._secret):
            raise SignInFailed("no-proxy", "the X-Proxy-Secret is not that of the gateway")

    def _identity(self, headers: Mapping[str, str]) -> Identity:
        config = self.config
        subject = _text(headers, config.user_header)
        if subject is None:
            raise SignInFailed("no-proxy", f"the proxy names nobody in {config.user_header}")
        email = _text(headers, config.email_header)
        groups = _decoded(headers, config.groups_header).split(config.groups_separator)
        return Identity(
            issuer=ISSUER,
            subject=subject,
            email=email.lower() if email and "@" in email else None,
            email_verified=True,
            name=_text(headers, config.name_header),
            groups=frozenset(group for name in groups if (group := name.strip()) not in _NOBODY),
        )


def _text(headers: Mapping[str, str], name: str | None) -> str | None:
    """The value of a header, which is never shortened: two people could become one. Raises SignInFailed."""
    value = _decoded(headers, name)
    if len(value) > _MAX_TEXT_CHARS:
        raise SignInFailed("failed", f"{name} is longer than {_MAX_TEXT_CHARS} characters")
    return None if value in _NOBODY else value


def _decoded(headers: Mapping[str, str], name: str | None) -> str:
    """The value of a header as UTF-8; empty without one. Raises SignInFailed."""
    try:
        value = headers.get(name.lower(), "").encode("latin-1").decode().strip() if name else ""
    except UnicodeError:
        raise SignInFailed("failed", f"{name} is not UTF-8") from None
    if not value.isprintable():
        raise SignInFailed("failed", f"{name} has characters that cannot be printed")
    return value
